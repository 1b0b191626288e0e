/* Private to model/rules/: attention over depth for a layer's values, each head by itself (model.md, 12): v ←
 * v + λ Σ_j p_j u_j, where u_j is what the layer's own norm and map make of the output of node j, p_j by how
 * well its head, normalised, fits a learned query of the head, beside a null source. */
#ifndef GDN_DEPTH_VALUES_H
#define GDN_DEPTH_VALUES_H

#include "model/rules/own_input.h"

/* K heads of hd channels, this rank's. */
struct depth_values {
    struct tensor query, lambda; /* [K, hd], [K] */
    struct own_input input;
};

/* Scratch; of n sources. */
struct depth_values_scratch {
    real *norm, *rstd;      /* [T, D], [T] of a source */
    real *mapped, *dmapped; /* [n, K, T, hd] u, and its gradient */
    real *head;             /* [T, hd] what a head is given, and the gradient of that */
    real *zero;             /* [T, hd] */
    real *dquery, *dlambda; /* [T, hd], [T] each token's terms of the gradients */
    real *dnorm, *dsource;  /* [T, D] */
};

/* Leaves of a layer; arithmetic per token for n sources. */
int depth_values_leaves(const struct model_config *config, struct leaf *leaf);
double depth_values_flops(const struct model_config *config, int n);

void depth_values_find(const struct model *m, const struct rule_layer *x, struct depth_values *d);
void depth_values_lay_out_scratch(struct model *m, struct depth_values_scratch *s, long T, int n);

/* At x->heads; the backward pass is collective over the tensor axis. Nothing is kept from one for the other.
 */
void depth_values_forward(struct model *m, const struct rule_layer *x, const struct depth_values *d,
                          const struct depth_values_scratch *s);
void depth_values_backward(struct model *m, const struct rule_layer *x, const struct depth_values *d,
                           const struct depth_values_scratch *s);

#endif
