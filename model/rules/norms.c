/* Normalised sources that are added to the stream. */
#include "model/rules/norms.h"

/* The i-th source: all rows. */
static const real *source(const struct model *m, const struct rule_layer *x, int i) {
    return node_output(m, x->edge[i].source);
}

/* Edges that are neighbours and active are one call, as many as it takes. */
void norms_forward(struct model *m, const struct rule_layer *x, const real *w, real *out, real *rstd) {
    long W = m->stream;
    for (int first = 0, n; first < x->n; first += n ? n : 1) {
        const real *s[OPS_CONNECTIONS];
        for (n = 0; n < OPS_CONNECTIONS && first + n < x->n && rule_edge_active(m, x, first + n); n++)
            s[n] = stream_rows(m, source(m, x, first + n));
        if (n)
            m->ops->add_norms(m->rows, W, n, s, w + first * W, m->config.norm_eps, out,
                              rstd + first * m->rows);
    }
}

void norms_backward(struct model *m, const struct rule_layer *x, struct tensor w, const real *rstd) {
    struct row_range terms = rule_terms(m);
    long W = m->stream, at = terms.first * W;
    for (int i = 0; i < x->n; i++)
        if (rule_edge_active(m, x, i))
            m->ops->rms_norm_back(terms.count, W, source(m, x, i) + at, w.w + i * W,
                                  rstd + i * m->rows + terms.first - m->row0, m->g + at,
                                  source_gradient_of(m, x->edge[i].source) + at, w.g + i * W);
}
