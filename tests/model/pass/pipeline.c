#include "tests/model/pass/pipeline.h"

struct layout cut_layout(const struct cut *cut, int pipeline_index, int way) {
    struct layout layout = divided_layout(way);
    layout.size[AXIS_PIPELINE] = cut->pipeline, layout.index[AXIS_PIPELINE] = pipeline_index;
    layout.chunks = cut->chunks;
    layout.stage = (struct span *)cut->stage;
    return layout;
}

int pipeline_stages(const struct pipeline *p) {
    return p->cut->pipeline * p->cut->chunks;
}

struct model *pipeline_model(const struct pipeline *p, int stage) {
    return p->rank[stage % p->cut->pipeline].model;
}

static int stage_of(const struct pipeline *p, int node) {
    for (int s = 0;; s++)
        if (node < p->cut->stage[s].end) return s;
}

/* Do layers of a stage read this node? */
static bool reads(const struct pipeline *p, int stage, int node) {
    for (int l = p->cut->stage[stage].first; l < p->cut->stage[stage].end; l++)
        for (int e = p->edges.first[l]; e < p->edges.first[l + 1]; e++)
            if (p->edges.edge[e].source == node && edge_set_has(p->active, e)) return true;
    return false;
}

void pipeline_hand_over(const struct pipeline *p, int stage, real *const *source_gradients, bool *left,
                        real **source, real **source_gradient, struct pass *pass) {
    struct span span = p->cut->stage[stage];
    for (int n = -1; n < p->layers; n++) {
        int owner = stage_of(p, n);
        bool outside = n < span.first && stage > 0, stream = outside && n == span.first - 1,
             leaves = outside && !stream && reads(p, stage, n), given = left[1 + n] && n < span.end - 1;
        source[1 + n] =
            outside && (stream || reads(p, stage, n))
                ? model_output(pipeline_model(p, owner), owner / p->cut->pipeline, pass->activation_set, n)
                : NULL;
        source_gradient[1 + n] =
            leaves || (given && (stream || owner == stage)) ? source_gradients[1 + n] : NULL;
        if (leaves) left[1 + n] = true;
    }
    pass->chunk = stage / p->cut->pipeline;
    pass->source = source, pass->source_gradient = source_gradient;
}

int pipeline_top(const struct pipeline *p, int stage) {
    return stage == pipeline_stages(p) - 1 ? p->layers : p->cut->stage[stage].end - 1;
}

int pipeline_bottom(const struct pipeline *p, int stage) {
    return stage ? p->cut->stage[stage].first : -1;
}

int pipeline_end(int layer, int bottom, int step) {
    return step && layer - step + 1 > bottom ? layer - step + 1 : bottom;
}
