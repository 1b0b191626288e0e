/* A run: everything that `gdn train` and `gdn eval` need between a checked configuration and a computed loss,
 * for this rank. It is built in phases, each of which reads and checks only; nothing is written anywhere. */
#ifndef GDN_RUN_H
#define GDN_RUN_H

#include <stdint.h>
#include <stdio.h>

#include "data/sampler.h"
#include "dist/mesh.h"
#include "dist/table.h"
#include "kernels/base/arena.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "train/config.h"
#include "train/run_eval.h"

struct run {
    struct mesh mesh;
    struct config config;
    char *config_text; /* resolved, as config.yaml and checkpoints hold it */

    const struct ops *ops;
    struct table table;
    struct arena weights; /* what `state` points into */
    struct state state;
    struct model *model;

    struct sampler *data;       /* training samples */
    struct sampler *validation; /* NULL: there is none */
    struct evaluation evaluation;
    long share, micro; /* sequences of one step on this rank; of one micro-batch */
    int32_t *rows;     /* [share, sequence_length + 1] this rank's part of the next batch */

    int64_t step, samples; /* optimiser steps done; samples consumed */
    double best_loss;      /* least validation loss of a checkpoint, NAN: none */
    bool resumed;
    bool on_disk; /* the run directory holds a checkpoint of exactly this state */
};

/* Lays the ranks out as configured (mesh.*), chooses the backend and the threads, and fills the parameter
 * table. The configuration and its text must be there. Messages about threads go to `log` (NULL: silent).
 * Collective. */
int run_prepare(struct run *run, FILE *log);

/* Divides the batch among ranks and micro-batches, opens training and validation data and reads the first
 * batch. GDN_INPUT for what does not divide, is not readable or lies outside the vocabulary. Collective. */
int run_open_data(struct run *run);

/* Reads this rank's part of the batch at the run's position into `rows`. Not collective. GDN_INPUT where a
 * token lies outside the vocabulary. */
int run_read_batch(struct run *run);

/* Reserves weights, gradients and optimiser state. Collective. */
int run_reserve(struct run *run);

/* Where training starts: looks for a checkpoint as `resume` says (NULL and "auto", "none", or a path;
 * interfaces.md), refuses one whose configuration does not match, and sets the run's position. *path is the
 * checkpoint to load (free() it), NULL: from the start. Reads attributes only. Damaged checkpoints are named
 * on `log`. Collective. */
int run_find_start(struct run *run, const char *directory, const char *resume, FILE *log, char **path);

/* Fills the reserved weights: from checkpoint `path`; or, where that is NULL, drawn and then replaced by
 * checkpoint.init_from where that is set. Collective. */
int run_load(struct run *run, const char *path, FILE *log);

/* Frees everything but the mesh. */
void run_free(struct run *run);

/* Prints what will be trained, on what: model, mesh, backend, data. */
void run_describe(const struct run *run, const char *directory, FILE *out);

/* Opens the validation data of a configuration (NULL where there is none). Not collective. */
int run_open_validation(const struct config *config, struct sampler **out);

#endif
