/* Checkpoints in the training loop: when they are due, what is told of them, and what their failures mean. */
#include "train/loop/loop.h"

#include "dist/mpi/activity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A disk may be full for a while: a checkpoint that failed in the background is told of, and the next one is
 * the next try; so many in a row that fail end the run. */
enum { MAX_FAILURES = 3 };

/* Bytes a second at which a checkpoint is written, synced and read back by a slow disk: how long the first
 * one may take. */
#define SLOW_DISK 1e8

int loop_save_create(struct loop *loop) {
    struct run *run = loop->run;
    const struct saver_setup setup = {
        .mesh = &run->mesh,
        .ops = run->ops,
        .config = &run->config,
        .content = run_content(run),
        .training = &run->training,
        .directory = loop->rundir->path,
    };
    loop->saved_at = MPI_Wtime();
    loop->save_seconds = (double)checkpoint_bytes(&setup.content) / SLOW_DISK;
    TRY(saver_create(&setup, &loop->saver));
    run->copy_bytes = saver_reserved(loop->saver);
    return 0;
}

static void record_saved(struct loop *loop, const struct saver_report *report) {
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "checkpoint");
    metrics_integer(metrics, "step", report->step);
    metrics_number(metrics, "seconds", report->seconds);
    metrics_number(metrics, "stall_seconds", report->stall_seconds);
    metrics_boolean(metrics, "asynchronous", report->asynchronous);
    metrics_integer(metrics, "bytes", report->bytes);
    metrics_end(metrics);
}

static void record_failed(struct loop *loop, const struct saver_report *report) {
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "checkpoint_failed");
    metrics_integer(metrics, "step", report->step);
    metrics_text(metrics, "reason", report->text);
    metrics_number(metrics, "seconds", report->seconds);
    metrics_number(metrics, "stall_seconds", report->stall_seconds);
    metrics_boolean(metrics, "asynchronous", report->asynchronous);
    metrics_end(metrics);
}

/* Returns GDN_UNSAVED for a failure that ends the run. */
static int take_report(struct loop *loop, const struct saver_report *report) {
    struct run *run = loop->run;
    if (!report->done) return 0;
    loop->saving = false;
    monitor_stall(loop->monitor, report->stall_seconds);
    if (!report->status) {
        record_saved(loop, report);
        run->position.best_loss = report->best_loss;
        run->origin.elsewhere = false;
        run->position.on_disk = run->position.step == report->step;
        loop->save_failures = 0;
        loop->saved_seconds = fmax(loop->saved_seconds, report->seconds);
        loop->save_seconds = loop->saved_seconds;
        return 0;
    }
    record_failed(loop, report);
    loop->save_failures++;
    if (!report->asynchronous) return gdn_fail(GDN_UNSAVED, "%s", report->text);
    if (loop->save_failures >= MAX_FAILURES)
        return gdn_fail(GDN_UNSAVED,
                        "%d checkpoints in a row could not be saved; the last, after %lld steps: %s",
                        loop->save_failures, (long long)report->step, report->text);
    progress_note(&loop->progress, "warning: the checkpoint after %lld steps could not be saved: %s%s",
                  (long long)report->step, report->text,
                  loop->ending ? "" : "; training goes on, and the next one is due as usual");
    return 0;
}

int loop_save_poll(struct loop *loop, bool wait) {
    struct saver_report report;
    if (!loop->saver) return 0;
    TRY(saver_poll(loop->saver, wait, &report));
    return take_report(loop, &report);
}

int loop_save(struct loop *loop, bool now) {
    struct run *run = loop->run;
    if (run->position.on_disk) return 0;
    TRY(loop_health_replicas(loop)); /* nothing wrong is to be saved */
    loop->ending |= now;
    activity_phase(PHASE_CHECKPOINT, run->position.step);
    int status = loop_save_poll(loop, true);
    if (status == GDN_UNSAVED &&
        now) { /* of failures in a row: this one may work, and then nothing is lost */
        gdn_failure_clear();
        status = 0;
    }
    TRY(status);
    if (run->position.on_disk) return 0;                  /* it was this very one */
    activity_phase(PHASE_CHECKPOINT, run->position.step); /* another one, with time of its own */
    double loss = loop->evaluated == run->position.step ? loop->eval_loss : NAN;
    struct checkpoint_info info = {
        .step = run->position.step,
        .samples = run->position.samples,
        .tokens = run->position.tokens,
        .config = run->config_text,
        .configured = run->origin.configured,
        .data = run->data.text,
        .tokenizer = run->data.tokenizer.carried.file,
        .tokenizer_config = run->data.tokenizer.carried.configuration,
        .pruning = run->config.train.prune.by ? (char *)pruning_text(&run->pruning) : NULL,
        .best_loss = fmin(run->position.best_loss, loss), /* fmin takes the number where one is NAN */
        .loss = loss,
        .evaluation_due = run->position.evaluation_due,
        .loss_scale = run->loss_scale.dynamic ? run->loss_scale.scale : 0,
        .loss_scale_good = run->loss_scale.good,
    };
    loop->saved_at = MPI_Wtime();
    TRY(saver_begin(loop->saver, &info, now));
    loop->saving = true;
    return loop_save_poll(loop, now); /* one in the foreground has ended */
}

int loop_save_due(struct loop *loop, bool *is_due) {
    const struct run *run = loop->run;
    const struct checkpoint_config *config = &run->config.checkpoint;
    *is_due = config->interval > 0 && run->position.step % config->interval == 0;
    if (config->interval_minutes <= 0) return 0;
    /* By rank 0's clock alone. */
    bool time = run->mesh.rank == 0 && MPI_Wtime() - loop->saved_at >= 60 * config->interval_minutes;
    int any = mesh_any(&run->mesh, time);
    if (any < 0) return GDN_INTERNAL;
    *is_due |= any;
    return 0;
}

enum stop_reason loop_asked(struct loop *loop, enum stop_work next) {
    /* A checkpoint that is under way may take longer than all before it. */
    double saving = loop->saving ? MPI_Wtime() - loop->saved_at : 0;
    return stop_asked(loop->stop, next, fmax(saving, loop->save_seconds));
}
