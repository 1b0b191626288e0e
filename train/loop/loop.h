/* The training loop: steps, evaluations, checkpoints, and the end of a run. All ranks go through the same
 * steps. Before each step the ranks agree in one exchange that all have read their part of the batch, that
 * none was asked to stop, and that rank 0 could write its files; only where a rank raises a flag do they
 * exchange the reason. So a bad token, a signal or a full disk on one rank ends the run on all ranks
 * between two steps, when weights and optimiser state are consistent and can be saved. */
#ifndef GDN_LOOP_H
#define GDN_LOOP_H

#include "train/deltas/delta_store.h"
#include "train/monitor/monitor.h"
#include "train/records/progress.h"
#include "train/run/run.h"
#include "train/records/rundir.h"
#include "train/loop/saver.h"
#include "train/loop/stop.h"

struct loop {
    struct run *run;
    struct rundir *rundir; /* open on rank 0, closed elsewhere */
    struct progress progress;
    struct delta_store *store; /* of differences; NULL: none */
    struct health *health;     /* of the ranks (loop/health.c) */
    struct monitor *monitor;
    int64_t evaluated;    /* steps done at the last evaluation; −1: none */
    double eval_loss;     /* its loss, of the first validation set */
    double started;       /* seconds */
    double save_seconds;  /* that the longest save so far took; before the first an estimate */
    double saved_seconds; /* that the longest save so far took; 0: none yet */
    double step_seconds;  /* of the last step with all around it but evaluation and checkpoint; 0: none yet */
    bool grace_told;      /* that mpirun would not wait long enough */
    bool saving;          /* one is under way */
    bool ending;          /* the run ends, in one way or another */
    double waited;        /* seconds of the last step that this rank waited for others */
    double half_difference; /* of the gradients of the batch's halves: half of it, squared; NAN: not measured */
    struct saver *saver;  /* of checkpoints */
    double saved_at;      /* seconds at which the last one was begun */
    int save_failures;    /* of checkpoints, in a row */
    struct stop *stop;
    struct step_report last; /* of the last step done */
};

/* Trains until the configured number of steps is done, or a stop. The run is prepared and loaded; `rundir` is
 * open on rank 0, `stop` on all. The first lines (run_describe) and progress go to `out` (NULL on all ranks
 * but one). Collective. Returns, the same on all ranks: 0, all steps done and a checkpoint written;
 * GDN_STOPPED at train.stop_at or where somebody asked (train/loop/stop.h), with a checkpoint; GDN_DIVERGED,
 * loss or gradients not finite; GDN_UNSAVED, a checkpoint could not be written; GDN_INPUT (a token outside
 * the vocabulary) and GDN_INTERNAL (also of a store of differences that is required), after a checkpoint of
 * the steps done. */
int loop_run(struct run *run, struct rundir *rundir, struct stop *stop, FILE *out);

/* One optimiser step on the batch in run->data.rows: the schedule's actions (train/step/execute.h), whose
 * first micro-batch `watch` sees (NULL: nobody); fills `report` but for its times. Where the gradient norm is
 * not finite and a smaller loss scale may help, nothing is updated, but the step counts. Where loss or
 * gradient norm is not finite otherwise, the step is computed again to find out where that begins
 * (run->trainer.verdict), and is GDN_DIVERGED: then nothing is updated. With spikes.window such a step, and
 * any other spike (run->spikes.last), is left out unless spikes.action is report. GDN_INTERNAL where an axis
 * of the mesh failed: then the job cannot go on. Collective. (loop/step.c) */
int loop_step(struct run *run, const struct delta_watch *watch, struct step_report *report);

/* What a step at the run's position computes. Not collective. (loop/step.c) */
struct loss_options loop_options(const struct run *run);
/* The same with this rank's part of the batch in run->data.rows, for execute. Not collective. (loop/step.c) */
struct step loop_batch(const struct run *run, const struct loss_options *options);

/* Where train.noise_interval is due: measures how much the gradients of the two halves of the batch in
 * run->data.rows differ, before the step itself, whose results stay the same. loop_record_noise records with
 * the step's own gradient norm what follows, nothing where one of them was not finite. Collective.
 * GDN_INTERNAL. (loop/noise.c) */
int loop_noise(struct loop *loop);
void loop_record_noise(struct loop *loop, const struct step_report *report);

/* Before a step: takes away connections, and brings some back, where train.prune says so, and makes what steps do
 * with those left; tells of it. Collective. GDN_INTERNAL, the same on all ranks. (loop/prune.c) */
int loop_prune(struct loop *loop);
/* Before that: where it goes by leave_one_out and is due, what the loss of some validation data gains without each
 * connection; records how long that took, by which the step's beginning, `began` in seconds, is put off. Collective.
 * Fails as loop_evaluate, and then has changed nothing, so that a start from here does it anew. (loop/leave_out.c) */
int loop_leave_out(struct loop *loop, double *began);
/* After the passes of a step that is an update: what it measured of connections. Collective. GDN_INTERNAL. (loop/prune.c) */
int loop_prune_measure(struct run *run, const struct loss_options *options);

/* Whether this rank knows of a request to stop, or the time that is left is too short for `next` and a
 * checkpoint. Not collective. (loop/save.c) */
enum stop_reason loop_asked(struct loop *loop, enum stop_work next);

/* What lies between two rounds of an evaluation. */
struct loop_rounds {
    struct loop *loop;
    double began; /* seconds at which the last round began; 0: there was none */
};

/* Before a round, of struct loop_rounds (evaluation_ask): whether this rank knows of a request to stop. Before the
 * first one the whole evaluation has to fit into the time that is left, as far as its length is known; then the next
 * round has. Not collective. (loop/eval.c) */
bool loop_ask(void *rounds);

/* Evaluates and records. Collective. The same on all ranks: GDN_STOPPED, with nothing recorded and
 * run->position.evaluation_due set, where somebody asked to stop; GDN_DIVERGED for a loss that is not finite;
 * GDN_INPUT, GDN_INTERNAL. (loop/eval.c) */
int loop_evaluate(struct loop *loop);

/* Creates loop->store where the configuration has one. Collective. GDN_INTERNAL. (loop/store.c) */
int loop_store_create(struct loop *loop);

/* Creates loop->saver. Collective. GDN_INPUT, GDN_INTERNAL. (loop/save.c) */
int loop_save_create(struct loop *loop);

/* Whether a checkpoint is due after a step by its number or the time, the same on all ranks. Collective.
 * GDN_INTERNAL. */
int loop_save_due(struct loop *loop, bool *due);

/* Saves the run as it is, in the background unless `now` or the configuration says otherwise; waits for the
 * save under way, and does nothing where that, or the last, was of this very state. Collective. Fails where
 * one in the foreground failed, or too many in a row in the background. */
int loop_save(struct loop *loop, bool now);

/* Records what has become of the save under way, where that is finished on all ranks; `wait` waits for it: to
 * be called before the state is loaded anew. Collective. GDN_UNSAVED, the same on all ranks, where too many
 * in a row have failed; GDN_INTERNAL. */
int loop_save_poll(struct loop *loop, bool wait);

/* Records what has become of the store under way, where that is finished on all ranks; `wait` waits for it.
 * GDN_INTERNAL, the same on all ranks, where it failed and delta_store.required is set. Collective. */
int loop_store_poll(struct loop *loop, bool wait);

/* After every loop_step, whatever its status: records what a NaN trace has found. (loop/spike.c) */
void loop_record_nan_trace(struct loop *loop, const struct step_report *report);

/* After a step that was done or left out: where it was a spike (train/health/spikes.h), counts and records it
 * and goes back to the newest whole checkpoint where spikes.action says so; the data go on behind the spike's
 * batch. Collective. GDN_DIVERGED, the same on all ranks, for one spike more than spikes.most, or where that
 * checkpoint cannot be loaded. */
int loop_spike(struct loop *loop, const struct step_report *report);

/* Creates and frees loop->health. Collective. GDN_INTERNAL. (loop/health.c) */
int loop_health_create(struct loop *loop);
void loop_health_free(struct loop *loop);

/* After a step: reports slow ranks and compares replicas where that is due. Collective. GDN_INTERNAL, the
 * same on all ranks, where copies of the weights differ: the state must not be saved. */
int loop_health_step(struct loop *loop);
/* Compares replicas now, unless this was done after the last step, so that nothing wrong is saved.
 * Collective; fails as loop_health_step does. */
int loop_health_replicas(struct loop *loop);

/* After a step that took so long: says once, on rank 0, where mpirun would kill the run before it could stop
 * as it is asked to. Not collective. (loop/grace.c) */
void loop_grace_step(struct loop *loop, double seconds);

/* The edges, of the pipeline's sets, that were active in the last of `steps` steps done: what an evaluation
 * after it computes with. */
const struct edge_set *loop_active(const struct config *config, const struct pipeline *pipeline,
                                   int64_t steps);

#endif
