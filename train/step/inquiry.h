/* The inquiry: where in the model, and on which rank, numbers first cease to be finite. A step whose loss or
 * gradient norm is not finite updates nothing, so it can be computed again, with the same batch and the same
 * weights, and this time every rank looks at what it has computed before anybody else gets it: at its part of
 * the weights, at every node's output on the way forward, at every layer's gradients and at the running
 * gradient on the way back. Of all ranks' finds the first counts, in the order of the computation: by
 * micro-batch, forward by layer, backward by layer; the lowest rank among equals.
 *
 * Sums inside a layer hand what is not finite to all tensor ranks at once, so that among these only weights
 * tell one rank from another. With train.compress_sources only the last output of a stage is there to be
 * looked at.
 *
 * Beside it stands what was seen in the step itself (struct step, `suspect`): a fault of a machine need not
 * happen again. */
#ifndef GDN_INQUIRY_H
#define GDN_INQUIRY_H

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
struct testimony {
    struct finding finding;
    int suspect; /* of the step itself (train/step/execute.h) */
    int data;    /* index */
    char host[64];
};

struct inquiry {
    /* What it looks at; all of it outlives the inquiry. Fill in, then inquiry_reserve. */
    const struct ops *ops;
    const struct model_config *config;
    const struct layout *layout;
    const struct table *table;
    const struct state *state;
    struct mesh *mesh;
    bool packed; /* train.compress_sources */

    double *square; /* [FINITE_SUMS] on the device */
    double found[FINITE_SUMS];
    int active;              /* distances of the step */
    struct finding first;    /* this rank's */
    struct testimony *heard; /* [mesh->size] of all ranks */
};

/* Not collective. GDN_INTERNAL without memory. */
int inquiry_reserve(struct inquiry *inquiry);
void inquiry_free(struct inquiry *inquiry);

/* Forgets what was found, and looks at the weights that are trained with `active` distances. Not collective.
 */
void inquiry_begin(struct inquiry *inquiry, int active);

/* A node's output x [rows, D], as far as this rank has it (model_output_rows), −1 the embedding; of a layer
 * the gradients of this rank's part of its tensors, once it has added a micro-batch's; the running gradient x
 * [T, D] that leaves a layer downwards; the sums of the loss of a micro-batch, on the device. Not collective.
 */
void inquiry_output(struct inquiry *inquiry, int micro_batch, int node, const real *x, long rows);
void inquiry_gradients(struct inquiry *inquiry, int micro_batch, int layer);
void inquiry_stream(struct inquiry *inquiry, int micro_batch, int layer, const real *x, long T);
void inquiry_loss(struct inquiry *inquiry, int micro_batch, const struct loss_sums *sums);

/* What became of an inquiry, the same on all ranks. */
struct verdict {
    bool asked;    /* there was an inquiry */
    bool recurred; /* computed again, the step had the fault again; whoever computed it fills this in */
    bool found;    /* `finding` is one */
    struct finding finding; /* the first of all ranks' */
    int rank;               /* that found it; where nobody did, the lowest that is suspect; −1: none */
    char host[64];          /* its */
    char suspects[100]; /* "rank 1", "ranks 1, 3": those whose own values were not finite in the step itself,
                           before they got any of another rank's; "" where nobody's were seen */
};

/* Hears all ranks; `suspect` is this rank's of the step itself. Collective. GDN_INTERNAL. */
int inquiry_end(struct inquiry *inquiry, int suspect, struct verdict *out);

/* The verdict as a clause: "first not finite is the output of layer 3 on rank 1 (host), in micro-batch 0". */
void inquiry_words(const struct verdict *verdict, char words[512]);

#endif
