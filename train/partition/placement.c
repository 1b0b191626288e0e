#include "train/partition/placement.h"

#include <stdlib.h>
#include <string.h>

#include "dist/layout/stages.h"
#include "kernels/base/status.h"
#include "model/rules/rules.h"
#include "model/table/flops.h"

/* Cuts the layers into stages by their arithmetic; the embedding is a look-up and costs nothing. */
static int cut_stages(const struct config *config, int stages, double *cost, struct span *out) {
    const struct model_config *model = &config->model;
    struct edges edges;
    TRY(edges_create(model, &edges));
    model_layer_flops(model, &edges, NULL, config->train.sequence_length, cost);
    edges_free(&edges);
    return stages_cut(model->num_layers, cost, 0, model_head_flops(model), stages, out);
}

int placement_create(const struct config *config, int copies, int tensor_index, int pipeline_index,
                     struct layout *out) {
    const struct mesh_config *mesh = &config->mesh;
    long stages = (long)mesh->size[AXIS_PIPELINE] * mesh_chunks(mesh);
    *out = (struct layout){.index[AXIS_TENSOR] = tensor_index,
                           .index[AXIS_PIPELINE] = pipeline_index,
                           .delta = mesh->delta,
                           .sequence_parallel = mesh->sequence_parallel,
                           .chunks = mesh_chunks(mesh),
                           .v = mesh->schedule == SCHEDULE_ZERO_BUBBLE_V,
                           .small = mesh->small,
                           .wire = (enum wire)mesh->wire,
                           .tensor_pieces = mesh->tensor_pieces,
                           /* a store reads whole sources */
                           .narrow = mesh->narrow_sources && !config->delta_store.interval};
    const struct axis_sizes joined = axes_joined(mesh->size);
    memcpy(out->size, joined.size, sizeof out->size);
    out->size[AXIS_COPIES] = copies; /* the configuration may leave it open */
    out->stage = malloc((size_t)stages * sizeof *out->stage);
    double *cost = malloc((size_t)config->model.num_layers * sizeof *cost);
    int status = out->stage && cost ? cut_stages(config, (int)stages, cost, out->stage)
                                    : gdn_fail(GDN_INTERNAL, "out of memory for %ld pipeline stages", stages);
    free(cost);
    if (status) placement_free(out);
    return status;
}

void placement_free(struct layout *layout) {
    free(layout->stage);
    layout->stage = NULL;
}
