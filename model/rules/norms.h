/* Private to model/rules/: what rules share that add normalised sources to the stream, out + Σ_i w_i ⊙
 * norm(s_i) over a layer's active edges, with norm(s) = s·rsqrt(mean s² + norm_eps) (model.md, 12). */
#ifndef GDN_NORMS_H
#define GDN_NORMS_H

#include "model/rule/rule.h"

/* w [n, W], a vector of each edge; rstd [n, R], which the forward pass fills and the backward pass reads. */
void norms_forward(struct model *m, const struct rule_layer *x, const real *w, real *out, real *rstd);
/* Of the gradient of `out`, m->g: adds this rank's terms to w.g and to the sources' gradients. Where sources
 * have come back from low-rank factors rstd stays what it was: that of a row of which little is left would
 * make its gradient large. */
void norms_backward(struct model *m, const struct rule_layer *x, struct tensor w, const real *rstd);

#endif
