/* What the loss would gain without one connection, to first order: the gradient times the change of what enters
 * the layer. A connection's weighted contribution goes, and where shares add up to one those of the others grow,
 * each to its own over what the others' add up to. With f_j = gradient · weighted contribution of connection j,
 *
 *     effect of i = growth_i Σ_{j≠i} f_j − f_i,   growth_i: by which part the others' shares grow
 *
 * for each token, and under `multihead` each head, summed. It is linear in f, so that tensor ranks which have
 * parts of channels, of connections or of heads have parts of it too. On the host. */
#include "model/delta/private.h"

static void add(const struct delta_pass *p, const double *effect) {
    for (int i = 0; i < p->all; i++)
        p->effects[p->source[i].edge - p->m->edges.edge].effect += effect[i];
}

/* Of shares alpha [all], every step-th: what those beside the i-th grow by. The sum is of them alone: 1 − alpha_i
 * has no digits left where one has nearly all. */
static double growth_of(const real *alpha, long step, int all, int i) {
    double others = 0;
    for (int j = 0; j < all; j++)
        if (j != i) others += (double)alpha[j * step];
    return others > 0 ? (double)alpha[i * step] / others : 0;
}

/* Of shares that are the same for all tokens. */
static double even_growth(const struct aggregate *aggregate, int all) {
    if (!aggregate->share || all == 1) return 0;
    return (double)aggregate->share(all - 1) / (double)aggregate->share(all) - 1;
}

void measure_effects(const struct delta_pass *p) {
    const struct aggregate *aggregate = p->m->delta->aggregate;
    const struct connections *c = p->c;
    double effect[MAX_DISTANCES] = {0};
    if (!p->effects || !p->works || aggregate->combine) return;
    for (long t = 0; t < p->m->T; t++) {
        double f[MAX_DISTANCES] = {0}, sum = 0;
        for (int i = 0; i < p->n; i++) {
            const long at = t * p->n + i;
            sum += f[p->mine->among[i]] = (double)c->weight[at] * (double)p->m->delta->dweight[at];
        }
        for (int i = 0; i < p->all; i++) {
            const double growth = aggregate->weigh ? growth_of(c->alpha + t * p->all, 1, p->all, i)
                                                   : even_growth(aggregate, p->all);
            effect[i] += growth * (sum - f[i]) - f[i];
        }
    }
    add(p, effect);
}

void measure_head_effects(const struct delta_pass *p, long W, long heads, const real *c, const real *alpha,
                          const real *dout) {
    const long wide = W / heads;
    double effect[MAX_DISTANCES] = {0};
    if (!p->effects) return;
    for (long t = 0; t < p->m->T; t++)
        for (long h = 0; h < heads; h++) {
            const real *shares = alpha + t * p->all * heads + h, *d = dout + t * W + h * wide;
            double f[MAX_DISTANCES], sum = 0;
            for (int j = 0; j < p->all; j++) {
                const real *x = c + (t * p->all + j) * W + h * wide;
                f[j] = 0;
                for (long w = 0; w < wide; w++) f[j] += (double)d[w] * (double)x[w];
                sum += f[j] *= (double)shares[j * heads];
            }
            for (int i = 0; i < p->all; i++)
                effect[i] += growth_of(shares, heads, p->all, i) * (sum - f[i]) - f[i];
        }
    add(p, effect);
}
