/* Normalised sources, or what their layers have added, in the stream. */
#include "model/rules/norms.h"

static bool has(const struct rule_layer *x, int i, int leaf) {
    return !(x->edge[i].without >> leaf & 1);
}

int norms_count(const struct rule_layer *x, int leaf) {
    int n = 0;
    for (int i = 0; i < x->n; i++) n += has(x, i, leaf);
    return n;
}

static bool is_read(const struct model *m, const struct rule_layer *x, int node) {
    for (int i = 0; i < x->n; i++)
        if (x->edge[i].source == node) return rule_edge_active(m, x, i);
    return false;
}

/* Is edge i's source read, and where that is needed what lies below it? */
static bool is_active(const struct model *m, const struct rule_layer *x, const struct norms *norms, int i) {
    return rule_edge_active(m, x, i) && (!norms->added || is_read(m, x, x->edge[i].source - 1));
}

static const real *below(const struct model *m, const struct rule_layer *x, const struct norms *norms,
                         int i) {
    return norms->added ? node_output(m, x->edge[i].source - 1) : NULL;
}

/* Neighbours that are active, from number `first` on. */
struct run {
    long first, count;
    const real *s[OPS_CONNECTIONS], *p[OPS_CONNECTIONS];
};

static void add_run(struct model *m, const struct norms *norms, struct run *run, real *out) {
    long first = run->first, W = m->stream, G = norms->groups;
    if (run->count)
        m->ops->add_norms(m->rows, W, G, run->count, run->s, norms->added ? run->p : NULL,
                          norms->gain.w + first * W, norms->a ? norms->a + first * G : NULL, norms->n * G,
                          m->config.norm_eps, out, norms->rstd + first * m->rows);
    run->first += run->count;
    run->count = 0;
}

void norms_forward(struct model *m, const struct rule_layer *x, const struct norms *norms, real *out) {
    struct run run = {0};
    for (int i = 0; i < x->n; i++) {
        if (!has(x, i, norms->leaf)) continue;
        if (!is_active(m, x, norms, i)) {
            add_run(m, norms, &run, out);
            run.first++;
            continue;
        }
        if (run.count == OPS_CONNECTIONS) add_run(m, norms, &run, out);
        const real *p = below(m, x, norms, i);
        run.s[run.count] = stream_rows(m, node_output(m, x->edge[i].source));
        run.p[run.count++] = p ? stream_rows(m, p) : NULL;
    }
    add_run(m, norms, &run, out);
}

/* Number k, which is edge i: the gradients of tokens' own weights at rows of [T, W], and with `leave` what
 * else is this rank's to do there. */
static void back(struct model *m, const struct rule_layer *x, const struct norms *norms, const real *g, int i,
                 int k, long first, long count, bool leave) {
    int source = x->edge[i].source;
    long W = m->stream, G = norms->groups, at = first * W, own = first - m->row0,
         of_token = own * norms->n * G + k * G;
    const real *p = below(m, x, norms, i);
    if (count < 1) return;
    m->ops->add_norm_back(count, W, G, node_output(m, source) + at, p ? p + at : NULL, norms->gain.w + k * W,
                          norms->a ? norms->a + of_token : NULL, norms->n * G,
                          norms->rstd + k * m->rows + own, g + own * W,
                          leave ? source_gradient_of(m, source) + at : NULL,
                          leave && p ? source_gradient_of(m, source - 1) + at : NULL,
                          leave ? norms->gain.g + k * W : NULL, norms->a ? norms->da + of_token : NULL);
}

void norms_backward(struct model *m, const struct rule_layer *x, const struct norms *norms, const real *g) {
    struct row_range terms = rule_terms(m);
    long end = terms.first + terms.count;
    int active = 0;
    for (int i = 0; i < x->n; i++) active += has(x, i, norms->leaf) && is_active(m, x, norms, i);
    if (norms->a && active < norms->n) m->ops->zero(m->rows * norms->n * norms->groups, norms->da);
    for (int i = 0, k = -1; i < x->n; i++) {
        k += has(x, i, norms->leaf);
        if (!has(x, i, norms->leaf) || !is_active(m, x, norms, i)) continue;
        back(m, x, norms, g, i, k, terms.first, terms.count, true);
        if (!norms->a) continue;
        back(m, x, norms, g, i, k, m->row0, terms.first - m->row0, false);
        back(m, x, norms, g, i, k, end, m->row0 + m->rows - end, false);
    }
}
