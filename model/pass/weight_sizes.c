/* How large a weight set is: what one pass of a planned model would keep. */
#include "model/base/weight_gradients.h"
#include "kernels/base/status.h"
#include "model/pass/private.h"

#include <stdlib.h>

/* Arrays of a pass through one chunk of a planned model, each [num_layers + 1]. */
struct arrays {
    real **source, **source_gradient;
};

/* One pass forward and backward through a chunk, in which all that it reads is somewhere. */
static void run_chunk(struct model *m, int chunk, const struct arrays *at) {
    const struct loss_options options = {.target_weight = 1, .token_weight = 1};
    const struct span span = m->passes->chunk[chunk].span;
    real *anywhere = m->state->weight;
    for (int node = -1; node < m->config.num_layers; node++) {
        bool inside = node >= span.first || (node < 0 && m->passes->chunk[chunk].first);
        at->source[1 + node] = inside ? NULL : anywhere + 2 + node; /* each its own, and no gradient's */
        at->source_gradient[1 + node] = !inside && node < span.first - 1 ? anywhere : NULL;
    }
    const struct pass pass = {
        .chunk = chunk,
        .batch = m->batch,
        .length = m->length,
        .options = &options,
        .source = at->source,
        .source_gradient = at->source_gradient,
        .gradient = anywhere,
    };
    static struct loss_sums sums; /* nobody reads them */
    int top = m->passes->chunk[chunk].last ? m->config.num_layers : span.end - 1;
    model_stage_forward(m, &pass, &sums);
    model_stage_backward(m, &pass, top, m->passes->chunk[chunk].first ? -1 : span.first, &sums);
}

static int run_chunks(struct model *m) {
    size_t nodes = (size_t)m->config.num_layers + 1;
    struct arrays at = {calloc(nodes, sizeof *at.source), calloc(nodes, sizeof *at.source_gradient)};
    for (int c = 0; at.source && at.source_gradient && c < m->passes->chunks; c++) run_chunk(m, c, &at);
    int status = at.source && at.source_gradient
                     ? model_status(m)
                     : gdn_fail(GDN_INTERNAL, "out of memory for a pass of %d layers", m->config.num_layers);
    free(at.source);
    free(at.source_gradient);
    return status;
}

int model_weight_sizes(const struct model_config *config, const struct table *table,
                       const struct model_part *part, long batch, long length,
                       struct model_weight_size *out) {
    struct layout layout = *part->layout;
    struct axis tensor = axis_planned("tensor", layout.size[AXIS_TENSOR], layout.index[AXIS_TENSOR]);
    const struct model_part dry = {
        .layout = &layout, .tensor = &tensor, .documents = part->documents, .padding = part->padding};
    struct model *m;
    TRY(model_create_planned(config, table, &dry, batch, length, true, &m));
    for (int l = 0; l < config->num_layers; l++) out[l] = (struct model_weight_size){0};
    m->weight_gradients->count = out;
    int status = run_chunks(m);
    /* Where not all connections of a layer are active, one product may be several of parts of it, each at
     * most of one connection, with less to keep but for rounding. */
    for (int l = 0; l < config->num_layers; l++) {
        int connections = m->edges.first[l + 1] - m->edges.first[l];
        if (!out[l].products || connections < 2) continue;
        out[l].elements += (long)WEIGHT_ALIGNED * connections * out[l].products;
        out[l].products *= connections;
    }
    model_free(m);
    axis_free(&tensor);
    return status;
}

struct model_weight_size model_weight_size_of(const struct model_weight_size *size, struct span span,
                                              int from) {
    struct model_weight_size sum = {0};
    for (int l = span.first > from ? span.first : from; l < span.end; l++) {
        sum.products += size[l].products;
        sum.elements += size[l].elements;
    }
    return sum;
}

int model_size_weight_sets(const struct model_config *config, const struct table *table,
                           struct model_part *part, long batch, long length) {
    const int layers = config->num_layers;
    part->weight_size = (struct model_weight_size){0};
    if (!part->weight_sets) return 0;
    struct model_weight_size *size = calloc((size_t)layers, sizeof *size);
    int status = size ? model_weight_sizes(config, table, part, batch, length, size)
                      : gdn_fail(GDN_INTERNAL, "out of memory for the sizes of %d layers", layers);
    for (int c = 0; !status && c < part->layout->chunks; c++) {
        const struct model_weight_size chunk =
            model_weight_size_of(size, layout_span(part->layout, c, layers), part->weights_from);
        if (part->weight_size.products < chunk.products) part->weight_size.products = chunk.products;
        if (part->weight_size.elements < chunk.elements) part->weight_size.elements = chunk.elements;
    }
    free(size);
    return status;
}
