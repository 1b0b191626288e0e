/* An aggregate that combines contributions: z += M Σ_i silu(c_i), with one trained M, whose rows are divided
 * over tensor ranks: W on each. */
#include "rows.h"

#include "model/delta/private.h"

enum { MAP }; /* its leaf: M [W, D] */

struct mapped {
    int policy;
    real *h; /* [T, all, D] silu(c) */
};

struct scratch {
    real *out, *dout; /* [T, W] this rank's columns of what is added, and of the gradient */
};

static void again(struct delta_pass *p) {
    const struct mapped *own = p->c->aggregate;
    const struct model *m = p->m;
    m->ops->silu(m->T * p->all * m->config.hidden_size, p->c->contribution, own->h);
}

static void combine(struct delta_pass *p, real *z) {
    const struct mapped *own = p->c->aggregate;
    struct model *m = p->m;
    const struct scratch *scratch = m->delta->aggregate_scratch;
    const real *map = p->c->layer_leaf[MAP].w;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.D, ld = p->all * D;
    real *all = m->delta->mean /* [T, D] */, *out = W < D ? scratch->out : all;
    again(p);
    for (int i = 0; i < p->all; i++)
        m->ops->gemm('N', 'T', T, W, D, 1, own->h + i * D, ld, map, D, i > 0, out, W);
    if (W < D) axis_gather_columns(m->tensor, out, T, W, all);
    m->ops->add(m->rows * D, own_rows(m, all), z);
}

static void combine_back(struct delta_pass *p, const real *dz, real *dc) {
    const struct mapped *own = p->c->aggregate;
    struct model *m = p->m;
    const struct scratch *scratch = m->delta->aggregate_scratch;
    struct tensor map = p->c->layer_leaf[MAP];
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.D, ld = p->all * D;
    m->ops->copy_columns(T, W, dz + m->delta->part.column, D, scratch->dout, W);
    for (int i = 0; i < p->all; i++) {
        m->ops->gemm('N', 'N', T, D, W, 1, scratch->dout, W, map.w, D, 0, dc + i * D, ld);
        m->ops->gemm('T', 'N', W, D, T, 1, scratch->dout, W, own->h + i * D, ld, 1, map.g, D);
    }
    m->ops->silu_back(T * ld, p->c->contribution, dc, dc);
    axis_sum(m->tensor, dc, T * ld);
}

static int leaves(const struct model_config *config, struct leaf *leaf) {
    leaf[MAP] = leaf_matrix("map.weight", SPLIT_ROWS, config->hidden_size, config->hidden_size, 0.5);
    return MAP + 1;
}

static double flops(const struct model_config *config, int n) {
    return 2.0 * n * config->hidden_size * config->hidden_size;
}

static const struct conflict *conflict(const struct model_config *config, int tensor) {
    static const struct conflict hot = {"a map of contributions has no temperature",
                                        {"model.delta.aggregate", "model.delta.temperature"}};
    (void)tensor;
    return config->delta.temperature != 1 ? &hot : NULL;
}

static void lay_out(struct model *m, struct connections *c, long T) {
    struct mapped *own = c->aggregate, *shared = m->delta->shared->aggregate;
    own->policy = c->policy;
    SAVE(m, own, shared, h, T * c->n * m->config.hidden_size, POLICY_FULL);
}

static void lay_out_scratch(struct model *m, long T, long all) {
    struct scratch *scratch = m->delta->aggregate_scratch;
    (void)all;
    scratch->out = take(&m->scratch, T * m->delta->part.D);
    if (m->training) scratch->dout = take(&m->scratch, T * m->delta->part.D);
}

static const struct aggregate mapped = {.name = "mapped",
                                        .leaves = leaves,
                                        .flops = flops,
                                        .conflict = conflict,
                                        .saved_bytes = sizeof(struct mapped),
                                        .scratch_bytes = sizeof(struct scratch),
                                        .lay_out = lay_out,
                                        .lay_out_scratch = lay_out_scratch,
                                        .combine = combine,
                                        .combine_back = combine_back,
                                        .combine_again = again};

int register_aggregate_mapped(void) {
    return aggregate_register(&mapped);
}
