#include "train/partition/boundary_size.h"

#include <stdio.h>

#include "kernels/base/status.h"
#include "kernels/lowrank/lowrank.h"
#include "model/params/stream.h"

long boundary_factors(const struct layout *layout, long T, long D) {
    return lowrank_of_ratio(layout->compress_over > 1 ? T * layout->compress_over : T, D, layout->compress);
}

long boundary_sum(const struct layout *layout, long T, long D) {
    if (!(layout->compress > 0) || layout->compress_over < 2) return 0;
    return lowrank_split_longest(layout->compress_over, T, D, boundary_factors(layout, T, D));
}

long boundary_elements(const struct layout *layout, long T, long D) {
    if (!(layout->compress > 0) || T == 0) return T * D;
    return boundary_factors(layout, T, D) * (T + D);
}

int boundary_validate(const struct config *config, long micro_batch) {
    const int context = config->mesh.size[AXIS_CONTEXT];
    const struct layout layout = {.compress = config->mesh.compress_boundary, .compress_over = context};
    long T = micro_batch * config->train.sequence_length / context, D = stream_width(&config->model);
    if (!(layout.compress > 0) || boundary_elements(&layout, T, D) < T * D) return 0;
    long max = (T * D - 1) / (T + D); /* the greatest rank that saves something */
    long all = T * context, side = all < D ? all : D;
    char text[80] = "none saves here";
    if (max) snprintf(text, sizeof text, "at most %.4g", (double)max / (double)side);
    return gdn_fail(GDN_INPUT,
                    "mesh.compress_boundary: %g saves nothing: factors of rank %ld have %ld elements, blocks "
                    "%ld\n"
                    "  with model.hidden_size %ld, train.micro_batch_size %ld, train.sequence_length %d and "
                    "mesh.context %d\n"
                    "  expected: %s; or 0, which sends blocks as they are",
                    layout.compress, boundary_factors(&layout, T, D), boundary_elements(&layout, T, D), T * D,
                    D, micro_batch, config->train.sequence_length, context, text);
}
