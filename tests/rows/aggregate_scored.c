/* An aggregate that computes the shares of contributions: silu(w·s) of each source s, with one trained w. */
#include "rows.h"

#include "model/delta/private.h"

enum { SCORE };     /* its leaf: w [1, D] */
enum { MAP_SCORE }; /* its map */

struct scored {
    int policy;
    real *score; /* [R, all] w·s; the backward pass uses it up */
};

static void scores(const struct delta_pass *p) {
    const struct scored *s = p->c->aggregate;
    map_sources(p, MAP_SCORE, s->score);
}

static void weigh(const struct delta_pass *p, real *alpha) {
    const struct scored *s = p->c->aggregate;
    scores(p);
    p->m->ops->silu(p->rows * p->all, s->score, alpha);
}

static void weigh_back(const struct delta_pass *p, const real *alpha, real *dalpha) {
    const struct scored *s = p->c->aggregate;
    (void)alpha;
    p->m->ops->silu_back(p->rows * p->all, s->score, dalpha, dalpha);
    map_sources_back(p, MAP_SCORE, dalpha);
}

static int leaves(const struct model_config *config, struct leaf *leaf) {
    leaf[SCORE] = leaf_matrix("score.weight", SPLIT_NONE, 1, config->hidden_size, 0.5);
    leaf[SCORE].projects = true;
    return SCORE + 1;
}

static double flops(const struct model_config *config, int n) {
    return 2.0 * config->hidden_size * n;
}

static void lay_out(struct model *m, struct connections *c, long T) {
    struct scored *s = c->aggregate, *shared = m->delta->shared->aggregate;
    (void)T;
    s->policy = c->policy;
    SAVE(m, s, shared, score, m->rows_max * c->n, POLICY_FULL);
}

static const struct aggregate scored = {.name = "scored",
                                        .leaves = leaves,
                                        .flops = flops,
                                        .map = {[MAP_SCORE] = SCORE},
                                        .maps = 1,
                                        .saved_bytes = sizeof(struct scored),
                                        .lay_out = lay_out,
                                        .weigh = weigh,
                                        .weigh_back = weigh_back,
                                        .weigh_again = scores};

int register_aggregate_scored(void) {
    return aggregate_register(&scored);
}
