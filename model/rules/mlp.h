/* Private to model/rules/: the small MLP by which each token has weights of its own, what rules add to a
 * learned number: a + U silu(V norm(in)), in what the layer would read, V [H, W], U [n, H] (model.md, 12). */
#ifndef GDN_RULES_MLP_H
#define GDN_RULES_MLP_H

#include "model/rule/rule.h"

/* Of a layer, and (`shared`) what layers do not keep of their own. */
struct mlp {
    int policy;
    struct tensor in; /* V [H, W] */
    real *rstd;       /* saved: [R] of `in` of the stream */
    real *mapped;     /* saved: [R, H] V in, before the norm's scale */
};

struct mlp_scratch {
    real *before, *hidden; /* [R, H] before silu and behind it */
    real *dhidden;         /* [R, H] */
    real *drstd, *k;       /* [R], and the factor of `in` in its gradient */
};

/* V as a leaf; H is the entry's `hidden`. */
struct leaf mlp_leaf(const struct model_config *config, const struct rule_config *settings);
double mlp_flops(const struct model_config *config, const struct rule_config *settings, double weights);

void mlp_find(const struct model *m, const struct rule_layer *x, struct mlp *mlp);
void mlp_lay_out(struct model *m, const struct rule_layer *x, struct mlp *mlp, struct mlp *shared);
void mlp_lay_out_scratch(struct model *m, const struct rule_config *settings, struct mlp_scratch *s);

/* Forward: `hidden`, from the stream before the rule; from what is saved. */
void mlp_forward(struct model *m, const struct rule_layer *x, const struct mlp *mlp,
                 const struct mlp_scratch *s);
void mlp_again(struct model *m, const struct rule_layer *x, const struct mlp *mlp,
               const struct mlp_scratch *s);
/* a [R, n] += U hidden. */
void mlp_weights(struct model *m, const struct rule_layer *x, const struct mlp_scratch *s, struct tensor out,
                 long n, real *a);
/* From `hidden` and the gradient of a [R, n], at rows of this rank all valid: that of U, by this rank's
 * terms; dhidden, which `more` adds to. */
void mlp_weights_back(struct model *m, const struct rule_layer *x, const struct mlp_scratch *s,
                      struct tensor out, long n, const real *da, bool more);
/* From dhidden: the gradient of V, by this rank's terms, and what comes by way of the stream, which each rank
 * adds to all of its rows of m->g. */
void mlp_back(struct model *m, const struct rule_layer *x, const struct mlp *mlp,
              const struct mlp_scratch *s);

#endif
