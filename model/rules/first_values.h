/* Private to model/rules/: the values that the first layer has of the embedding, V = Wv₀ (w₀ ⊙ norm(x₀)), for
 * layers above it (model.md, 12). A stage has Wv₀, w₀ and x₀ rather than V, whose way would be one more thing
 * that crosses stages: x₀ crosses as a source anyway, and the weights lie there as other shared ones do. V is
 * computed once for a chunk's layers, by the lowest of them that the rule enters and the pass does not leave
 * out, which also takes their gradients back; it lies with the lowest of all. */
#ifndef GDN_FIRST_VALUES_H
#define GDN_FIRST_VALUES_H

#include "model/rule/rule.h"

/* H: this rank's columns of values. */
struct first_values {
    int policy;
    struct tensor norm, map; /* w₀ [D], Wv₀ [H, D] */
    real *v;                 /* saved: [T, H], in the chunk's lowest layer */
    real *rstd;              /* saved: [T] of x₀, likewise */
};

struct first_values_scratch {
    const struct rule_layer *held; /* the lowest layer whose V lies in the buffers that layers share */
    real *n;                       /* [T, D] w₀ ⊙ norm(x₀) */
    real *dn, *dx;                 /* [T, D] gradients of n and x₀ */
    real *dv;                      /* [T, H] of V, from the highest layer of a pass down */
};

/* Names of the first layer's leaves that stages of other layers need too; NULL ends them. */
extern const char *const first_values_leaves[];

void first_values_find(const struct model *m, struct first_values *f);
/* `shared` is what layers do not keep of their own, itself where x is that. */
void first_values_lay_out(struct model *m, const struct rule_layer *x, struct first_values *f,
                          struct first_values *shared, long T, long H);
void first_values_lay_out_scratch(struct model *m, struct first_values_scratch *s, long T, long H);

/* `lowest` is the layer below, and `f` what it keeps. */
const struct rule_layer *first_values_lowest(const struct model *m, const struct rule_layer *x);
/* V, in both passes: computed by the lowest layer of the pass and where it is not kept. */
void first_values_forward(struct model *m, const struct rule_layer *x, const struct first_values *f,
                          struct first_values_scratch *s, long H);
/* dv [T, H] of a layer; the lowest of the pass leaves what all of them have left at weights and x₀. */
void first_values_backward(struct model *m, const struct rule_layer *x, const struct first_values *f,
                           const struct first_values_scratch *s, const real *dv, long H);

#endif
