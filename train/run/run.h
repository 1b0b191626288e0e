/* A run: everything that `gdn train` and `gdn check` need between a configuration and a computed loss, for
 * this rank. It is made in phases (sequence.c), each of which reads and checks only; nothing is written
 * anywhere but to data.cache (run_open_data). Each part of it belongs to the folder that its type comes from. */
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
#include "train/prune/pruning.h"
#include "train/records/metrics.h"
#include "train/run/data.h"
#include "train/step/trainer.h"

/* What is done so far: a run is in the phase of the last call that succeeded. */
enum run_sequence {
    RUN_EMPTY,
    RUN_CONFIGURED,
    RUN_START_FOUND,
    RUN_ADOPTED,
    RUN_PREPARED,
    RUN_POSITIONED,
    RUN_DATA_OPEN,
    RUN_DATA_MATCHED,
    RUN_PLANNED,
    RUN_RESERVED,
    RUN_LOADED,
    RUN_CREATED,
    RUN_PHASES
};

/* The checkpoint that this start goes on from. */
struct run_origin {
    struct checkpoint checkpoint; /* open; path NULL: there is none */
    bool elsewhere;               /* --resume named it: the newest may be another run's */
    bool resumed;                 /* its figures are taken */
    double start_loss;            /* its validation loss, NAN: not known, or another quantity */
    char *configured; /* what the configuration says where --resume-with has changed it; else NULL */
};

struct run {
    enum run_sequence phase;
    struct mesh mesh;
    struct config config;
    char *config_text; /* resolved, as config.yaml and checkpoints hold it */
    const struct ops *ops;
    struct run_origin origin;
    struct run_position position;
    struct partition part;
    struct run_data data;
    struct memory_plan plan;
    struct training_state training; /* on the device of `ops` */
    struct trainer trainer;
    struct evaluation evaluation;
    struct loss_scale loss_scale;
    struct scales scales;
    struct spikes spikes;
    struct pruning pruning;
    int64_t copy_bytes; /* of the copy that checkpoints are written from (train/loop/saver.h) */
};

/* An empty run on a mesh of this process alone; ranks_begin (ranks.h) makes the mesh. */
void run_init(struct run *run);

/* The phases, in the order in which they are called. Those marked ° may be left out. A call out of order is
 * GDN_INTERNAL, naming itself and the last phase. All are collective; run_free follows whatever they
 * return. */

/* Reads the configuration at `path` with `count` overrides, and its text, on each rank; they must be the same
 * on all. GDN_INPUT. */
int run_configure(struct run *run, const char *path, char *const *set, int count);
/* In its place: takes over a configuration, the same on all ranks, unless it is called out of order. */
int run_configure_as(struct run *run, const struct config *config);

/* ° Where training starts: looks for a checkpoint as `resume` says (NULL and "auto", "none", or a path;
 * interfaces.md) and opens it. Damaged checkpoints are named on `log` (NULL, here and below: silent).
 * GDN_INPUT. */
int run_find_start(struct run *run, const char *directory, const char *resume, FILE *log);

/* ° Makes the configuration the one that goes on from there, with `count` changes "KEY=VALUE" of
 * --resume-with (train/config/config.h), and finds the data position. What has changed is told on `log`.
 * GDN_INPUT where the checkpoint is of another configuration, or there is none that could be changed. */
int run_adopt(struct run *run, char *const *changes, int count, FILE *log);

/* Lays the ranks out as configured (mesh.*), chooses the backend and the threads, divides the batch, and
 * computes everything that is known before training: this rank's part of the model and every step's actions.
 * Messages about threads go to `log`. GDN_INPUT for a mesh that does not fit ranks, model or batch. */
int run_prepare(struct run *run, FILE *log);

/* ° The other figures of the checkpoint: steps, best loss, loss scale. GDN_INPUT where it is of another
 * configuration. */
int run_take_position(struct run *run);

/* ° Opens training and validation data and reads the first batch (data.h). Without it steps are of rows that
 * the caller has, and there are no evaluations. Tokens that a tokenizer makes are written to data.cache, the
 * one thing that a phase writes; it is told on `log`. */
int run_open_data(struct run *run, FILE *log);

/* ° Compares the data with those of the checkpoint (data.h, run_data_match); with `accept` they may be
 * others. */
int run_match_data(struct run *run, bool accept, FILE *log);

/* Plans this rank's memory (train/plan/memory_plan.h). */
int run_plan(struct run *run);

/* Reserves weights, gradients and optimiser state. GDN_INTERNAL. */
int run_reserve(struct run *run);

/* Fills weights and optimiser state: from the checkpoint; or, where there is none, weights drawn and then
 * replaced by checkpoint.init_from where that is set. */
int run_load(struct run *run, FILE *log);

/* Creates what computes: the trainer, and evaluations. */
int run_create(struct run *run);

/* Goes back to the newest whole checkpoint below the run directory, on with the data that follow those read
 * so far. *back is false, with a reason in words and the state as it was, where there is none to go back to.
 * Collective. Fails where that checkpoint cannot be loaded. (start.c) */
int run_rewind(struct run *run, const char *directory, bool *back, const char **reason);

/* Makes steps and evaluations with the connections that run->pruning has, from the next one on. Collective.
 * GDN_INTERNAL, the same on all ranks. */
int run_choose(struct run *run);

/* Sequences of the next step on this data rank (train.batch_ramp). */
long run_share(const struct run *run);

/* Reads this data rank's part of the batch at the run's position into `rows`. Not collective. GDN_INPUT where
 * a token lies outside the vocabulary. */
int run_read_batch(struct run *run);
/* Counts what of it counts (train/run/data.h), once all ranks have read theirs. Collective. GDN_INTERNAL. */
int run_count_batch(struct run *run);
/* Targets of it that count, on all data ranks. */
int64_t run_counted(const struct run *run);
/* Tokens of it but for padding, likewise. */
int64_t run_unpadded(const struct run *run);

/* Parameters of the whole model. */
int64_t run_parameters(const struct run *run);

/* What checkpoints of this run are made of, on the host: as of the last training_state_download. */
struct checkpoint_content run_content(struct run *run);

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
