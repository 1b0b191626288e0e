/* The rule `mix` between layers: x + Σ_j g_j ⊙ norm(h_j) over nodes j, of which each has a vector g_j of the
 * stream's width, 0 at the start (model.md, 12). */
#include "model/params/stream.h"
#include "model/rules/norms.h"
#include "model/rules/rules.h"

struct mix {
    int policy;
    struct tensor gain; /* [n, W] */
    real *rstd;         /* saved: [n, R] of the sources; so little that it is never computed again */
};

static int leaves(const struct model_config *config, const struct rule_config *settings, struct leaf *leaf) {
    leaf[0] = leaf_vector("gain", SPLIT_NONE, stream_width(config), 0);
    leaf[0].lr_scale = settings->lr_scale;
    return 1;
}

/* Norm, product and sum. */
static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    (void)settings;
    return 5.0 * (double)stream_width(config) * n;
}

static void find(struct model *m, const struct rule_layer *x) {
    struct mix *mix = x->own;
    mix->gain = rule_find_connections(m, x, "gain");
}

static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    struct mix *mix = x->own, *shared = shared_of_all;
    (void)T;
    mix->policy = x->policy;
    SAVE(m, mix, shared, rstd, m->rows_max * x->n, POLICY_NO_BACKWARD);
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    const struct mix *mix = x->own;
    (void)sums;
    norms_forward(m, x, mix->gain.w, out, mix->rstd);
}

static void backward(struct model *m, const struct rule_layer *x) {
    const struct mix *mix = x->own;
    norms_backward(m, x, mix->gain, mix->rstd);
}

static const struct rule_form form = {.settings = 1u << SETTING_PLACE | 1u << SETTING_SOURCES |
                                                  1u << SETTING_DISTANCES | 1u << SETTING_LAYERS |
                                                  1u << SETTING_PERIOD | 1u << SETTING_LR_SCALE};

const struct rule rule_mix = {.name = "mix",
                              .places = 1u << PLACE_BEFORE | 1u << PLACE_AFTER,
                              .forms = &form,
                              .num_forms = 1,
                              .defaults = {.place = PLACE_BEFORE,
                                           .sources = {-1},
                                           .num_sources = 1,
                                           .distances = {2, 3, 5, 9},
                                           .num_distances = 4,
                                           .period = 1,
                                           .lr_scale = 5},
                              .edges = rule_edges,
                              .connection_leaves = leaves,
                              .flops = flops,
                              .own_bytes = sizeof(struct mix),
                              .find = find,
                              .lay_out = lay_out,
                              .forward = forward,
                              .backward = backward};
