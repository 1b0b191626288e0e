/* What a training step is computed by, on this rank: the model, what sums gradients and uses them, and the
 * executor that calls them. */
#ifndef GDN_TRAINER_H
#define GDN_TRAINER_H

#include "train/config/config.h"
#include "train/partition/partition.h"
#include "train/step/execute.h"
#include "train/step/nan_trace.h"

struct trainer {
    struct model *model;
    struct sync *sync;
    int64_t sync_bytes; /* its scratch */
    struct optimizer optimizer;
    struct executor *executor;
    struct nan_trace nan_trace;
    struct verdict verdict; /* of the last step, where it was traced */
};

/* What it works on; all of it outlives the trainer. */
struct trainer_setup {
    const struct config *config;
    struct mesh *mesh;
    const struct ops *ops;
    const struct partition *part;
    const struct recompute *policy; /* [num_layers] */
    struct state *state;            /* on the device of `ops` */
};

/* Collective. trainer_free follows, whatever this returns. GDN_INPUT, GDN_INTERNAL, the same on all ranks. */
int trainer_create(const struct trainer_setup *setup, struct trainer *out);
void trainer_free(struct trainer *trainer);

#endif
