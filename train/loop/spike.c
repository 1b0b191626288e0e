/* Spikes in the training loop: what is told of them, and the way back to a checkpoint. */
#include "train/loop/loop.h"

#include "dist/mpi/activity.h"

#include <stdio.h>

static const char *const action_name[] = {"skip", "rewind", "report"};

void loop_record_nan_trace(struct loop *loop, const struct step_report *report) {
    const struct verdict *v = &loop->run->trainer.verdict;
    struct metrics *metrics = &loop->rundir->metrics;
    if (!v->asked) return;
    char text[512];
    nan_trace_text(v, text);
    metrics_begin(metrics, "not_finite");
    metrics_integer(metrics, "step", report->step);
    if (v->rank >= 0) metrics_integer(metrics, "rank", v->rank);
    if (v->rank >= 0) metrics_text(metrics, "host", v->host);
    if (v->found) {
        metrics_integer(metrics, "layer", v->finding.layer);
        metrics_text(metrics, "what", v->finding.what);
        metrics_integer(metrics, "micro_batch", v->finding.micro_batch);
    }
    metrics_integer(metrics, "recurred", v->recurred);
    metrics_text(metrics, "words", text);
    metrics_end(metrics);
}

static void record_spike(struct loop *loop, const struct step_report *report, enum spike_action action,
                         const char *reason) {
    const struct run *run = loop->run;
    const struct spike *spike = &run->spikes.last;
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "spike");
    metrics_integer(metrics, "step", report->step);
    metrics_text(metrics, "what", spike_name(spike->kind));
    metrics_number(metrics, "value", spike->value);
    metrics_number(metrics, "mean", spike->mean);
    metrics_number(metrics, "deviation", spike->deviation);
    metrics_number(metrics, "z", spike->z);
    metrics_text(metrics, "action", action_name[action]);
    if (action == SPIKE_REWIND) metrics_integer(metrics, "to_step", run->position.step);
    if (reason[0]) metrics_text(metrics, "reason", reason);
    metrics_end(metrics);
    if (action != SPIKE_SKIP) return;
    metrics_begin(metrics, "skip");
    metrics_integer(metrics, "step", report->step);
    metrics_text(metrics, "reason", "spike");
    metrics_end(metrics);
}

static void tell(struct loop *loop, const struct step_report *report, enum spike_action action,
                 const char *reason) {
    const struct spike *spike = &loop->run->spikes.last;
    char compared[160] = "", done[64] = "reported";
    if (spike->kind != SPIKE_NOT_FINITE)
        snprintf(compared, sizeof compared, " %.4g, %.1f deviations above the mean %.4g", spike->value,
                 spike->z, spike->mean);
    if (action == SPIKE_SKIP) snprintf(done, sizeof done, "the step is left out");
    if (action == SPIKE_REWIND)
        snprintf(done, sizeof done, "back to step %lld, with the data that follow",
                 (long long)loop->run->position.step);
    progress_note(&loop->progress, "spike in step %lld: %s%s: %s%s%s%s", (long long)report->step,
                  spike_name(spike->kind), compared, done, reason[0] ? " (" : "", reason,
                  reason[0] ? ")" : "");
}

/* Goes back to the newest whole checkpoint, on with the data after the spike's. *back is false, with a reason
 * in words and nothing changed, where there is none. */
static int rewind_run(struct loop *loop, bool *back, const char **reason) {
    struct run *run = loop->run;
    const int64_t step = run->position.step;
    activity_phase(PHASE_CHECKPOINT, step);
    TRY(loop_save_poll(loop, true)); /* the newest may be under way */
    int status = run_rewind(run, loop->rundir->path, back, reason);
    if (*back) {
        loop->evaluated = -1;
        tensorboard_go_back(&loop->rundir->board, run->position.step);
    }
    if (!status) return 0;
    return gdn_fail_in(GDN_DIVERGED, "after the spike in step %lld training cannot go back to a checkpoint",
                       (long long)step - 1);
}

/* One spike too many. */
static int too_many(const struct loop *loop, const struct step_report *report) {
    const struct spikes_config *config = &loop->run->config.spikes;
    return gdn_fail(
        GDN_DIVERGED,
        "training diverged at step %lld: %s is spike number %ld, and spikes.most allows %ld. Go on "
        "from an older checkpoint with a lower train.lr, or with a higher spikes.threshold where "
        "these were no spikes",
        (long long)report->step,
        loop->run->spikes.last.kind == SPIKE_LOSS   ? "the loss"
        : loop->run->spikes.last.kind == SPIKE_NORM ? "the gradient norm"
                                                    : "what is not finite",
        config->most + 1, config->most);
}

int loop_spike(struct loop *loop, const struct step_report *report) {
    struct run *run = loop->run;
    const struct spikes_config *config = &run->config.spikes;
    enum spike_action action = (enum spike_action)config->action;
    const char *reason = "";
    if (run->spikes.last.kind == SPIKE_NONE) return 0;
    spikes_set_so_far(&run->spikes, spikes_so_far(&run->spikes) + 1);
    bool over = action != SPIKE_REPORT && spikes_so_far(&run->spikes) > config->most;
    if (over) reason = "one more than spikes.most", action = SPIKE_SKIP;
    if (action == SPIKE_REWIND) {
        bool back;
        TRY(rewind_run(loop, &back, &reason));
        if (!back) action = SPIKE_SKIP;
    }
    record_spike(loop, report, action, reason);
    tell(loop, report, action, reason);
    return over ? too_many(loop, report) : 0;
}
