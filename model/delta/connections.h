/* Private to model/delta/: the delta connections that lead into a layer (model.md, 2 to 5). */
#ifndef GDN_CONNECTIONS_H
#define GDN_CONNECTIONS_H

#include "model/base/base.h"
#include "model/delta/aggregate.h"
#include "model/delta/gate.h"
#include "model/rule/rule.h"

/* How this rank shares in the connections of every layer (dist/layout/layout.h), with t tensor ranks. Of its
 * connections' gates it has all channels or a t-th part of them (own_part); where contributions are combined
 * by column always that part. */
struct delta_part {
    int first, step; /* it computes connections first, first + step, …; 0, 1: all */
    bool channels;   /* it has a part of each connection's channels, others have the rest */
    bool leads;      /* what all ranks compute whole is counted, and goes back, on this one */
    long W;          /* columns of contributions, where these are divided */
    long D;          /* columns, where contributions are combined by column */
    long column;     /* the first of the D (or, where these are divided, W) columns */
};

/* How many of a layer's n connections are this rank's: its stacks and what it saves hold only these. */
static inline int own_connections(const struct delta_part *part, int n) {
    return n > part->first ? (n - part->first - 1) / part->step + 1 : 0;
}

/* A layer's connections: tensors of this rank's connections stacked in their order, and what is saved for the
 * backward pass. In shapes n counts the rank's connections, `all` those of all ranks; W and D' are the
 * rank's channels (struct delta_part). Tensors stay where they are; what a pass saves of active connections
 * lies packed, as if there were no others. */
struct connections {
    int n;                               /* edges that lead into this layer, whichever ranks'; 0: none */
    int policy;                          /* enum recompute_policy, or POLICY_NO_BACKWARD */
    const struct edge *edge;             /* [n] */
    struct tensor leaf[MAX_GATE_LEAVES]; /* the gate's, in its order, each of n connections */
    struct tensor scale, mix;            /* [n] each, or NULL */
    struct tensor layer_leaf[MAX_AGGREGATE_LEAVES]; /* the aggregate's, in its order */
    /* Saved. */
    real *inv, *r; /* [n, T] inverse norms and row factors of `normalize`, or NULL */
    real *weight;  /* [T, n] what each contribution is multiplied by */
    real *rms;     /* [n, T] of the contributions, for the sparsity term; of padding 0 */
    real *alpha;   /* [T, all] shares, where the aggregate computes them */
    real *contribution;     /* [T, all, D] weighted, where the aggregate combines them */
    void *gate, *aggregate; /* what they save: their own structs (gate.h, aggregate.h), behind this one */
};

/* Maps of connections: the gate's, and behind them those of sources that the aggregate has. */
enum { ALL_MAPS = MAX_MAPS + MAX_AGGREGATE_MAPS };

/* The weights that project one edge's source where it travels narrow (narrow.c); NULL where they are not
 * here. */
struct projection {
    struct tensor map[ALL_MAPS]; /* [width, D] each */
};

/* A map, as this rank computes it. */
struct map_part {
    const char *name; /* its leaf's */
    int leaf;         /* the gate's, or the aggregate's */
    enum map_of of;   /* the gate's */
    long width;       /* of one connection */
    bool shared; /* all tensor ranks need all of it: each computes its own rows */
};

/* One active connection of a layer. */
struct source {
    const struct edge *edge;
    const real *s, *rs;       /* [T, D] source; NULL where it came projected. [R] its inverse rms */
    const real *projected;    /* narrow.c; of all tokens, and so is its gradient */
    real *ds;                 /* [T, D] gradient of s, added to */
    real *projected_gradient; /* overwritten */
};

/* Which of a layer's connections are this rank's and active; any of them may be. */
struct own_active {
    int among[MAX_DISTANCES]; /* [n] their numbers among all active ones of the layer */
    int place[MAX_DISTANCES]; /* [n] and in this rank's stacks */
};

/* What the connections of all layers share. */
struct delta_state {
    const struct gate *gate;
    const struct aggregate *aggregate;
    struct delta_part part;
    struct connections *shared; /* the saved buffers that layers do not have of their own but use in turn */
    struct projection *projection; /* [edges.count], or NULL where no source travels narrow */
    struct map_part map[ALL_MAPS]; /* [the gate's, then the aggregate's] */
    int projection_way;            /* enum projection_way: how linear maps of δ and the mean are computed */
    struct own_active own;                   /* of the pass in progress (struct delta_pass), like: */
    struct source source[MAX_DISTANCES];
    struct source own_source[MAX_DISTANCES]; /* the same, own rows of them */
    real *seen, *seen_gates; /* staging: [T, D], [T, n·widest gate] of a watched connection */

    /* Scratch: enough for the layer with most of them, and for each of gdn's gates. n and so on as in struct
     * connections; Hd, this rank's part of delta.hidden, and G, delta.gate_hidden. */
    real *difference, *mean; /* [T, D] */
    real *dt;                /* [T, D] */
    real *dv;                /* [T, n·max(Hd, G)] */
    real *dx;                /* [T, n·G] */
    real *dgate;             /* [T, max(W, G)] */
    real *kept;              /* [T, max(W, G)] a connection's gate but for what is dropped; see gated.c */
    real *dweight;           /* [T, n] */
    real *dalpha;            /* [T, all] gradient of shares; dweight where divided by channel */
    real *dr, *k;            /* [n, T], [T] */
    real *ct, *cs;           /* [T], [all, T] */
    real *dc;                /* [T, all, D] gradient of contributions, where these are combined */
    real *gram;              /* [Hd, Hd] */
    real *kv;                /* [T, n·Hd] */
    void *gate_scratch, *aggregate_scratch; /* their own structs (gate.h, aggregate.h) */
    /* With several tensor ranks: columns of this one, compact. */
    real *columns_t, *columns_s;   /* [T, D/t] of target and source */
    real *columns_d, *columns_out; /* [T, D/t] */
    real *columns_c;               /* [T, all, D'] of contributions, where these are combined */
};

#endif
