/* A layout: which part of the model one rank holds. model/table/params.h turns it into that rank's parameter
 * table; the plan makes the layouts of ranks that do not exist. */
#ifndef GDN_LAYOUT_H
#define GDN_LAYOUT_H

#include <stdbool.h>

#include "dist/layout/axes.h"
#include "kernels/base/wire.h"

/* Consecutive layers [first, end), as one rank computes them in one go. The first stage has the embedding too
 * (layer −1), the last one the final norm and the head. */
struct span {
    int first, end;
};

enum delta_split {
    DELTA_CHANNEL,    /* each connection's channels are divided among the tensor ranks */
    DELTA_CONNECTION, /* tensor ranks hold whole connections: connection i to tensor rank i mod tensor */
};

struct layout {
    int size[AXES];  /* ranks of each axis, copies as one (axes_joined); flat buffers are padded for them */
    int index[AXES]; /* this rank's place; it holds the same whichever copy it is: 0 */
    int delta;       /* enum delta_split */
    bool sequence_parallel; /* norms and residual sums on 1/tensor of the tokens */
    int chunks;             /* stages a rank holds, by layout_stage */
    bool v;                 /* two chunks, the second back again: rank p holds stages p and 2·pipeline − 1 − p */
    struct span *stage; /* [pipeline·chunks] layers of all stages, in order; stages_create makes them */
    long small;         /* tensors of fewer elements on the rank are summed whole and not sharded */
    bool narrow;        /* sources may cross stages as narrow projections (route.h) */
    double compress;    /* what else crosses stages goes as low-rank factors of this part of the full rank; 0:
                           as it is (train/step/boundary.h) */
    bool feedback;      /* what that drops of a gradient joins the next micro-batch's */
    int compress_over;  /* context ranks, whose tokens are then factorised together; 0 or 1: each its own */
    enum wire wire;     /* in which type values cross stages and tensor ranks */
    int tensor_pieces;  /* of a product whose rows are summed over tensor ranks: one's sum travels beside the
                           next (dist/comm/axis_begun.h); 0 or 1: sums are waited for */
};

/* One rank that holds everything. `stage` is then NULL. */
static inline struct layout layout_full(void) {
    struct layout layout = {.chunks = 1};
    for (int a = 0; a < axes_count(); a++) layout.size[a] = 1;
    return layout;
}

/* Is every tensor of a connection whole on one tensor rank? */
static inline bool layout_by_connection(const struct layout *l) {
    return l->delta == DELTA_CONNECTION && l->size[AXIS_TENSOR] > 1;
}

/* The stage that is chunk c of a pipeline rank: the stages of a chunk follow each other over the ranks, in a V
 * the second chunk's backwards. */
static inline int layout_stage(const struct layout *l, int rank, int chunk) {
    int ranks = l->size[AXIS_PIPELINE];
    return chunk * ranks + (l->v && chunk ? ranks - 1 - rank : rank);
}

/* Where a stage is: its chunk, and its pipeline rank. */
static inline int layout_chunk_of(const struct layout *l, int stage) {
    return stage / l->size[AXIS_PIPELINE];
}
static inline int layout_rank_of(const struct layout *l, int stage) {
    int place = stage % l->size[AXIS_PIPELINE];
    return l->v && layout_chunk_of(l, stage) ? l->size[AXIS_PIPELINE] - 1 - place : place;
}

/* Do stages b and b + 1 lie on one rank, so that nothing crosses boundary b: the turn of a V. */
static inline bool layout_turns(const struct layout *l, int boundary) {
    return l->v && boundary == l->size[AXIS_PIPELINE] - 1;
}

/* The layers of this rank's chunk c; for a full layout [0, num_layers). */
static inline struct span layout_span(const struct layout *l, int chunk, int num_layers) {
    if (!l->stage) return (struct span){0, num_layers};
    return l->stage[layout_stage(l, l->index[AXIS_PIPELINE], chunk)];
}

/* The stage that has layer l (layer −1: the first, num_layers: the last). */
static inline int layout_stage_of(const struct layout *l, int layer) {
    int stages = l->stage ? l->size[AXIS_PIPELINE] * l->chunks : 1;
    for (int s = 0; s < stages - 1; s++)
        if (layer < l->stage[s].end) return s;
    return stages - 1;
}

#endif
