/* The parameter table: one row a tensor. Initialisation, optimiser, gradient sync, checkpoints and export
 * walk it; no code names a tensor by its position. model/ fills it (model/table/params.h), for one rank's
 * layout: a rank's table has only the tensors of which the rank holds a part. */
#ifndef GDN_TABLE_H
#define GDN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/base/real.h"

enum split { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLUMNS }; /* over the tensor axis */
/* Of n rows or columns that are divided so, the first that a tensor rank has. */
static inline long split_first(long n, int ranks, int index) {
    return n * index / ranks;
}

/* Flat buffers have one zone after the other, so that buckets of one zone are treated alike (shard.h). */
enum zone {
    ZONE_LARGE, /* sharded over copies */
    ZONE_SMALL, /* held whole by every copy */
    /* The same, of tensors that several stages hold (tied embeddings, the weights of narrow sources): their
     * gradients are first summed over the stages. */
    ZONE_SHARED_LARGE,
    ZONE_SHARED_SMALL,
    ZONES
};

/* What an optimiser keeps beside each element of a tensor: its moments, of the name under which checkpoints
 * have them, in /optimizer. */
enum { MOMENTS = 4 }; /* at most */
struct moments {
    int count;
    const char *name[MOMENTS];
};

/* What of a tensor is a matrix that one rank has all of to update it (deal.h). */
enum whole {
    WHOLE_NONE,   /* nothing: its elements are updated one by one */
    WHOLE_TENSOR, /* all of it */
    WHOLE_JOINED, /* together with its neighbours in memory (row.heads), one below the other */
    WHOLE_HEADS,  /* the rows of each head */
};

/* How a tensor is updated. Nobody does where it is not trained: all zero. */
struct treatment {
    const struct moments *moments;
    enum whole whole;
    int group; /* the parameter group of the configuration that holds, −1: none */
    double lr_scale, weight_decay, beta1, beta2; /* by group, leaf and configuration */
};

struct row {
    char name[88]; /* "layers.3.delta.2.gate_in.weight" (model.md, 8) */
    int ndim;      /* 1 or 2 */
    long shape[2]; /* global, as on disk: [out, in], or [n] with shape[1] = 1 */
    enum split split;
    bool transposed;  /* memory holds [in, out], so that a layer's tensors stack into one GEMM */
    bool decay;       /* weight decay applies (ndim ≥ 2) */
    int heads;        /* of attention, whose channels its rows are, so many each; 0: none */
    bool joined;      /* right behind the row before it in memory */
    bool elementwise; /* no matrix to an optimiser of matrices, whatever its shape */
    double own_lr_scale, own_weight_decay; /* its leaf's (model/params/leaf.h), 0: none */
    /* Initial weights are N(0, width); all of them `value` where width is 0. */
    double start_width, start_value;
    int layer; /* −1: embedding; num_layers: final norm and head, which with exits has the lowest's. Tensors that several stages hold keep theirs
                  on all of them: a rank may have rows of a layer that it does not compute */
    int rule;     /* of the model's list that has it; −1: none */
    int distance; /* of a rule's connection that it belongs to; 0: none */
    int edge;     /* that connection in the edge table; of `select` the first */
    bool select;  /* what a rule's connections into a layer share: active with any of them, */
    int edges; /* which are edge … edge + edges − 1; of a connection 1; 0: of a rule without any, always
                  active */

    /* This rank's part. */
    long local[2]; /* its shape; shape itself where the tensor is not split */
    long start[2]; /* its place in the global tensor */
    long offset;   /* of its first element in the flat buffers */
    long count;    /* its elements: local[0]·local[1] */
    enum zone zone;
    bool partial; /* every tensor rank holds it whole, and its gradient is a part of a sum over the tensor
                     axis */
    bool alone;   /* of several tensor ranks only this one has it, whole */
    bool counted; /* among the ranks of one copy of the model that hold this same part, this one counts it in
                     norms and writes it to checkpoints */
    struct treatment treatment; /* train/optimizer/groups.h fills it in */
    int owners; /* of ZONE_SHARED_…: pipeline ranks that hold it (1, where only neighbours in a stack are
                   shared); else 0 */
    const int *owner; /* [owners] them, by rising rank; in table.owner */
};

struct table {
    int rows;
    struct row *row; /* [rows] those of a zone by rising layer */
    int *by_name; /* [rows] rows in the order of their names (params_find); NULL where none is looked for */
    int *owner;   /* what the rows' owners are kept in */
    long total;   /* elements of a flat buffer, padding included */
    /* Zone z is [zone[z], zone[z + 1]); each a multiple of copies·SHARD_GRAIN (shard.h). */
    long zone[ZONES + 1];
};

/* Does this pipeline rank hold a row of ZONE_SHARED_…? */
static inline bool row_owned_by(const struct row *row, int pipeline_rank) {
    for (int i = 0; i < row->owners; i++)
        if (row->owner[i] == pipeline_rank) return true;
    return false;
}

/* The training state: flat buffers of table->total elements, and a step count per tensor. */
struct state {
    real *weight, *gradient;
    void *copy; /* what products read of the weights (kernels/ops.h, hold); NULL: the weights themselves */
    real *moment[MOMENTS]; /* [shards.kept] each (shard.h); the first NULL: there is no optimiser (eval,
                              generate) */
    int64_t *steps;        /* [table->rows] updates a tensor has had */
};

#endif
