/* Private to model/: what the passes of a model share. Shapes: T = B·S tokens of a micro-batch, D hidden
 * size, H and K heads and key/value heads of width hd, F MLP width, V vocabulary. "Saved" buffers live from
 * the forward to the backward pass; scratch buffers hold nothing between calls. */
#ifndef GDN_MODEL_INTERNAL_H
#define GDN_MODEL_INTERNAL_H

#include "dist/table.h"
#include "kernels/base/arena.h"
#include "kernels/ops.h"
#include "model/config.h"
#include "model/edges.h"
#include "model/model.h"

/* A weight and its gradient, or the first of several that are neighbours in memory. */
struct tensor {
    real *w, *g;
};

/* A layer's connections: tensors of all slots stacked in slot order, and what is saved for the backward
 * pass. n counts the layer's edges; a pass uses the first `active` of them, packed. */
struct connections {
    int n;                   /* edges that lead into this layer; 0: none */
    const struct edge *edge; /* [n] */
    /* bottleneck: proj [n·Hd, D], gate_in [n·G, D] + bias, gate_out [n][Hd, G] + bias, out [n·Hd, D]
     * (transposed). full: proj [n][D, D].  adaptive: proj [n·G, D] (context), gate_in [n][G, G+1] + bias,
     * gate_out [n][G, G] + bias. */
    struct tensor proj, gate_in, gate_in_bias, gate_out, gate_out_bias, out;
    struct tensor scale, mix;         /* [n] each, or NULL */
    struct tensor select, query, key; /* [a, D], [D, D], [D, D], or NULL */
    /* Saved. */
    real *inv, *r; /* [n, T] inverse norms and row factors of `normalize`, or NULL */
    real *weight;  /* [T, n] what each contribution is multiplied by */
    real *p; /* bottleneck [T, n·Hd], full [n, T, D], adaptive [T, n·G]: linear maps of δ or the mean */
    real *x, *h;              /* gate MLP before and after silu: bottleneck [T, n·G], adaptive [n, T, G] */
    real *gate;               /* bottleneck [T, n·Hd], full [n, T, D], adaptive [n, T, G] */
    real *v;                  /* bottleneck [T, n·Hd]: weighted u ⊙ g */
    real *extra;              /* bottleneck [T, n·Hd]: gradient of the sparsity term, or NULL */
    real *rms;                /* [n, T] of the contributions, for the sparsity term */
    real *magnitude, *square; /* adaptive [n, T] */
    real *select_query, *select_key; /* attention [T, a], [T, n, a]; multihead [T, D], [T, n, D] */
    real *rt;                        /* attention [T]: inverse rms of the target */
    real *alpha;                     /* attention [T, n]; multihead [T, n, heads] */
    real *c;                         /* multihead [T, n, D]: mixed contributions */
};

struct layer {
    struct tensor norm1, qkv, o, norm2, gate_up, down;
    struct connections connections;
    /* Saved. x, the layer's input, is the z of the layer below. */
    real *n1, *rstd1;      /* [T, D], [T] */
    real *qkv_out;         /* [T, (H+2K)·hd], rotated */
    real *attention, *lse; /* [T, D], [B, H, S] */
    real *a, *n2, *rstd2;  /* [T, D], [T, D], [T] */
    real *gu;              /* [T, 2F] */
    real *y, *z;           /* [T, D]; z is y where no connection leads here */
};

/* The one-token form: keys and values of the tokens so far, per layer [capacity, K·hd]. */
struct cache {
    long length;
    real **keys, **values;
};

struct model {
    struct model_config config;
    const struct table *table;
    const struct state *state;
    const struct ops *ops;
    struct edges edges;
    struct arena arena;
    bool training;
    long batch, length;  /* capacity of a micro-batch */
    long B, S, T;        /* of the pass in progress */
    bool gradients;      /* a backward pass follows */
    int form;            /* enum form: how linear maps of δ and the mean are computed */
    struct cache *cache; /* generation, or NULL */

    struct tensor embed, norm, head;
    struct layer *layer;
    real *x0;                /* [T, D] embedding output */
    real *nf, *rstdf;        /* [T, D], [T] final norm */
    real *cosine, *sine;     /* [positions, hd/2] */
    int32_t *input, *target; /* [T] */

    /* Scratch. */
    real *t1, *t2; /* [T, D]; t2 only without gradients, as the y of all layers */
    real *h;       /* [T, F] */
    real *dgu;     /* [T, 2F] */
    real *dh;      /* [T, F] */
    real *dqkv;    /* [T, (H+2K)·hd] */
    real *work;    /* [B, H, S] */
    real *losses;  /* [T] */
    real *logits;  /* [logit_rows, V] */
    long logit_rows;
    real *g;        /* [T, D] gradient of the stream that the backward pass walks down */
    real **deposit; /* [num_layers + 1], entry 1 + source: [T, D] gradients left at a source by later layers;
                       NULL where no edge starts */
    /* Scratch of the connections: enough for the layer with most of them. */
    real *delta, *mean; /* [T, D] */
    real *dt;           /* [T, D] */
    real *dv;           /* [T, n·max(Hd, G)] */
    real *dx;           /* [T, n·G] */
    real *dgate;        /* [T, D] */
    real *dweight;      /* [T, n] */
    real *dr, *k;       /* [n, T], [T] */
    real *ct, *cs;      /* [T], [n, T] */
    real *dc;           /* multihead [T, n, D] */
    real *gram;         /* [Hd, Hd] */
    real *kv;           /* [T, n·Hd] */
};

/* One pass over a layer's connections. */
struct delta_pass {
    struct model *m;
    struct connections *c;
    const struct loss_options *options;
    int n;                            /* active slots */
    int total;                        /* active edges of the whole model */
    const real *t, *s[MAX_DISTANCES]; /* [T, D] target and sources */
    const real *rs[MAX_DISTANCES];    /* [T] inverse rms of the sources */
    real *dt, *ds[MAX_DISTANCES];     /* [T, D] gradients, added to */
    struct loss_sums *sums;
    bool measure;             /* compute the sparsity and entropy sums */
    double sparsity, entropy; /* gradient weights of one token of one connection; 0: none */
};

/* delta.c: z = y + aggregate(contributions); backward adds to g and to the sources' deposits. */
void connections_forward(struct model *m, int layer, const struct loss_options *options,
                         struct loss_sums *sums);
void connections_backward(struct model *m, int layer, const struct loss_options *options);

/* bottleneck.c, gated.c: the contributions of one kind. Forward adds weighted contributions to out (row
 * distance ldo; slot i at out + i·step), or overwrites where `add` is false; backward reads dout likewise and
 * fills m->dweight. */
void bottleneck_forward(struct delta_pass *p, bool add, real *out, long ldo, long step);
void bottleneck_backward(struct delta_pass *p, const real *dout, long ldo, long step);
void gated_forward(struct delta_pass *p, bool add, real *out, long ldo, long step);
void gated_backward(struct delta_pass *p, const real *dout, long ldo, long step);

/* project.c: maps[i] = W_i δ_i (difference) or W_i (s_i+t)/2 (mean) of all slots: W [n·rows, D], out [T,
 * n·rows]. */
enum map { MAP_DIFFERENCE, MAP_MEAN };
void project_forward(struct delta_pass *p, enum map map, const real *w, long rows, real *out);
/* From dout [T, n·rows]: adds to w.g, p->dt and p->ds. */
void project_backward(struct delta_pass *p, enum map map, struct tensor w, long rows, const real *dout);

/* normalize.c: the row factors r = γ/max(‖δ‖, ε), and their backward pass: from dr [T] of slot i adds to
 * scale's gradient and to k [T], the factor of δ in δ's gradient. Without `normalize` both do nothing. */
void normalize_forward(struct delta_pass *p);
void normalize_backward(struct delta_pass *p, int slot, const real *dr, real *k);
/* The row factors of a slot, or NULL. */
const real *row_factor(const struct delta_pass *p, int slot);

/* aggregate.c: fills the weights [T, n] of the contributions; backward reads m->dweight. */
void aggregate_forward(struct delta_pass *p);
void aggregate_backward(struct delta_pass *p);
/* multihead: z += Σ α c; backward fills m->dc from dz. */
void multihead_forward(struct delta_pass *p, real *z);
void multihead_backward(struct delta_pass *p, const real *dz);

/* head.c: final norm, logits and loss in blocks of rows; with gradients where `train`: then m->g is the
 * gradient of x. */
void head_loss(struct model *m, const real *x, const struct loss_options *options, bool train,
               struct loss_sums *sums);

/* forward.c */
void model_forward(struct model *m, const struct loss_options *options, struct loss_sums *sums);
/* The output of a node: a layer's z, or the embedding output for −1. */
static inline real *node_output(const struct model *m, int node) {
    return node < 0 ? m->x0 : m->layer[node].z;
}

/* backward.c: from m->g, the gradient of the last layer's output. */
void model_backward(struct model *m, const struct loss_options *options);

/* create.c: model_create with a rotary table of `positions`. */
int model_build(const struct model_config *config, const struct table *table, const struct state *state,
                const struct ops *ops, long batch, long length, long positions, bool training,
                struct model **out);

#endif
