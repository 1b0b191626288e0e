/* The training loop: steps, evaluations, checkpoints, and the ways in which a run ends.
 *
 * Every rank goes through the same steps. Before each, the ranks agree in one exchange that all have read
 * their part of the batch, that nobody was asked to stop, and that rank 0 could write what it had to; only
 * when someone raises a flag do they ask who and why. So a bad token, a signal or a full disk on one rank
 * ends the run on all, between two steps, when weights and optimiser state are whole and can be saved. */
#ifndef GDN_LOOP_H
#define GDN_LOOP_H

#include "train/delta_store.h"
#include "train/progress.h"
#include "train/run.h"
#include "train/rundir.h"

struct loop {
    struct run *run;
    struct rundir *rundir; /* open on rank 0, closed elsewhere */
    struct progress progress;
    struct delta_store *store; /* of differences; NULL: none */
    int64_t evaluated;         /* steps done at the last evaluation; −1: none */
    double eval_loss;          /* its loss */
    double started;            /* seconds */
    struct step_report last;   /* of the last step done */
};

/* Trains until the configured number of steps is done, or a stop. The run is prepared and loaded; `rundir` is
 * open on rank 0. Progress goes to `out` (NULL on all ranks but one). Collective. Returns, the same on all
 * ranks: 0, all steps done and a checkpoint written; GDN_STOPPED after a signal or at train.stop_at, with a
 * checkpoint; GDN_DIVERGED, loss or gradients not finite; GDN_UNSAVED, a checkpoint could not be written;
 * GDN_INPUT (a token outside the vocabulary) and GDN_INTERNAL (also of a store of differences that is
 * required), after a checkpoint of the steps done. */
int loop_run(struct run *run, struct rundir *rundir, FILE *out);

/* One optimiser step on the batch in run->rows: the schedule's actions (train/execute.h), whose first
 * micro-batch `watch` sees (NULL: nobody); fills `report` but for its times. Where the gradient norm is not
 * finite and a smaller loss scale may help, nothing is updated, but the step counts. GDN_DIVERGED where loss
 * or gradient norm is not finite otherwise: then nothing is updated. GDN_INTERNAL where an axis of the mesh
 * failed: then the job cannot go on. Collective. (loop_step.c) */
int loop_step(struct run *run, const struct delta_watch *watch, struct step_report *report);

/* Creates loop->store where the configuration has one. Collective. GDN_INTERNAL. (loop_store.c) */
int loop_store_create(struct loop *loop);

/* Records what has become of the store under way, where that is finished on all ranks; `wait` waits for it.
 * GDN_INTERNAL, the same on all ranks, where it failed and delta_store.required is set. Collective. */
int loop_store_settle(struct loop *loop, bool wait);

/* Distances that were introduced in the last of `steps` steps done: what an evaluation after it computes
 * with. */
int loop_active(const struct config *config, int64_t steps);

#endif
