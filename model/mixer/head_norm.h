/* Private to model/mixer/: RMSNorm of each head of queries and keys (model.qk_norm; model.md, 1), between their
 * projection, to which rules between layers have added, and their rotation. The operations' norms take rows
 * one behind the other, so heads are copied out of the rows of q, k and v and back. */
#ifndef GDN_HEAD_NORM_H
#define GDN_HEAD_NORM_H

#include "model/base/base.h"
#include "model/params/leaf.h"

/* Of one layer. */
struct head_norm {
    struct tensor queries, keys; /* [hd] each, on every tensor rank; NULL pointers: no norm */
    real *x, *rstd;              /* saved: [T·(H+K), hd] as they were, queries first; [T·(H+K)] */
};

/* Rows of q, k and v [T, (H+2K)·hd], or their gradients. */
struct head_rows {
    real *at;
    long H, K, hd;
};

enum { HEAD_NORM_LEAVES = 2 };
int head_norm_leaves(const struct model_config *config, struct leaf *leaf);
void head_norm_find(const struct model *m, int layer, struct head_norm *out);

/* Scratch: work [T, H·hd], and in the backward pass dx [T, H·hd]. Forward saves what backward reads, which
 * makes gradients of those at `rows` and adds to weights'. */
void head_norm_forward(struct model *m, const struct head_norm *norm, const struct head_rows *rows,
                       real *work);
void head_norm_backward(struct model *m, const struct head_norm *norm, const struct head_rows *rows,
                        real *work, real *dx);

#endif
