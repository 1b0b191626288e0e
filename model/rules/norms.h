/* Private to model/rules/: what rules share that add normalised sources to the stream, out + Σ_i c_i ⊙
 * norm(s_i) over a layer's active edges, with norm(s) = s·rsqrt(mean s² + norm_eps), or of what the layer of
 * the source has added: norm(s_i − p_i), p_i the output of the node below (model.md, 12). */
#ifndef GDN_NORMS_H
#define GDN_NORMS_H

#include "model/rule/rule.h"

/* Those of one kind in a layer, in the order of its edges. */
struct norms {
    int n;
    int leaf;           /* of its connections: edges that lack it (edge.without) are not among them */
    bool added;         /* by the source's layer; the node below is a source of the layer too */
    struct tensor gain; /* [n, W] */
    real *rstd;         /* [n, R]: the forward pass fills it, the backward pass reads it */
    /* Each token's own weights of `groups` groups of columns beside the gain, at own rows, or NULL; and their
     * gradient. */
    long groups;
    real *a;  /* [R, n, groups] */
    real *da; /* [R, n, groups] */
};

/* How many of the layer's edges have the leaf. */
int norms_count(const struct rule_layer *x, int leaf);

void norms_forward(struct model *m, const struct rule_layer *x, const struct norms *norms, real *out);
/* Of g [R, W], own rows of the gradient of `out`: adds this rank's terms to gain.g and to the sources'
 * gradients, and fills da, all own rows. Where sources have come back from low-rank factors rstd stays what
 * it was: that of a row of which little is left would make its gradient large. */
void norms_backward(struct model *m, const struct rule_layer *x, const struct norms *norms, const real *g);

#endif
