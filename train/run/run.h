/* A run: everything that `gdn train` and `gdn eval` need between a checked configuration and a computed loss,
 * for this rank. It is built in phases, each of which reads and checks only; nothing is written anywhere. */
#ifndef GDN_RUN_H
#define GDN_RUN_H

#include <stdint.h>
#include <stdio.h>

#include "dist/checkpoint/checkpoint.h"
#include "dist/mesh/mesh.h"
#include "kernels/ops.h"
#include "train/config/config.h"
#include "train/evaluation/evaluation.h"
#include "train/health/spikes.h"
#include "train/memory/training_state.h"
#include "train/optimizer/loss_scale.h"
#include "train/optimizer/scales.h"
#include "train/partition/partition.h"
#include "train/plan/memory_plan.h"
#include "train/records/metrics.h"
#include "train/run/run_data.h"
#include "train/step/trainer.h"

/* How far training is. */
struct run_position {
    int64_t step, samples; /* optimiser steps done; the data position, in sequences of this length */
    int64_t tokens;        /* consumed, also in sequences of other lengths (--resume-with) */
    double best_loss;      /* least validation loss of a checkpoint, NAN: none */
    bool evaluation_due;   /* after the steps done so far, since it was given up */
    bool on_disk;          /* the run directory holds a checkpoint of exactly this state */
};

/* The checkpoint that this start goes on from. */
struct run_origin {
    bool resumed;
    bool elsewhere;    /* one that --resume named: the newest may be another run's */
    int skipped;       /* checkpoints newer than that, which are damaged */
    double start_loss; /* its validation loss, NAN: not known, or another quantity */
    char *configured;  /* what the configuration says where --resume-with has changed it; else NULL */
};

struct run {
    struct mesh mesh;
    struct config config;
    char *config_text; /* resolved, as config.yaml and checkpoints hold it */
    const struct ops *ops;
    struct partition part;
    struct run_data data;
    struct memory_plan plan;
    struct training_state training; /* on the device of `ops` */
    struct trainer trainer;
    struct evaluation evaluation;
    struct run_position position;
    struct run_origin origin;
    struct loss_scale loss_scale;
    struct scales scales;
    struct spikes spikes;
    int64_t copy_bytes; /* of the copy that checkpoints are written from (train/loop/saver.h) */
};

/* Reads the configuration at `path` with `count` overrides, and its text, on each rank; they must be the same
 * on all. Collective. GDN_INPUT. */
int run_configure(struct run *run, const char *path, char *const *set, int count);

/* Makes the text anew where the configuration was changed. Not collective. GDN_INTERNAL without memory. */
int run_resolve_text(struct run *run);

/* Lays the ranks out as configured (mesh.*), chooses the backend and the threads, divides the batch, and
 * computes everything that is known before training: this rank's part of the model and every step's actions.
 * The configuration and its text must be there. Messages about threads go to `log` (NULL: silent). GDN_INPUT
 * for a mesh that does not fit ranks, model or batch. Collective. */
int run_prepare(struct run *run, FILE *log);

/* Opens training and validation data and reads the first batch. GDN_INPUT for what is not readable or lies
 * outside the vocabulary. Collective. */
int run_open_data(struct run *run);

/* Finds what the training data are (data/identity.h), and compares it with `before`, which the checkpoint
 * says that the run goes on from (NULL: nothing is known, or it starts). Where they differ: GDN_INPUT naming
 * the source and how much it has and had; with `accept` a note on `log`. Run after run_open_data.
 * Collective. */
int run_match_data(struct run *run, const char *before, bool accept, FILE *log);

/* Sequences of the next step on this data rank (train.batch_ramp). */
long run_share(const struct run *run);

/* Reads this data rank's part of the batch at the run's position into `rows`. Not collective. GDN_INPUT where
 * a token lies outside the vocabulary. */
int run_read_batch(struct run *run);

/* Plans this rank's memory (run_plan), then reserves weights, gradients and optimiser state. Collective. */
int run_reserve(struct run *run);

/* Finds how much memory there is, decides what is computed again, and plans all that the run will reserve on
 * this rank. GDN_INPUT where that does not fit on some rank (train/plan/fit.h). Run after run_open_data, if
 * that is run at all: without validation data there are no evaluations. Collective. */
int run_plan(struct run *run);

/* Where training starts: looks for a checkpoint as `resume` says (NULL and "auto", "none", or a path;
 * interfaces.md). `start` is the open checkpoint to load, also where this fails (checkpoint_close);
 * start->path NULL: from the start. Damaged checkpoints are named on `log`. Needs nothing of run_prepare.
 * Collective. */
int run_find_start(struct run *run, const char *directory, const char *resume, FILE *log,
                   struct checkpoint *start);

/* Makes the configuration the one that goes on from `start`, with `count` changes "KEY=VALUE" of
 * --resume-with (train/config/config.h), before run_prepare, and finds the data position. What has changed is
 * told on `log`. GDN_INPUT where the checkpoint is of another configuration, or there is none that could be
 * changed. Collective. */
int run_adopt(struct run *run, const struct checkpoint *start, char *const *changes, int count, FILE *log);

/* The other figures of a checkpoint that the run goes on from, after run_prepare: steps, best loss, loss
 * scale. GDN_INPUT where it is of another configuration. Not collective. */
int run_take_position(struct run *run, const struct checkpoint_info *info);

/* Fills the reserved weights and optimiser state: from `start`; or, where its path is NULL, weights drawn and
 * then replaced by checkpoint.init_from where that is set. Collective. */
int run_load(struct run *run, const struct checkpoint *start, FILE *log);

/* Creates what computes: models, gradient sync, optimiser, executors. Run after run_open_data and
 * run_reserve. Collective. */
int run_create(struct run *run);

/* Parameters of the whole model. */
int64_t run_parameters(const struct run *run);

/* What checkpoints of this run are made of, on the host: as of the last run_snapshot. */
struct checkpoint_content run_content(struct run *run);

/* Brings what a checkpoint holds to the host. Not collective. GDN_INTERNAL. */
int run_snapshot(struct run *run);

/* What this rank has reserved. Not collective. */
struct memory run_memory(const struct run *run);

/* What the rank that needs most has planned and reserved. */
struct run_max_memory {
    int rank;
    struct memory planned, reserved;
    int64_t available, peak; /* for that rank; the most that it has had resident so far */
};

/* The same on all ranks. Collective. GDN_INTERNAL. */
int run_measure_memory(const struct run *run, struct run_max_memory *out);

/* Writes an event "memory" of that to the metrics, which are closed on all ranks but one: planned and
 * reserved bytes by category, the memory available, and what the rank has had resident at most so far.
 * Collective. GDN_INTERNAL. */
int run_record_memory(const struct run *run, struct metrics *metrics);

/* Frees everything but the mesh, which must be there still. */
void run_free(struct run *run);

/* Prints what will be trained, on what: model, data, mesh, memory, backend; once all memory is reserved, the
 * copy for checkpoints too (saver_create). `out` is NULL on all ranks but one. Collective. GDN_INTERNAL. */
int run_describe(const struct run *run, const char *directory, FILE *out);

#endif
