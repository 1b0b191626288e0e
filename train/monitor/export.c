/* A run's figures for others' tools: metrics.prom and TensorBoard. */
#include "train/monitor/private.h"

#include "kernels/base/status.h"

#include <math.h>
#include <time.h>

static double mean(const double *x, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += x[i];
    return count ? sum / count : NAN;
}

static void validation_metrics(struct prometheus *p, const struct monitor *m) {
    const struct validation *validation = &m->run->data.validation;
    const struct evaluation_result *result = m->run->evaluation.result;
    if (!validation->sets) return;
    prometheus_value(p, "gdn_validation_loss", "gauge", "Loss of the last evaluation.", result[0].loss);
    prometheus_metric(p, "gdn_validation_set_loss", "gauge", "The same of each validation set.");
    for (int i = 0; i < validation->sets; i++) {
        char label[80];
        snprintf(label, sizeof label, "set=\"%s\"", validation->set[i].name);
        prometheus_sample(p, "", label, result[i].loss);
    }
}

static void progress_metrics(struct prometheus *p, const struct monitor *m) {
    const struct step_report *last = &m->last;
    const struct config *config = &m->run->config;
    prometheus_value(p, "gdn_step", "gauge", "Optimiser steps done.", (double)last->step + 1);
    prometheus_value(p, "gdn_planned_steps", "gauge", "Steps that the run is to have.",
                     (double)config->train.steps);
    /* no counter: a start after a crash goes on from an older step */
    prometheus_value(p, "gdn_tokens_total", "gauge", "Tokens that the run was trained on.",
                     (double)m->run->position.tokens);
    prometheus_value(p, "gdn_loss", "gauge", "Training loss of the last step, with its regularisers.",
                     last->loss);
    validation_metrics(p, m);
    prometheus_value(p, "gdn_gradient_norm", "gauge", "Norm of the last step's gradient before clipping.",
                     last->grad_norm);
    prometheus_value(p, "gdn_learning_rate", "gauge", "Learning rate of the last step.", last->lr);
    prometheus_value(p, "gdn_loss_scale", "gauge", "What gradients are multiplied with in fp16, else 1.",
                     m->run->loss_scale.scale);
}

static void time_metrics(struct prometheus *p, const struct monitor *m) {
    const struct monitor_figures *f = &m->figures;
    prometheus_metric(p, "gdn_step_duration_seconds", "summary",
                      "How long the last steps took; sum and count are of this start.");
    prometheus_sample(p, "", "quantile=\"0.5\"", f->p50);
    prometheus_sample(p, "", "quantile=\"0.95\"", f->p95);
    prometheus_sample(p, "", "quantile=\"0.99\"", f->p99);
    prometheus_sample(p, "_sum", "", m->seconds);
    prometheus_sample(p, "_count", "", (double)m->steps);
    prometheus_value(p, "gdn_tokens_per_second", "gauge", "Throughput of steps.", f->tokens_per_second);
    prometheus_value(p, "gdn_model_flops_per_second", "gauge",
                     "Arithmetic that the model needs by its definition, recomputation not counted.",
                     f->tokens_per_second * m->flops);
    prometheus_value(p, "gdn_goodput_ratio", "gauge",
                     "Part of the time since this start that went into steps that brought the run further.",
                     f->goodput);
    prometheus_value(p, "gdn_checkpoint_stall_seconds_total", "counter",
                     "Time that training has waited for checkpoints in this start.", m->stall);
}

static void memory_metrics(struct prometheus *p, const struct monitor *m) {
    prometheus_value(p, "gdn_resident_memory_bytes", "gauge",
                     "Host memory of the rank that has most at the moment.", m->figures.resident);
    prometheus_value(p, "gdn_device_memory_bytes", "gauge",
                     "Memory reserved on a GPU by the rank that needs most.", m->figures.device);
    prometheus_metric(p, "gdn_reserved_memory_bytes", "gauge",
                      "Memory reserved by the rank that needs most, by what it is for.");
    for (int i = 0; i < MEMORY_PARTS; i++) {
        char label[64];
        snprintf(label, sizeof label, "category=\"%s\"", memory_key[i]);
        prometheus_sample(p, "", label, (double)m->memory.reserved.bytes[i]);
    }
}

static void connection_samples(struct prometheus *p, const struct monitor *m, const double *values) {
    for (int i = 0; i < m->measured; i++) {
        char label[64];
        snprintf(label, sizeof label, "layer=\"%d\",distance=\"%d\"", m->layer[i], m->distance[i]);
        prometheus_sample(p, "", label, values[i]);
    }
}

static void connection_metrics(struct prometheus *p, const struct monitor *m) {
    const struct monitor_figures *f = &m->figures;
    prometheus_value(p, "gdn_active_connections", "gauge", "Delta connections that are introduced.",
                     isnan(f->p50) ? NAN : f->active);
    prometheus_value(p, "gdn_effective_connections", "gauge",
                     "How many of them carry the whole: the perplexity of their contributions' shares.",
                     f->effective);
    prometheus_value(p, "gdn_connection_time_ratio", "gauge",
                     "Part of a step's time spent in delta connections.", f->connection_share);
    prometheus_metric(p, "gdn_connection_gate", "gauge", "Mean gate of a delta connection.");
    connection_samples(p, m, m->gate);
    prometheus_metric(p, "gdn_connection_contribution", "gauge",
                      "Root mean square of what a delta connection adds, mean over tokens.");
    connection_samples(p, m, m->contribution);
}

static void event_metrics(struct prometheus *p, const struct monitor *m) {
    static const struct {
        enum tally_event event;
        const char *name, *help;
    } row[] = {
        {TALLY_RESUME, "gdn_resumes_total", "Starts of the run that went on from a checkpoint."},
        {TALLY_CHECKPOINT, "gdn_checkpoints_total", "Checkpoints written."},
        {TALLY_CHECKPOINT_FAILED, "gdn_failed_checkpoints_total", "Checkpoints that could not be written."},
        {TALLY_SPIKE, "gdn_spikes_total", "Spikes of loss or gradient norm."},
        {TALLY_SKIP, "gdn_skipped_steps_total",
         "Steps whose update was left out, by spikes, by fp16's loss scale or without targets that count."},
        {TALLY_ALERT, "gdn_alerts_total", "Alerts raised."},
    };
    const struct tally *tally = m->rundir->metrics.tallies.of, *saved = &tally[TALLY_CHECKPOINT];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        prometheus_value(p, row[i].name, "counter", row[i].help, (double)tally[row[i].event].count);
    prometheus_value(p, "gdn_checkpoint_step", "gauge", "Steps done at the last checkpoint.",
                     saved->count ? (double)saved->step : NAN);
    prometheus_value(p, "gdn_checkpoint_timestamp_seconds", "gauge", "When the last checkpoint was written.",
                     saved->time > 0 ? saved->time : NAN);
    prometheus_metric(p, "gdn_alert_active", "gauge",
                      "Whether a rule has spoken of something that has not ended.");
    for (int i = 0; i < ALERT_RULES; i++) {
        char label[64];
        snprintf(label, sizeof label, "rule=\"%s\"", alert_rule_name[i]);
        prometheus_sample(p, "", label, m->alerts.rule[i].raised);
    }
}

static void state_metrics(struct prometheus *p, int status) {
    static const char *const reason[] = {
        [GDN_OK] = "reason=\"finished\"",     [GDN_INTERNAL] = "reason=\"internal error\"",
        [GDN_INPUT] = "reason=\"bad input\"", [GDN_STOPPED] = "reason=\"stopped\"",
        [GDN_UNSAVED] = "reason=\"unsaved\"", [GDN_DIVERGED] = "reason=\"diverged\"",
    };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    prometheus_value(p, "gdn_up", "gauge", "1 while the run goes on, 0 once it has ended.", status < 0);
    prometheus_metric(p, "gdn_exit_status", "gauge", "How the run has ended: the program's exit status.");
    if (status >= 0)
        prometheus_sample(p, "", status <= GDN_DIVERGED ? reason[status] : "reason=\"unknown\"", status);
    prometheus_value(p, "gdn_updated_timestamp_seconds", "gauge",
                     "When this was written: of a run that was killed gdn_up stays 1, but this stands still.",
                     (double)now.tv_sec + 1e-3 * (double)(now.tv_nsec / 1000000));
}

/* Not a failure of the run's. */
static void tell_failure(struct monitor *m) {
    struct metrics *metrics = &m->rundir->metrics;
    const char *text = m->prometheus.failure;
    if (m->failed) return;
    m->failed = true;
    metrics_begin(metrics, "monitor_failed");
    metrics_integer(metrics, "step", m->last.step);
    metrics_text(metrics, "reason", text);
    metrics_end(metrics);
    progress_note(m->progress, "warning: %s; the run goes on without it", text);
}

void monitor_write_prometheus(struct monitor *monitor, int status) {
    struct monitor *m = monitor;
    struct prometheus *p = &m->prometheus;
    if (!p->text) return;
    m->written = MPI_Wtime();
    prometheus_begin(p);
    state_metrics(p, status);
    progress_metrics(p, m);
    time_metrics(p, m);
    memory_metrics(p, m);
    connection_metrics(p, m);
    event_metrics(p, m);
    if (prometheus_write(p)) tell_failure(m);
}

void monitor_remove_prometheus(struct monitor *monitor) {
    if (prometheus_remove(&monitor->prometheus, monitor->rundir->path)) tell_failure(monitor);
}

/* What is not known has no point on its curve. */
void monitor_write_board(struct monitor *monitor) {
    const struct monitor *m = monitor;
    const struct monitor_figures *f = &m->figures;
    const struct scalar all[] = {
        {"time/step_p50", f->p50},
        {"time/step_p95", f->p95},
        {"time/step_p99", f->p99},
        {"time/goodput", f->goodput},
        {"time/checkpoint_stall", m->stall},
        {"train/tokens_per_second_mean", f->tokens_per_second},
        {"train/loss_scale", m->run->loss_scale.scale},
        {"memory/resident_bytes", f->resident},
        {"memory/device_bytes", f->device},
        {"connections/active", f->active},
        {"connections/effective", f->effective},
        {"connections/share_of_time", f->connection_share},
        {"connections/mean_gate", mean(m->gate, m->measured)},
        {"connections/mean_contribution", mean(m->contribution, m->measured)},
    };
    struct scalar known[sizeof all / sizeof *all];
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!isnan(all[i].value)) known[count++] = all[i];
    tensorboard_write(&m->rundir->board, m->last.step, known, count);
}
