#include "train/loop/loop.h"

#include "dist/checkpoint/checkpoint.h"
#include "kernels/backends/backends.h"
#include "train/config/batch.h"
#include "dist/mpi/activity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool due(int64_t step, long interval) {
    return interval > 0 && step % interval == 0;
}

/* ------------------------------------------------------------------------------------------ records */

/* A file that cannot be written any more is noticed before the next step (loop.h), so results are not looked
 * at here. */
static void record_step(struct loop *loop, const struct step_report *report) {
    const struct scalar scalars[] = {
        {"train/loss", report->loss},
        {"train/grad_norm", report->grad_norm},
        {"train/lr", report->lr},
        {"train/tokens_per_second", report->tokens_per_second},
    };
    metrics_step(&loop->rundir->metrics, report);
    tensorboard_write(&loop->rundir->board, report->step, scalars, (int)(sizeof scalars / sizeof scalars[0]));
    progress_step(&loop->progress, report);
    monitor_step(loop->monitor, report);
}

/* The loss scale has become another one after a step. */
static void record_loss_scale(struct loop *loop, int64_t step, bool lower) {
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "loss_scale");
    metrics_integer(metrics, "step", step);
    metrics_number(metrics, "scale", loop->run->loss_scale.scale);
    metrics_text(metrics, "reason",
                 lower ? "gradient norm not finite, step skipped" : "all steps good for some time");
    metrics_end(metrics);
}

/* A step was left out, since no target of its batch counts. */
static void record_uncounted(struct loop *loop, const struct step_report *report) {
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "skip");
    metrics_integer(metrics, "step", report->step);
    metrics_text(metrics, "reason", "no target counts");
    metrics_end(metrics);
    progress_note(&loop->progress, "step %lld: no target of its batch counts; it is left out",
                  (long long)report->step);
}

static void record_start(struct loop *loop) {
    const struct run *run = loop->run;
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, run->origin.resumed ? "resume" : "start");
    metrics_integer(metrics, "step", run->position.step);
    metrics_integer(metrics, "steps", run->config.train.steps);
    metrics_integer(metrics, "batch_size", batch_at(&run->config.train, run->position.step));
    metrics_integer(metrics, "sequence_length", run->config.train.sequence_length);
    metrics_integer(metrics, "parameters", run_parameters(run));
    metrics_integer(metrics, "ranks", run->mesh.size);
    for (int a = 0; a < axes_count(); a++)
        metrics_integer(metrics, axis_rows[a].name, run->mesh.sizes.size[a]);
    metrics_integer(metrics, "interleave", run->config.mesh.interleave);
    metrics_integer(metrics, "threads", ops_threads());
    metrics_text(metrics, "backend", run->ops->name);
    metrics_text(metrics, "device", run->ops->device->describe());
    metrics_text(metrics, "precision", precision_word[run->ops->precision]);
    metrics_text(metrics, "transport", run->mesh.transport);
    metrics_text(metrics, "number", GDN_REAL_NAME);
    metrics_integer(metrics, "skipped_checkpoints", run->origin.checkpoint.skipped);
    metrics_boolean(metrics, "data_changed", run->data.changed);
    metrics_end(metrics);
    monitor_start(loop->monitor);
}

/* ------------------------------------------------------------------------------------ ways to end */

/* Ends a run that cannot go on because of `status` (agreed, recorded): saves the steps that were done, and
 * adds to the recorded words what became of them. */
static int give_up(struct loop *loop, int status) {
    struct run *run = loop->run;
    char *first = strdup(gdn_failure());
    gdn_failure_clear();
    if (loop_save(loop, true)) {
        char *second = strdup(gdn_failure());
        gdn_failure_clear();
        status = gdn_fail(GDN_UNSAVED, "%s\nand no checkpoint could be saved after %lld steps: %s",
                          first ? first : "", (long long)run->position.step, second ? second : "");
        free(second);
    } else {
        status =
            gdn_fail(status, "%s\nstopped after %lld of %ld steps, which are saved in %s", first ? first : "",
                     (long long)run->position.step, run->config.train.steps, loop->rundir->path);
    }
    free(first);
    return status;
}

static int diverge(struct loop *loop, const struct step_report *report) {
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "diverged");
    metrics_integer(metrics, "step", report->step);
    metrics_number(metrics, "loss", report->loss);
    metrics_number(metrics, "grad_norm", report->grad_norm);
    metrics_number(metrics, "lr", report->lr);
    metrics_end(metrics);
    return GDN_DIVERGED;
}

/* Ends a run that was asked to stop, or by train.stop_at (`reason` STOP_NONE). */
static int stop(struct loop *loop, enum stop_reason reason) {
    struct run *run = loop->run;
    TRY(loop_health_replicas(loop));
    const char *why = reason ? stop_text(reason) : "at train.stop_at";
    metrics_begin(&loop->rundir->metrics, reason >= STOP_INT ? "signal" : "stop");
    metrics_integer(&loop->rundir->metrics, "step", run->position.step);
    metrics_text(&loop->rundir->metrics, "reason", reason ? stop_name(reason) : "train.stop_at");
    metrics_end(&loop->rundir->metrics);
    if (loop_save(loop, true)) {
        char *text = strdup(gdn_failure());
        gdn_failure_clear();
        int status =
            gdn_fail(GDN_UNSAVED, "stopped %s after %lld steps, but no checkpoint could be saved: %s", why,
                     (long long)run->position.step, text ? text : "");
        free(text);
        return status;
    }
    TRY(mesh_agree(&run->mesh, stop_honoured(loop->stop)));
    return gdn_fail(GDN_STOPPED, "stopped %s after %lld of %ld steps; %s to go on", why,
                    (long long)run->position.step, run->config.train.steps,
                    reason ? "run the same command again" : "run it without train.stop_at, or with more,");
}

/* All steps are done. */
static void finish(struct loop *loop) {
    struct run *run = loop->run;
    double seconds = MPI_Wtime() - loop->started;
    metrics_begin(&loop->rundir->metrics, "finish");
    metrics_integer(&loop->rundir->metrics, "step", run->position.step);
    metrics_number(&loop->rundir->metrics, "seconds", seconds);
    metrics_end(&loop->rundir->metrics);

    char took[32];
    progress_duration(seconds, took);
    if (loop->last.sequences)
        progress_note(&loop->progress, "finished after %lld steps, in %s: loss %.4f",
                      (long long)run->position.step, took, loop->last.loss);
    else /* this start had no step to do */
        progress_note(&loop->progress, "finished after %lld steps", (long long)run->position.step);
    if (loop->evaluated == run->position.step)
        progress_note(&loop->progress, "%s loss %.4f", run->data.validation.set[0].name, loop->eval_loss);
    const char *path = loop->rundir->path;
    progress_note(&loop->progress, "weights      %s/checkpoints/step_%08lld/checkpoint.h5", path,
                  (long long)run->position.step);
    progress_note(&loop->progress, "every step   %s/metrics.jsonl", path);
    progress_note(&loop->progress, "curves       tensorboard --logdir %s/tensorboard", path);
}

/* ------------------------------------------------------------------------------------------ the loop */

/* The first failure of files that are written as the run goes on, on rank 0. */
static int written(const struct loop *loop) {
    return loop->rundir->metrics.status ? loop->rundir->metrics.status : loop->rundir->board.status;
}

/* Ends the run on request: of whoever comes first by the order of reasons, on whichever rank. */
static int stop_as_asked(struct loop *loop) {
    int reason = (int)loop->stop->reason;
    int status = loop_store_poll(loop, true);
    if (status) return give_up(loop, status);
    TRY(mesh_reduce(&loop->run->mesh, &reason, 1, MPI_INT, MPI_MAX));
    return stop(loop, (enum stop_reason)reason);
}

/* Agrees before a step whether all can go on (*end false), or how the run ends. */
static int before_step(struct loop *loop, bool *end) {
    struct run *run = loop->run;
    int stored = loop_store_poll(loop, due(run->position.step, run->config.delta_store.interval));
    *end = stored != 0;
    if (stored) return give_up(loop, stored);
    long stop_at = run->config.train.stop_at;
    bool wanted = loop_asked(loop, STOP_STEP) || (stop_at > 0 && run->position.step >= stop_at);
    int status = written(loop);
    if (!status && !wanted) status = run_read_batch(run);
    int any = mesh_any(&run->mesh, status || wanted);
    *end = any != 0;
    if (any < 0) return GDN_INTERNAL;
    if (!any) return run_count_batch(run);

    /* Somebody raised a flag: a failure comes before a request. */
    status = mesh_agree(&run->mesh, status);
    return status ? give_up(loop, status) : stop_as_asked(loop);
}

static int train_step(struct loop *loop, double began) {
    struct run *run = loop->run;
    struct step_report report = {0};
    const double scale = run->loss_scale.scale;
    const struct edge_set *active = loop_active(&run->config, &run->part.pipeline, run->position.step + 1);
    double noise_seconds = -MPI_Wtime(), noise_waited = -activity_waited();
    TRY(loop_noise(loop));
    noise_seconds += MPI_Wtime(), noise_waited += activity_waited();
    int status = loop_step(run, delta_store_begin(loop->store, run->position.step, active), &report);
    loop_record_nan_trace(loop, &report);
    if (status == GDN_DIVERGED) return diverge(loop, &report);
    if (status) return status;
    run->position.on_disk = false;
    report.step_seconds = MPI_Wtime() - began - noise_seconds;
    loop->waited = activity_waited() - noise_waited;
    report.tokens_per_second =
        (double)report.sequences * (double)run->config.train.sequence_length / report.step_seconds;
    loop->last = report;
    record_step(loop, &report);
    loop_record_noise(loop, &report);
    if (run->loss_scale.scale != scale) record_loss_scale(loop, report.step, run->loss_scale.scale < scale);
    if (!report.counted) record_uncounted(loop, &report);
    status = loop_spike(loop, &report);
    return status == GDN_DIVERGED ? diverge(loop, &report) : status;
}

/* Ends a run in which an evaluation, of all or of some data, did not come to its end. */
static int not_evaluated(struct loop *loop, int status) {
    if (executor_failed(loop->run->evaluation.executor)) return status;
    if (status == GDN_STOPPED) {
        gdn_failure_clear();
        return stop_as_asked(loop);
    }
    return status == GDN_DIVERGED ? status : give_up(loop, status);
}

/* Evaluation and checkpoint where they are due after a step; the evaluation also where it is due still. */
static int after_step(struct loop *loop) {
    struct run *run = loop->run;
    const struct train_config *train = &run->config.train;
    bool last = run->position.step >= train->steps;
    if (run->data.validation.sets &&
        (last || due(run->position.step, train->eval_interval) || run->position.evaluation_due)) {
        int status = loop_evaluate(loop);
        if (status) return not_evaluated(loop, status);
    }
    bool wanted;
    TRY(loop_save_due(loop, &wanted));
    if (last || wanted) {
        TRY(loop_health_replicas(loop));
        if (loop_save(loop, last)) return GDN_UNSAVED;
    }
    return loop_save_poll(loop, false);
}

static int train(struct loop *loop) {
    struct run *run = loop->run;
    TRY(loop_store_create(loop));
    TRY(loop_save_create(loop));
    TRY(loop_health_create(loop));
    TRY(monitor_create(run, loop->rundir, &loop->progress, &loop->monitor));
    TRY(run_describe(run, loop->rundir->path, loop->progress.out)); /* with all that is reserved */
    record_start(loop);
    TRY(run_record_memory(run, &loop->rundir->metrics));
    const bool due = run->position.evaluation_due;
    if (due && !run->data.validation.sets) /* any more: no later start is to look for it */
        run->position.evaluation_due = run->position.on_disk = false;
    if (due) TRY(after_step(loop));
    while (run->position.step < run->config.train.steps) {
        const struct train_config *train = &run->config.train;
        if (run->position.step > 0)
            stop_grows(loop->stop, STOP_STEP,
                       (double)batch_at(train, run->position.step) /
                           (double)batch_at(train, run->position.step - 1));
        double began = MPI_Wtime();
        activity_phase(PHASE_STEP, run->position.step);
        bool end = false;
        int status = before_step(loop, &end);
        if (end || status) return status;
        status = loop_leave_out(loop, &began);
        if (status) return not_evaluated(loop, status);
        TRY(loop_prune(loop));
        TRY(train_step(loop, began));
        TRY(loop_health_step(loop));
        double took = MPI_Wtime() - began;
        stop_took(loop->stop, STOP_STEP, took);
        loop_grace_step(loop, took);
        TRY(after_step(loop));
    }
    int status = loop_store_poll(loop, true);
    if (status) return give_up(loop, status);
    if (loop_save(loop, true)) return GDN_UNSAVED; /* of a run that had ended elsewhere */
    TRY(run_record_memory(run, &loop->rundir->metrics));
    TRY(mesh_agree(&run->mesh, stop_honoured(loop->stop))); /* one that came too late is for nobody */
    finish(loop);
    status = mesh_agree(&run->mesh, written(loop));
    return status ? give_up(loop, status) : 0;
}

/* The last event: how the run ended, with the first line of why. */
static void record_end(struct loop *loop, int status) {
    struct metrics *metrics = &loop->rundir->metrics;
    char reason[512];
    snprintf(reason, sizeof reason, "%.*s", (int)strcspn(gdn_failure(), "\n"), gdn_failure());
    metrics_begin(metrics, "end");
    metrics_integer(metrics, "step", loop->run->position.step);
    metrics_integer(metrics, "status", status);
    metrics_text(metrics, "reason", reason);
    metrics_end(metrics);
}

int loop_run(struct run *run, struct rundir *rundir, struct stop *asking, FILE *out) {
    struct loop loop = {
        .run = run,
        .rundir = rundir,
        .stop = asking,
        .evaluated = isnan(run->origin.start_loss) ? -1 : run->position.step,
        .eval_loss = run->origin.start_loss,
        .started = MPI_Wtime(),
    };
    progress_open(&loop.progress, out, run->position.step, &run->config.train);
    int status = train(&loop);
    bool alone = false;
    loop.ending = true;
    activity_phase(PHASE_END, run->position.step); /* a checkpoint under way may take its time */
    /* Where all ranks have come here together, what the run's end has overtaken is told of too. */
    if (!executor_failed(run->trainer.executor) && !executor_failed(run->evaluation.executor))
        loop_store_poll(&loop, true), loop_save_poll(&loop, true);
    else
        alone = true;
    saver_free(loop.saver, alone);
    delta_store_free(loop.store);
    loop_health_free(&loop);
    record_end(&loop, status);
    monitor_end(loop.monitor, status);
    monitor_free(loop.monitor);
    progress_close(&loop.progress);
    return status;
}
