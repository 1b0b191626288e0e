/* Private to model/mixer/: what the files of attention share. In shapes H and K are this rank's heads and
 * key/value heads of width hd. */
#ifndef GDN_ATTENTION_H
#define GDN_ATTENTION_H

#include "model/mixer/context.h"
#include "model/mixer/head_norm.h"
#include "model/mixer/mixer.h"

enum { WEIGHT_QKV, WEIGHT_O, WEIGHTS };

/* Of one layer, and what a micro-batch saves of it. */
struct attention {
    int policy; /* the layer's */
    struct tensor qkv, o;
    struct tensor qkv_bias, o_bias; /* [(H+2K)·hd], [D], where there are any */
    struct head_norm norm;
    real *qkv_out;   /* [T, (H+2K)·hd], rotated */
    real *out, *lse; /* [T, H·hd], [B, H, S] */
};

struct attention_common {
    real *cosine, *sine; /* [positions, hd/2] */
    /* Scratch of the backward pass. */
    real *dqkv;             /* [T, (H+2K)·hd] */
    real *work;             /* [B, H, S] */
    real *dout;             /* [T, H·hd] gradient of a layer's out; NULL where it fits into dn */
    real *norm;             /* [T, H·hd] of head_norm, forward too; NULL where there is none */
    struct context context; /* with several context ranks */
};

/* Keys and values of the tokens so far. */
struct attention_cache {
    long length;
    real *keys, *values; /* [capacity, K·hd] */
};

struct attention_shape {
    long D, H, K, hd, wide; /* wide: a row of q, k and v */
    struct context_heads heads;
};
struct attention_shape attention_shape_of(const struct model *m);

/* attention_project.c: from a norm's output n [T, D] queries, keys and values, normed and rotated, in
 * qkv_out; the first token's position is `position`. From attention's
 * output this rank's terms of the mixer's, out [T, D]. And back from common's dqkv: adds to weights'
 * gradients, dn [T, D] is this rank's terms of that of n; work [T, H·hd] is scratch, which may be dn. */
void attention_project(struct model *m, const struct mixing *x, const real *n, long position);
void attention_project_out(struct model *m, const struct mixing *x, real *out);
void attention_project_back(struct model *m, const struct mixing *x, const real *n, real *dn, real *work);

/* attention_decode.c: generation (struct mixer). */
void attention_lay_out_decode(struct model *m, const struct mixing *x, struct arena *arena, long capacity);
void attention_reset(struct model *m, const struct mixing *x);
void attention_rewind(const struct mixing *x, long length);
void attention_step(struct model *m, const struct mixing *x, const real *n, real *out);
void attention_pass_by(struct model *m, const struct mixing *x, const real *n);

#endif
