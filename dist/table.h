/* The parameter table: one row a tensor. Initialisation, optimiser, gradient sync, checkpoints and export
 * walk it; no code names a tensor by its position. model/ fills it (model/params.h). */
#ifndef GDN_TABLE_H
#define GDN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/base/real.h"

enum split { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLUMNS }; /* over the tensor axis; later issues use it */

struct row {
    char name[88]; /* "layers.3.delta.2.gate_in.weight" (model.md, 8) */
    int ndim;      /* 1 or 2 */
    long shape[2]; /* global, as on disk: [out, in], or [n] with shape[1] = 1 */
    enum split split;
    bool transposed; /* memory holds [in, out], so that a layer's tensors stack into one GEMM */
    bool decay;      /* weight decay applies (ndim ≥ 2) */
    int layer;       /* −1: none */
    int distance;    /* of the delta connection that it belongs to; 0: none */
    bool select;     /* a layer's shared selection weights: active with its first connection */
    long offset;     /* of its first element in the flat buffers */
    long count;      /* elements */
};

struct table {
    int rows;
    struct row *row;
    long total; /* elements of a flat buffer */
};

/* The training state: flat buffers of table->total elements, and a step count per tensor. */
struct state {
    real *weight, *gradient;
    real *exp_avg, *exp_avg_sq; /* NULL where there is no optimiser (eval, generate) */
    int64_t *steps;             /* [table->rows] updates a tensor has had */
};

#endif
