#include "train/partition/boundary_size.h"

#include <stdio.h>

#include "kernels/base/status.h"
#include "kernels/lowrank/lowrank.h"
#include "model/params/stream.h"

long boundary_elements(const struct layout *layout, long T, long D) {
    if (!(layout->compress > 0) || T == 0) return T * D;
    return lowrank_of_ratio(T, D, layout->compress) * (T + D);
}

int boundary_validate(const struct config *config, long micro_batch) {
    const struct layout layout = {.compress = config->mesh.compress_boundary};
    long T = micro_batch * config->train.sequence_length, D = stream_width(&config->model);
    if (!(layout.compress > 0) || boundary_elements(&layout, T, D) < T * D) return 0;
    long max = (T * D - 1) / (T + D), side = T < D ? T : D; /* the greatest rank that saves something */
    char text[80] = "none saves here";
    if (max) snprintf(text, sizeof text, "at most %.4g", (double)max / (double)side);
    return gdn_fail(GDN_INPUT,
                    "mesh.compress_boundary: %g saves nothing: factors of rank %ld have %ld elements, blocks "
                    "%ld\n"
                    "  with model.hidden_size %ld, train.micro_batch_size %ld and train.sequence_length %d\n"
                    "  expected: %s; or 0, which sends blocks as they are",
                    layout.compress, lowrank_of_ratio(T, D, layout.compress),
                    boundary_elements(&layout, T, D), T * D, D, micro_batch, config->train.sequence_length,
                    text);
}
