/* Private to model/: what the passes of a model share. Shapes: T = B·S tokens of a micro-batch, D hidden
 * size, H and K heads and key/value heads of width hd, F MLP width, V vocabulary, these four this rank's
 * part. R own rows of the stream: all T but with sequence_parallel over several ranks, where a buffer of R
 * rows begins with the rank's first. "Saved" buffers live from the forward to the backward pass; scratch
 * buffers hold nothing between calls. */
#ifndef GDN_MODEL_INTERNAL_H
#define GDN_MODEL_INTERNAL_H

#include "dist/comm/axis.h"
#include "dist/layout/layout.h"
#include "dist/layout/table.h"
#include "kernels/base/arena.h"
#include "kernels/ops.h"
#include "kernels/lowrank/lowrank.h"
#include "model/params/config.h"
#include "model/params/edges.h"
#include "model/model.h"

/* A weight and its gradient, or the first of several that are neighbours in memory. */
struct tensor {
    real *w, *g;
};

/* How this rank shares in the connections of every layer (dist/layout/layout.h), with t tensor ranks. Of its
 * slots' gates it has all channels or every t-th part of them; of multihead's columns always that part. */
struct delta_part {
    int first, step; /* it computes slots first, first + step, …; 0, 1: all */
    bool channels;   /* it has Hd and W channels of each slot, others have the rest */
    bool leads;      /* what all ranks compute whole is counted, and goes back, on this one */
    long Hd;         /* bottleneck */
    long W;          /* full: columns of the gate */
    long heads, D;   /* multihead: heads and their columns */
    long column;     /* the first of the D (or, where these are divided, W) columns */
};

/* How many of a layer's first n slots are this rank's: its stacks and what it saves hold only these, packed.
 */
static inline int own_slots(const struct delta_part *part, int n) {
    return n > part->first ? (n - part->first - 1) / part->step + 1 : 0;
}

/* Beyond enum recompute_level: nothing is kept for a backward pass, since none follows. */
enum { LEVEL_NOTHING = LEVEL_FULL + 1 };

/* A layer's connections: tensors of this rank's slots stacked in slot order, and what is saved for the
 * backward pass. In shapes n counts the rank's slots, `all` those of all ranks; Hd, W, heads and D' are the
 * rank's channels (struct delta_part). A pass uses the active slots, packed. */
struct connections {
    int n;                   /* edges that lead into this layer, whichever ranks'; 0: none */
    int level;               /* enum recompute_level, or LEVEL_NOTHING */
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

struct layer {
    int level; /* enum recompute_level, or LEVEL_NOTHING, of all but the connections */
    struct tensor norm1, qkv, o, norm2, gate_up, down;
    struct connections connections;
    /* Saved. x, the layer's input, is the z of the layer below. */
    real *n1, *rstd1;      /* [R, D], [R] */
    real *qkv_out;         /* [T, (H+2K)·hd], rotated */
    real *attention, *lse; /* [T, H·hd], [B, H, S] */
    real *a, *n2, *rstd2;  /* [R, D], [R, D], [R] */
    real *gu;              /* [T, 2F] */
    real *y;               /* [R, D]; NULL where no connection leads here: then it is z's own rows */
    real *z;               /* [T, D]; NULL where nothing reads more than its own rows (nodes.c) */
};

/* A node's output that is kept as own rows (nodes.c) or as low-rank factors (compress.c). */
struct packed {
    int top;     /* the highest layer of the chunk that reads the node */
    real *q, *b; /* [T, k], [k, D] the factors; NULL where there are none */
};

/* What one micro-batch in flight keeps of a chunk of layers. */
struct slot {
    struct layer *layer;   /* [num_layers], those of the chunk */
    real *x0;              /* [T, D] embedding output, on the first stage where it is whole; else NULL */
    real **rstd;           /* [num_layers + 1], entry 1 + node: [R] node_rstd's; NULL where none is needed */
    bool *rstd_known;      /* [num_layers + 1] filled in this micro-batch */
    struct packed *packed; /* [num_layers] */
    real **rows;           /* [num_layers + 1], entry 1 + node: [R, D]; NULL where the output is kept whole */
};

struct chunk {
    struct span span;
    bool first, last; /* of all stages: with the embedding, with final norm and head */
    int slots;
    struct slot *slot;
};

/* The one-token form: keys and values of the tokens so far, per layer [capacity, K·hd]. */
struct cache {
    long length;
    real **keys, **values;
};

/* Where a backward pass that may come in several calls has got to. */
struct walk {
    bool on;
    int chunk, slot, next; /* the layer that comes next */
    bool whole;            /* all rows of m->g are valid */
    bool *owed; /* [num_layers + 1], entry 1 + node: gradients left there are yet to be collected */
};

struct model {
    struct model_config config;
    const struct table *table;
    const struct state *state;
    const struct ops *ops;
    struct layout layout;
    struct axis *tensor, alone; /* the tensor axis; points to `alone`, of one rank, for a whole model */
    struct edges edges;
    struct arena saved, nodes, scratch; /* nodes: their outputs, as far as saved */
    struct arena weights;               /* of a planned model: `planned_state` */
    struct arena tokens;                /* of rows_of_pass alone, which plans leave out */
    struct arena staging; /* host memory, where the device is not the host: what crosses between the two */
    struct state planned_state;
    bool training, planned;    /* planned: addresses without memory behind them */
    long batch, length;        /* capacity of a micro-batch */
    int form;                  /* enum form: how linear maps of δ and the mean are computed */
    struct cache *cache;       /* generation, or NULL */
    bool rows_divided;         /* sequence_parallel over more than one rank */
    long rows_most;            /* R for passes of full capacity, the same on all ranks */
    long sums;                 /* most elements that are summed over the tensor axis in one call */
    int status;                /* of the first pass that failed */
    double connection_seconds; /* model_connection_seconds */
    int total_for;             /* active distances … */
    long total;                /* … that give the whole model so many edges (total_edges) */

    /* This rank's part. Of layers and vocabulary that are elsewhere the tensors are NULL. */
    int chunks;
    struct chunk *chunk; /* [chunks] */
    long H, K, F;        /* heads, key/value heads, MLP width */
    long V, first_token; /* rows of the vocabulary, and the first of them */
    struct tensor embed, norm, head;
    struct layer *held;         /* [num_layers] tensors of the layers held; slots have copies */
    struct layer shared;        /* the saved buffers that layers do not have of their own but use in turn */
    const struct layer *holder; /* for whose backward pass `shared` holds what its forward pass wrote */
    const struct connections *delta_holder; /* the same of its connections; NULL: nobody's */

    /* The pass in progress. */
    const struct pass *pass;
    long B, S, T;
    long row0, rows;  /* own rows of the stream: all of them but with sequence_parallel */
    bool gradients;   /* a backward pass follows, or is this */
    struct span span; /* of its chunk */
    struct slot *slot;
    struct layer *layer; /* the slot's */
    real *g;             /* [T, D] gradient of the stream that the backward pass walks down: pass->gradient */
    struct walk walk;

    real *cosine, *sine;     /* [positions, hd/2] */
    int32_t *input, *target; /* [T] */
    int32_t
        *rows_of_pass; /* [batch, length + 1] model_train's and model_loss's, where they are not the host's */
    struct loss_sums *sums_of_pass; /* of model_train and model_loss */

    /* Scratch. */
    real *whole;          /* [T, D] where rows are divided: all rows of the block `whole_of` (stream_all) */
    const real *whole_of; /* NULL: of none */
    real *nf, *rstdf;     /* [T, D], [R] final norm; nf is `whole` where there is that */
    real *t1, *t2;        /* [T, D], [R, D]; t2 only without training, as the y of all layers */
    real *h;              /* [T, F] */
    real *dgu;            /* [T, 2F] */
    real *dh;             /* [T, F] */
    real *dqkv;           /* [T, (H+2K)·hd] */
    real *work;           /* [B, H, S] */
    real *losses;         /* [T] */
    real *logits;         /* [logit_rows, V] */
    long logit_rows;
    real *largest, *exp_sums; /* [logit_rows], [2, logit_rows] of a vocabulary that is divided */
    real *whole_g;            /* [T, D] the gradient where one chunk is the whole model */
    real **deposit;  /* [num_layers + 1], entry 1 + node: [T, D] gradients left at a node by layers of the
                        chunk above it; NULL where no edge of that chunk starts. Nodes have one in turn */
    double compress; /* part of the full rank that sources keep, 0: they are not compressed */
    struct lowrank lowrank;            /* then */
    real *split_x, *split_q, *split_b; /* staging: [T, D], [T, k], [k, D] of a source on its way to factors */
    real *seen, *seen_gates;           /* staging: [T, D], [T, n·widest gate] of a watched connection */
    real **unpacked; /* [num_layers] whole outputs of nodes that have a buffer in turn (nodes.c) */
    bool turns;      /* where rows are divided: sources have */
    struct delta_part part;
    struct projection *projection; /* [edges.count], or NULL where no source travels narrow */

    /* Scratch of the connections: enough for the layer with most of them. n, Hd and so on as in struct
     * connections. */
    real *delta, *mean; /* [T, D] */
    real *dt;           /* [T, D] */
    real *dv;           /* [T, n·max(Hd, G)] */
    real *dx;           /* [T, n·G] */
    real *dgate;        /* [T, max(W, G)] */
    real *dweight;      /* [T, n] */
    real *dalpha;  /* [T, all] gradient of attention's weights; dweight where the slots are not dealt out */
    real *dr, *k;  /* [n, T], [T] */
    real *ct, *cs; /* [T], [all, T] */
    real *dc;      /* multihead [T, all, D] */
    real *gram;    /* [Hd, Hd] */
    real *kv;      /* [T, n·Hd] */
    /* With several tensor ranks: columns of this one, compact. */
    real *columns_t, *columns_s;   /* [T, D/t] of target and source */
    real *columns_d, *columns_out; /* [T, D/t] */
    real *columns_c, *columns_dc;  /* multihead [T, all, D'] */
};

/* One active slot of a layer. */
struct incoming {
    const struct edge *edge;
    const real *s, *rs;   /* [T, D] source; where it is only here as a strip NULL. [R] its inverse rms */
    const real *strip;    /* narrow.c; of all tokens, and so is its gradient */
    real *ds;             /* [T, D] gradient of s, added to */
    real *strip_gradient; /* overwritten */
};

/* One pass over a layer's connections. */
struct delta_pass {
    struct model *m;
    struct connections *c;
    int all;                             /* active slots */
    int n;                               /* of which this rank computes n, see own() */
    long total;                          /* active edges of the whole model */
    long row0, rows;                     /* T below: all tokens, or the own ones of on_own_rows */
    bool works;                          /* this rank's backward pass goes through gates of its own */
    const real *t;                       /* [T, D] target */
    struct incoming slot[MAX_DISTANCES]; /* [all] */
    real *dt;                            /* [T, D] gradient of t, added to */
    struct loss_sums *sums;
    struct connection_sums *each; /* [edges] of the whole model; NULL: not wanted */
    bool measure;                 /* compute the sparsity and entropy sums */
    bool again;                   /* what the forward pass has not kept: sums have been counted then */
    double sparsity, entropy;     /* gradient weights of one token of one connection; 0: none */
};

/* This rank's i-th active slot. */
static inline const struct incoming *own(const struct delta_pass *p, int i) {
    return &p->slot[p->m->part.first + i * p->m->part.step];
}

/* delta.c: the same pass over this rank's own rows alone, for what all tensor ranks would compute alike: with
 * sequence_parallel each does it for its own tokens. Else it is the pass itself. */
struct delta_pass on_own_rows(const struct delta_pass *p);
/* Do all tensor ranks need the same maps of the means, so that each computes them for its own rows? */
static inline bool shares_means(const struct model *m) {
    return m->rows_divided && m->part.channels;
}
/* z = y + aggregate(contributions); backward adds to g and to the sources' deposits. */
void connections_forward(struct model *m, int layer, const struct loss_options *options,
                         struct loss_sums *sums);
void connections_backward(struct model *m, int layer, const struct loss_options *options);
/* What the layer's level has dropped of its active connections, of which there are some. */
void connections_again(struct model *m, int layer, const struct loss_options *options);

/* bottleneck.c, gated.c: the contributions of one kind. `fill` computes gates and whatever else is saved,
 * from the linear maps on or (`maps` false) from the maps as they were saved. `contribute` adds weighted
 * contributions to out (row distance ldo; slot i at out + i·step; of `full` with divided channels only these
 * columns), or overwrites it with them where `add` is false; backward reads dout [T, D] likewise, always
 * whole, and fills m->dweight. */
void bottleneck_fill(struct delta_pass *p, bool maps);
void bottleneck_contribute(struct delta_pass *p, bool add, real *out, long ldo, long step);
void bottleneck_backward(struct delta_pass *p, const real *dout, long ldo, long step);
void gated_fill(struct delta_pass *p, bool maps);
void gated_contribute(struct delta_pass *p, bool add, real *out, long ldo, long step);
void gated_backward(struct delta_pass *p, const real *dout, long ldo, long step);
/* bottleneck.c: are the sparsity term's gradients kept at a recompute level? They are dropped where they can
 * be had from v alone. */
bool bottleneck_keeps_extra(const struct model *m, int level);

/* measure.c: adds to the sums of this rank's i-th slot, where they are wanted: its gates [T, W] with row
 * distance ld (scratch [T, W] where that is not W), and of all its slots c->rms [n, T]. */
void measure_gates(const struct delta_pass *p, int i, long W, const real *gate, long ld, real *scratch);
void measure_contributions(const struct delta_pass *p);
/* The same file: seconds of a clock, for m->connection_seconds; 0 on a device that runs by itself. */
double connections_clock(const struct model *m);

/* watch.c: shows the active connections; overwrites m->delta. */
void watch_connections(const struct delta_pass *p);

/* project.c: maps[i] = W_i δ_i (difference) or W_i (s_i+t)/2 (mean) of all slots: W [n·width, D], out [T,
 * n·width], T the pass's. */
enum map { MAP_DIFFERENCE, MAP_MEAN };
void project_forward(struct delta_pass *p, enum map map, const real *w, long width, real *out);
/* From dout [T, n·width]: adds to w.g, p->dt and p->ds. */
void project_backward(struct delta_pass *p, enum map map, struct tensor w, long width, const real *dout);
/* The maps [T, n·G] of the means, all rows of them on all ranks. Of their gradient dout each rank has its
 * terms; what comes back is the pass, over all rows or own ones, that goes on with their sum. */
void means_forward(struct delta_pass *p, const real *w, real *out);
struct delta_pass means_sum(struct delta_pass *p, real *dout);

/* normalize.c: the row factors r = γ/max(‖δ‖, ε), and their backward pass: from dr [T] of slot i adds to
 * scale's gradient and to k [T], the factor of δ in δ's gradient. Without `normalize` both do nothing. */
void normalize_forward(struct delta_pass *p);
void normalize_backward(struct delta_pass *p, int slot, const real *dr, real *k);
/* The row factors of a slot, or NULL. */
const real *row_factor(const struct delta_pass *p, int slot);

/* aggregate.c: fills the weights [T, n] of the contributions; backward reads m->dweight. */
void aggregate_forward(struct delta_pass *p);
void aggregate_backward(struct delta_pass *p);
/* Selection's queries and keys, computed again. */
void aggregate_again(struct delta_pass *p);
/* multihead: own rows z [R, D] += Σ α c; of that queries and keys alone; backward fills m->dc from dz. */
void multihead_forward(struct delta_pass *p, real *z);
void multihead_products(struct delta_pass *p);
void multihead_backward(struct delta_pass *p, const real *dz);

/* Blocks of a strip [T, strip_width] (narrow.c), one after the other. */
enum strip_block { STRIP_PROJ, STRIP_GATE_IN, STRIP_SELECT, STRIP_RSTD };
long strip_offset(const struct model *m, long T, enum strip_block block);

/* delta/create.c: this rank's part of all connections (before any other call; GDN_INTERNAL without
 * memory); the tensors of layer l's; what a layer's connections save; scratch for layers of up to `most`
 * connections. */
int prepare_connections(struct model *m);
void find_connections(struct model *m, int l);
void lay_out_connections(struct model *m, struct connections *c, long T);
void lay_out_delta_scratch(struct model *m, long T, long most);

/* create.c: the tensor of a name, or the first of a stack; NULL pointers where this rank has none. */
struct tensor find_tensor(const struct model *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* create.c: the next `count` elements of an arena. */
static inline real *take(struct arena *arena, long count) {
    return arena_take(arena, (size_t)count * sizeof(real));
}
/* A saved buffer of a layer or of its connections: its own, or from level `from` on that of `common`, the
 * part of m->shared that is like it, which itself has those that somebody needs. */
#define SAVE(m, owner, common, member, count, from)                                                          \
    ((owner)->member = (owner)->level < (from) ? (owner) == (common) ? NULL : take(&(m)->saved, count)       \
                       : (owner) == (common) ? take(&(m)->scratch, count)                                    \
                                               : (common)->member)

/* create.c: model_create with a rotary table of `positions`; without `state` a planned model. */
int model_build(const struct model_config *config, const struct table *table, const struct state *state,
                const struct ops *ops, const struct model_part *part, long batch, long length, long positions,
                bool training, struct model **out);

/* pass.c: selects the pass's chunk and slot. */
void begin_pass(struct model *m, const struct pass *pass);
/* The forward pass through its layers. */
void chunk_forward(struct model *m, struct loss_sums *sums);
/* Does an active edge start from the node? */
bool node_is_read(const struct model *m, int node);
/* Active edges of the whole model: what the regularisers average over. */
long total_edges(struct model *m, int active);
/* Records the first failure of a pass (model_status). */
void pass_failed(struct model *m, int status);

/* Is a node computed by the pass's chunk? */
static inline bool own_node(const struct model *m, int node) {
    return node < 0 ? m->span.first == 0 : node >= m->span.first && node < m->span.end;
}
/* The output of a node: a layer's z, or the embedding output for −1; of a node that another chunk computes
 * what the pass brings; NULL where that is only a strip. */
static inline real *node_output(const struct model *m, int node) {
    if (own_node(m, node)) return node < 0 ? m->slot->x0 : m->layer[node].z;
    return m->pass->node ? m->pass->node[1 + node] : NULL;
}
/* The own rows [R, D] of a node's output. */
static inline real *node_rows(const struct model *m, int node) {
    real *rows = own_node(m, node) ? m->slot->rows[1 + node] : NULL;
    return rows ? rows : node_output(m, node) + m->row0 * m->config.hidden_size;
}
/* [R] inverse rms of each own row of a node's output, for selection. Of a node whose next layer is in the
 * chunk it is that layer's first norm's, else it is computed once a micro-batch, with the same bits. */
const real *node_rstd(struct model *m, int node);

/* deposits.c: [T, D] where gradients for a node are added, in a backward pass: the pass's own buffer, or
 * scratch. NULL where the pass brings only a strip. */
real *node_deposit(const struct model *m, int node);
/* A walk begins: something has been left where the pass brings a buffer. */
void begin_deposits(struct model *m);
/* Zeroes those that the layer is the first to leave something in. */
void open_deposits(struct model *m, int layer);
/* Adds to the stream's gradient what layers above have left at a node: each rank's terms of it. */
void collect_deposit(struct model *m, int node);
/* Records a failure where something was left and not collected. */
void check_deposits(struct model *m);
void lay_out_deposits(struct model *m, long T);
/* Does an edge lead from the node into one of these layers? */
bool feeds(const struct model *m, int node, struct span span);

/* stream.c: x [T, D] holds this rank's terms of a sum over the tensor axis; afterwards its own rows hold the
 * sum. */
void stream_sum(struct model *m, real *x);
/* The own rows of x [T, D] are valid; afterwards all are. */
void stream_whole(struct model *m, real *x);
/* All rows [T, D] of a block of which own [R, D] are here: itself where rows are not divided, else scratch
 * until another block is asked for. Who writes a block anew says so before. */
const real *stream_all(struct model *m, const real *own);
void stream_written(struct model *m, const real *own);
/* The own rows of x [T, D]. */
static inline real *own_rows(const struct model *m, const real *x) {
    return (real *)x + m->row0 * m->config.hidden_size;
}

/* nodes.c: whole outputs of nodes that have one in turn (before any slot), and how many there are; the output
 * of a slot's node, NULL where only rows are kept. All rows of a node's output from the own ones; before a
 * layer's backward pass, of the nodes that it is the highest to read (node_top). A forward pass begins:
 * records a failure where it comes between calls of a backward pass. */
int lay_out_turns(struct model *m, long T);
real *lay_out_node(struct model *m, const struct chunk *chunk, struct slot *slot, int node, long T);
void gather_node(struct model *m, int node);
void gather_sources(struct model *m, int layer);
int node_top(const struct model *m, struct span span, int node);
void check_turns(struct model *m);

/* compress.c: what compressing needs (before any slot); a node's factors. After a layer's forward pass,
 * compresses the nodes that it was the last to read; before its backward pass brings them back. */
void lay_out_unpacked(struct model *m, long T);
void lay_out_factors(struct model *m, struct packed *packed, long T);
void pack_sources(struct model *m, int layer);
void unpack_sources(struct model *m, int layer);

/* The products of a layer with its trunk's weights, numbered among all layers' (ops.h, product). */
enum site { SITE_QKV, SITE_O, SITE_GATE_UP, SITE_DOWN, SITES };
static inline int site_of(int layer, enum site site) {
    return layer * SITES + (int)site;
}

/* forward.c */
void embedding_forward(struct model *m);
void layer_forward(struct model *m, int layer);
/* Its parts that a backward pass may need again: a norm's output n [R, D] and rstd of own rows x [R, D];
 * qkv_out and attention from n1; gu from n2. */
void norm_rows(struct model *m, const real *x, struct tensor norm, real *n, real *rstd);
void layer_attend(struct model *m, int layer);
void layer_expand(struct model *m, int layer);

/* recompute.c: the forward pass of a layer, or of its connections, is done: notes whose m->shared is. */
void hold_layer(struct model *m, int layer);
void hold_connections(struct model *m, int layer);
/* Before their backward pass: computes what is not kept, unless m->shared still has it. */
void recompute_layer(struct model *m, int layer);
void recompute_connections(struct model *m, int layer);

/* backward.c: from m->g, the gradient of the layer's z, to that of its x. */
void layer_backward(struct model *m, int layer);
void embedding_backward(struct model *m);
/* All rows of m->g become valid. */
void gradient_whole(struct model *m);

/* head.c: final norm of own rows x, logits of `rows` tokens from token `at` on; and with both the loss in
 * blocks of rows, with gradients where m->gradients: then m->g is the gradient of x. */
void head_norm(struct model *m, const real *x);
void head_logits(struct model *m, long at, long rows);
void head_loss(struct model *m, const real *x, struct loss_sums *sums);

/* Of two sizes of a buffer. */
static inline long largest(long a, long b) {
    return a > b ? a : b;
}

#endif
