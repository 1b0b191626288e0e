/* Private to model/: a layer's token mixer, attention. Reads and writes all rows: layers gather and sum. */
#ifndef GDN_ATTENTION_H
#define GDN_ATTENTION_H

#include "model/base/base.h"

/* Of one layer, and what a micro-batch saves of it. */
struct attention {
    int policy; /* the layer's */
    struct tensor qkv, o;
    real *qkv_out;   /* [T, (H+2K)·hd], rotated */
    real *out, *lse; /* [T, H·hd], [B, H, S] */
};

/* The one-token form: keys and values of the tokens so far, per layer [capacity, K·hd]. */
struct cache {
    long length;
    real **keys, **values;
};

struct attention_state {
    long H, K;           /* this rank's heads, key/value heads */
    struct cache *cache; /* generation, or NULL */
    real *cosine, *sine; /* [positions, hd/2] */
    /* Scratch of the backward pass. */
    real *dqkv; /* [T, (H+2K)·hd] */
    real *work; /* [B, H, S] */
};

/* A layer's tensors; its saved buffers, or those of `shared` that it does not keep (SAVE); scratch, with room
 * for the angles of `positions`. */
void find_attention(const struct model *m, int layer, struct attention *a);
void lay_out_attention(struct model *m, struct attention *a, struct attention *shared, long T);
void lay_out_attention_scratch(struct model *m, long T, long positions);
/* Fills in the angles. GDN_INTERNAL without memory. */
int fill_rotary(struct model *m, long positions);

/* From a norm's output n [T, D]: out [T, D], this rank's terms of a sum; NULL where only what the backward
 * pass reads is wanted. */
void attention_forward(struct model *m, int layer, struct attention *a, const real *n, real *out);
/* From the sum's gradient dout [T, D]: adds to weights' gradients; dn [T, D], this rank's terms of n's. */
void attention_backward(struct model *m, int layer, struct attention *a, const real *dout, const real *n,
                        real *dn);

#endif
