/* The weights of a checkpoint, ready for use without training: what eval and generate start from. */
#ifndef GDN_SAVED_MODEL_H
#define GDN_SAVED_MODEL_H

#include <stdio.h>

#include "dist/checkpoint/checkpoint.h"
#include "dist/layout/edge.h"
#include "kernels/ops.h"
#include "train/memory/state.h"
#include "train/config/config.h"
#include "train/run/tokenizer.h"

struct saved_model {
    struct config config; /* the one it was trained with, with the overrides applied */
    struct config_asked asked;
    struct carried tokenizer; /* that it was trained with; name NULL: not known */
    struct table table;
    struct state_memory memory; /* what `state` points into */
    struct state state;         /* weights only */
    char *path;                 /* of its checkpoint.h5 */
    long step;                  /* steps of training done */
};

/* Loads a checkpoint, given as a checkpoint.h5, a step_N directory or a run directory, with the configuration
 * that it carries, to which the `count` overrides KEY=VALUE are applied. Collective over the mesh. `out` is
 * owned by the caller: saved_model_free. Fails like checkpoint_resolve, checkpoint_load and config_parse. */
int saved_model_load(const struct mesh *mesh, const char *given, char *const *overrides, int count,
                     struct saved_model *out);
void saved_model_free(struct saved_model *saved);

/* The edges in use at its last step. Free with edge_set_free. GDN_INTERNAL without memory. */
int saved_model_active(const struct saved_model *saved, struct edge_set *active);

/* Chooses the backend and copies the weights to its device: the backend of an override, else the best that
 * this machine has, wherever the model was trained; on the cpu in fp32 where it was trained in fp16 or fp8. A
 * precision other than the training's is noted on `log` (NULL: silent). Collective. Fails like
 * backend_choose, also where an override demands a precision that the device lacks; GDN_INTERNAL without
 * memory. */
int saved_model_place(struct saved_model *saved, const struct mesh *mesh, FILE *log, const struct ops **ops);

#endif
