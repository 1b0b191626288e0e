/* Private to model/: the delta connections that lead into a layer (model.md, 2 to 5). */
#ifndef GDN_CONNECTIONS_H
#define GDN_CONNECTIONS_H

#include "model/base/base.h"

/* How this rank shares in the connections of every layer (dist/layout/layout.h), with t tensor ranks. Of its
 * connections' gates it has all channels or a t-th part of them; of multihead's columns always that part. */
struct delta_part {
    int first, step; /* it computes connections first, first + step, …; 0, 1: all */
    bool channels;   /* it has Hd and W channels of each connection, others have the rest */
    bool leads;      /* what all ranks compute whole is counted, and goes back, on this one */
    long Hd;         /* bottleneck */
    long W;          /* full: columns of the gate */
    long heads, D;   /* multihead: heads and their columns */
    long column;     /* the first of the D (or, where these are divided, W) columns */
};

/* How many of a layer's first n connections are this rank's: its stacks and what it saves hold only these,
 * packed. */
static inline int own_connections(const struct delta_part *part, int n) {
    return n > part->first ? (n - part->first - 1) / part->step + 1 : 0;
}

/* A layer's connections: tensors of this rank's connections stacked in their order, and what is saved for the
 * backward pass. In shapes n counts the rank's connections, `all` those of all ranks; Hd, W, heads and D' are
 * the rank's channels (struct delta_part). A pass uses the active connections, packed. */
struct connections {
    int n;                   /* edges that lead into this layer, whichever ranks'; 0: none */
    int policy;              /* enum recompute_policy, or POLICY_NO_BACKWARD */
    const struct edge *edge; /* [n] */
    /* bottleneck: proj [n·Hd, D], gate_in [n·G, D] + bias, gate_out [n][Hd, G] + bias, out [n·Hd, D]
     * (transposed). full: proj [n][W, D].  adaptive: proj [n·G, D] (context), gate_in [n][G, G+1] + bias,
     * gate_out [n][G, G] + bias. */
    struct tensor proj, gate_in, gate_in_bias, gate_out, gate_out_bias, out;
    struct tensor scale, mix;         /* [n] each, or NULL */
    struct tensor select, query, key; /* [a, D], [D', D], [D', D], or NULL */
    /* Saved. */
    real *inv, *r; /* [n, T] inverse norms and row factors of `normalize`, or NULL */
    real *weight;  /* [T, n] what each contribution is multiplied by */
    real *p; /* bottleneck [T, n·Hd], full [n, T, W], adaptive [T, n·G]: linear maps of δ or the mean */
    real *x, *h;     /* gate MLP before and after silu: bottleneck [T, n·G], adaptive [n, T, G] */
    real *gate;      /* bottleneck [T, n·Hd], full [n, T, W], adaptive [n, T, G] */
    real *v;         /* bottleneck [T, n·Hd]: weighted u ⊙ g */
    real *extra;     /* bottleneck [T, n·Hd]: gradient of the sparsity term; NULL without a regulariser */
    real *out_extra; /* the same, on `out`: [n][Hd, Hd], to be multiplied by it, or of divided channels
                        [n][Hd, D] */
    real *rms;       /* [n, T] of the contributions, for the sparsity term */
    real *magnitude, *square;        /* adaptive [n, T] */
    real *select_query, *select_key; /* attention [R, a], [R, all, a]; multihead [T, D'], [T, all, D'] */
    real *rt;                        /* attention [R]: inverse rms of the target */
    real *alpha;                     /* attention [T, all]; multihead [T, all, heads] */
    real *c;                         /* multihead [T, all, D]: mixed contributions */
};

/* The weights that project one edge's source where it travels narrow (narrow.c); NULL where they are not
 * here. */
struct projection {
    struct tensor proj, gate_in, select; /* [Hd, D], [G, D], [a, D] */
};

/* What the connections of all layers share. */
struct delta_state {
    struct delta_part part;
    struct connections *held;  /* [num_layers] tensors of those held; activation sets have copies */
    struct connections shared; /* the saved buffers that they do not have of their own but use in turn */
    const struct connections *owner; /* for whose backward pass `shared` holds what its forward pass wrote */
    struct projection *projection;   /* [edges.count], or NULL where no source travels narrow */
    int projection_way;      /* enum projection_way: how linear maps of δ and the mean are computed */
    double seconds;          /* model_connection_seconds */
    real **source_gradient;  /* [num_layers + 1], entry 1 + node: [T, D] gradients left at a node by layers of
                                the chunk above it; NULL where no edge of that chunk starts. Nodes have one
                                in turn */
    real *seen, *seen_gates; /* staging: [T, D], [T, n·widest gate] of a watched connection */

    /* Scratch: enough for the layer with most of them. n, Hd and so on as in struct connections. */
    real *difference, *mean; /* [T, D] */
    real *dt;                /* [T, D] */
    real *dv;                /* [T, n·max(Hd, G)] */
    real *dx;                /* [T, n·G] */
    real *dgate;             /* [T, max(W, G)] */
    real *dweight;           /* [T, n] */
    real *dalpha;            /* [T, all] gradient of attention's weights; dweight where divided by channel */
    real *dr, *k;            /* [n, T], [T] */
    real *ct, *cs;           /* [T], [all, T] */
    real *dc;                /* multihead [T, all, D] */
    real *gram;              /* [Hd, Hd] */
    real *kv;                /* [T, n·Hd] */
    /* With several tensor ranks: columns of this one, compact. */
    real *columns_t, *columns_s;   /* [T, D/t] of target and source */
    real *columns_d, *columns_out; /* [T, D/t] */
    real *columns_c, *columns_dc;  /* multihead [T, all, D'] */
};

/* create.c: this rank's part of all connections (before any other call; GDN_INTERNAL without memory); the
 * tensors of layer l's; what a layer's connections save; what those of this rank do not keep, laid out once:
 * share_connections first for each of its layers; scratch for the layer with most of them. */
int prepare_connections(struct model *m);
void find_connections(struct model *m, int l);
void lay_out_connections(struct model *m, struct connections *c, long T);
void share_connections(struct model *m, int l);
void lay_out_shared_connections(struct model *m, long T);
void lay_out_delta_scratch(struct model *m, long T);

/* delta.c: z = y + aggregate(contributions); backward adds to m->g and to the sources' gradients. */
void connections_forward(struct model *m, int layer, const struct loss_options *options,
                         struct loss_sums *sums);
void connections_backward(struct model *m, int layer, const struct loss_options *options);
/* Before their backward pass: computes what is not kept, unless `shared` still has it. */
void recompute_connections(struct model *m, int layer);

/* normalize.c: the norms of the layer's differences from what compressed sources came back as. Of two layers
 * next to each other a difference is small beside either, so what factors miss of a source may be many times
 * the difference: by the norms of the forward pass its gradient would grow with the square of that. */
void renew_norms(struct model *m, int layer);

/* source.c: [T, D] where gradients for a node are added, in a backward pass: the pass's own buffer, or
 * scratch. NULL where the pass brings only a projected source. */
real *source_gradient_of(const struct model *m, int node);

#endif
