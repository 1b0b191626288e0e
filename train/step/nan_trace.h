/* The NaN trace: in which layer, and on which rank, values first cease to be finite. A step whose loss or
 * gradient norm is not finite updates nothing, so it can be computed again with the same batch and
 * weights. In this pass every rank checks its own values before they are exchanged: its part of the
 * weights, each node's output on the way forward, each layer's weight gradients and the stream's gradient
 * on the way back. Of all ranks' findings the earliest in the order of computation counts: by micro-batch,
 * forward by layer, backward by layer; among equals the lowest rank's.
 *
 * Tensor ranks share sums inside a layer, so that among them only weights tell which rank is at fault.
 * With train.compress_sources only the last output of a stage can be checked.
 *
 * `first_bad` of struct step has what was found in the step itself: a hardware fault need not recur. */
#ifndef GDN_NAN_TRACE_H
#define GDN_NAN_TRACE_H

#include <stdint.h>

#include "dist/layout/layout.h"
#include "dist/mesh/mesh.h"
#include "dist/layout/table.h"
#include "kernels/ops.h"
#include "model/params/config.h"
#include "model/model.h"
#include "train/step/finite.h"

/* A place where something is not finite. */
struct finding {
    int64_t order; /* of the computation; INT64_MAX: nothing was found */
    int micro_batch, layer;
    char what[120]; /* "output of layer 3", "gradient of layers.3.mlp.up.weight", "weights of …" */
};

/* What one rank tells the others. */
struct rank_finding {
    struct finding finding;
    int first_bad; /* of the step itself (train/step/execute.h) */
    int data;      /* index */
    char host[64];
};

struct nan_trace {
    /* What it looks at; all of it outlives the NaN trace. Fill in, then nan_trace_reserve. */
    const struct ops *ops;
    const struct model_config *config;
    const struct layout *layout;
    const struct table *table;
    const struct state *state;
    struct mesh *mesh;
    bool compressed; /* train.compress_sources */

    double *square; /* [FINITE_SUMS] on the device */
    double found[FINITE_SUMS];
    const struct edge_set *active; /* of the step */
    struct finding first;          /* this rank's */
    struct rank_finding *findings; /* [mesh->size] of all ranks */
};

/* Not collective. GDN_INTERNAL without memory. */
int nan_trace_reserve(struct nan_trace *nan_trace);
void nan_trace_free(struct nan_trace *nan_trace);

/* Forgets what was found, and looks at the weights that are trained with these edges. Not
 * collective. */
void nan_trace_begin(struct nan_trace *nan_trace, const struct edge_set *active);

/* A node's output x [rows, D], as far as this rank has it (model_output_rows), −1 the embedding; of a layer
 * the gradients of this rank's part of its tensors, once it has added a micro-batch's; the running gradient x
 * [T, W] that leaves a layer downwards; the sums of the loss of a micro-batch, on the device. Not
 * collective. */
void nan_trace_output(struct nan_trace *nan_trace, int micro_batch, int node, const real *x, long rows);
void nan_trace_gradients(struct nan_trace *nan_trace, int micro_batch, int layer);
void nan_trace_stream(struct nan_trace *nan_trace, int micro_batch, int layer, const real *x, long T);
void nan_trace_loss(struct nan_trace *nan_trace, int micro_batch, const struct loss_sums *sums);

/* What became of a NaN trace, the same on all ranks. */
struct verdict {
    bool asked;    /* there was a NaN trace */
    bool recurred; /* computed again, the step had the fault again; whoever computed it fills this in */
    bool found;    /* `finding` is one */
    struct finding finding; /* the first of all ranks' */
    int rank; /* that found it; where nobody did, the lowest whose own values were not finite; −1: none */
    char host[64];       /* its */
    char bad_ranks[100]; /* "rank 1", "ranks 1, 3": ranks whose own values were not finite in the step itself,
                            before any exchange; "": none */
};

/* Hears all ranks; `first_bad` is this rank's of the step itself. Collective. GDN_INTERNAL. */
int nan_trace_end(struct nan_trace *nan_trace, int first_bad, struct verdict *out);

/* The verdict as a clause: "first not finite is the output of layer 3 on rank 1 (host), in micro-batch 0". */
void nan_trace_text(const struct verdict *verdict, char text[512]);

#endif
