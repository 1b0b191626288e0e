#include "train/partition/times.h"

#include <stdlib.h>

#include "kernels/base/real.h"
#include "kernels/base/status.h"
#include "model/table/flops.h"

enum { THOUSANDTHS = 1000 };

static int rounded(double time, double unit, int least) {
    int thousandths = (int)(THOUSANDTHS * time / unit + 0.5);
    return thousandths > least ? thousandths : least;
}

/* What crosses a boundary in one direction, in operations a token of a tensor rank. */
static double crossing(const struct crossings *crossings, const struct route_widths *widths,
                       const struct layout *layout) {
    double elements = (double)widths->node;
    for (int i = 0; i < crossings->count; i++)
        elements += (double)(crossings->crossing[i].kind == CROSSING_SOURCE ? widths->node : widths->edge);
    return elements * (layout->wire == WIRE_BF16 ? 2 : (double)sizeof(real)) * OPERATIONS_A_BYTE;
}

int stage_times_of(const struct config *config, const struct edges *edges, const struct routes *routes,
                   const struct route_widths *widths, const struct layout *layout, struct stage_times *out) {
    const struct model_config *model = &config->model;
    const int layers = model->num_layers, stages = layout->size[AXIS_PIPELINE] * layout->chunks;
    double *all = malloc((size_t)layers * sizeof *all), *products = malloc((size_t)layers * sizeof *products);
    double unit = 0, head = model_head_flops(model), tensor = layout->size[AXIS_TENSOR];
    int status = all && products ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for times of %d layers", layers);
    if (!status) {
        model_layer_flops(model, edges, routes->active, config->train.sequence_length, all);
        model_layer_flops(model, edges, routes->active, 0, products); /* without attention's: no weights */
        for (int l = 0; l < layers; l++) unit += all[l] / stages;
    }
    for (int s = 0; !status && s < stages; s++) {
        double forward = 0, weights = 0, top = s == stages - 1 ? 3 * head : 0;
        for (int l = layout->stage[s].first; l < layout->stage[s].end; l++)
            forward += all[l], weights += products[l];
        double up = s < stages - 1 ? crossing(&routes->forward[s], widths, layout) : 0,
               down = s ? crossing(&routes->backward[s - 1], widths, layout) : 0;
        out[s] = (struct stage_times){.forward = rounded(forward, unit, 1),
                                      .inputs = rounded(2 * forward - weights + top, unit, 1),
                                      .weights = rounded(weights, unit, 1),
                                      .up = rounded(up * tensor, unit, 0),
                                      .down = rounded(down * tensor, unit, 0)};
    }
    free(all);
    free(products);
    return status;
}
