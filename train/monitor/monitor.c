#include "train/monitor/monitor.h"

#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/table/flops.h"
#include "train/monitor/private.h"

#include <math.h>
#include <stdlib.h>

enum { REFRESH_SECONDS = 15 }; /* between writings of metrics.prom, at the least, while steps are done */

/* ------------------------------------------------------------------------------------------ creation */

static int reserve(struct monitor *m) {
    int edges = m->run->part.pipeline.edges.count;
    double *numbers = calloc(4 * (size_t)edges + 1, sizeof *numbers);
    int *places = calloc(2 * (size_t)edges + 1, sizeof *places);
    m->sums = numbers, m->layer = places;
    if (!numbers || !places) return gdn_fail(GDN_INTERNAL, "out of memory to monitor %d connections", edges);
    m->gate = numbers + 2 * edges, m->contribution = m->gate + edges, m->distance = places + edges;
    if (m->run->mesh.rank || !m->run->config.monitor.interval) return 0;
    return prometheus_open(&m->prometheus, m->rundir->path, 64 + 2 * edges + m->run->data.validation.sets);
}

int monitor_create(struct run *run, struct rundir *rundir, struct progress *progress, struct monitor **out) {
    struct monitor *m = *out = calloc(1, sizeof *m);
    int status = m ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the monitor");
    if (m) {
        m->run = run, m->rundir = rundir, m->progress = progress;
        m->started = MPI_Wtime() - monitor_age();
        m->furthest = rundir->metrics.tallies.of[TALLY_STEP].step;
        m->connection_seconds = model_connection_seconds(run->trainer.model);
        m->figures = (struct monitor_figures){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, NAN};
        m->effective = NAN;
        m->last =
            (struct step_report){.step = run->position.step - 1, .loss = NAN, .grad_norm = NAN, .lr = NAN};
        status = reserve(m);
    }
    status = mesh_agree(&run->mesh, status);
    if (!status) status = run_measure_memory(run, &m->memory);
    if (status) {
        monitor_free(m);
        *out = NULL;
    }
    return status;
}

void monitor_free(struct monitor *monitor) {
    if (!monitor) return;
    prometheus_free(&monitor->prometheus);
    free(monitor->sums);
    free(monitor->layer);
    free(monitor);
}

/* ------------------------------------------------------------------------------------------- figures */

/* Over the ranks: the mean of connections' part of the time, and the most memory. */
static void gather(struct monitor *m, struct monitor_figures *f) {
    struct mesh *mesh = &m->run->mesh;
    double share = window_share(&m->window);
    long resident = (long)monitor_resident();
    mesh_sum(mesh, &share, 1);
    mesh_reduce(mesh, &resident, 1, MPI_LONG, MPI_MAX);
    f->connection_share = share / mesh->size;
    f->resident = (double)resident;
    f->device = m->run->ops->device->host ? NAN : (double)memory_sum(&m->memory.reserved);
}

static void take_figures(struct monitor *m, struct monitor_figures *f) {
    const struct config *config = &m->run->config;
    const double percent[] = {50, 95, 99};
    double percentile[3];
    gather(m, f);
    window_percentiles(&m->window, percent, 3, percentile);
    f->p50 = percentile[0], f->p95 = percentile[1], f->p99 = percentile[2];
    f->tokens_per_second =
        (double)m->recent_sequences * (double)config->train.sequence_length / m->recent_seconds;
    f->goodput = m->good / (MPI_Wtime() - m->started);
    f->active = m->last.active_edges;
    f->effective = m->effective;
    m->recent_sequences = 0, m->recent_seconds = 0;
}

static void record_figures(struct monitor *m) {
    struct metrics *metrics = &m->rundir->metrics;
    const struct monitor_figures *f = &m->figures;
    metrics_begin(metrics, "monitor");
    metrics_integer(metrics, "step", m->last.step);
    metrics_number(metrics, "step_seconds_p50", f->p50);
    metrics_number(metrics, "step_seconds_p95", f->p95);
    metrics_number(metrics, "step_seconds_p99", f->p99);
    metrics_number(metrics, "tokens_per_second", f->tokens_per_second);
    metrics_number(metrics, "goodput", f->goodput);
    metrics_number(metrics, "connection_share", f->connection_share);
    metrics_integer(metrics, "resident_bytes", (int64_t)f->resident);
    if (isnan(f->device))
        metrics_number(metrics, "device_bytes", NAN);
    else
        metrics_integer(metrics, "device_bytes", (int64_t)f->device);
    metrics_number(metrics, "checkpoint_stall_seconds", m->stall);
    metrics_integer(metrics, "active_connections", f->active);
    metrics_number(metrics, "effective_connections", f->effective);
    metrics_end(metrics);
}

static void raise_alerts(struct monitor *m) {
    struct metrics *metrics = &m->rundir->metrics;
    const struct monitor_figures *f = &m->figures;
    const struct alert_look look = {
        .step = m->last.step,
        .seconds = MPI_Wtime(),
        .value = {[ALERT_LATENCY] = f->p95,
                  [ALERT_THROUGHPUT] = f->tokens_per_second,
                  [ALERT_SHARE] = f->connection_share,
                  [ALERT_USE] = m->measured ? m->effective / m->measured : NAN},
    };
    struct alert alert[ALERT_RULES];
    int count = alerts_look(&m->alerts, &look, alert);
    for (int i = 0; i < count; i++) {
        metrics_begin(metrics, "alert");
        metrics_integer(metrics, "step", m->last.step);
        metrics_text(metrics, "rule", alert_rule_name[alert[i].rule]);
        metrics_number(metrics, "value", alert[i].value);
        metrics_number(metrics, "baseline", alert[i].baseline);
        metrics_text(metrics, "words", alert[i].text);
        metrics_end(metrics);
        progress_note(m->progress, "alert after step %lld: %s", (long long)m->last.step + 1, alert[i].text);
    }
}

/* --------------------------------------------------------------------------------------------- hooks */

static bool left_out(const struct run *run, const struct step_report *report) {
    bool spike = run->spikes.last.kind != SPIKE_NONE && run->config.spikes.action != SPIKE_REPORT;
    return spike || !report->counted || !isfinite(report->grad_norm);
}

/* A step that repeats one of before, or left the weights as they were, has brought the run no further. */
static void count_step(struct monitor *m, const struct step_report *report) {
    m->steps++;
    m->seconds += report->step_seconds;
    m->recent_sequences += report->sequences;
    m->recent_seconds += report->step_seconds;
    double spent = model_connection_seconds(m->run->trainer.model);
    window_add(&m->window, report->step_seconds, spent - m->connection_seconds);
    m->connection_seconds = spent;
    if (report->step <= m->furthest || left_out(m->run, report)) return;
    m->furthest = report->step;
    m->good += report->step_seconds;
}

/* Steps of another batch take another time: what they are compared with begins anew. */
static void forget(struct monitor *m) {
    m->window = (struct window){0};
    m->alerts.rule[ALERT_LATENCY] = m->alerts.rule[ALERT_THROUGHPUT] = (struct alert_state){0};
}

/* Without figures, what an earlier start has left would go on to speak of the run. */
void monitor_start(struct monitor *monitor) {
    if (!monitor) return;
    if (monitor->run->config.monitor.interval)
        monitor_write_prometheus(monitor, -1);
    else if (!monitor->run->mesh.rank)
        monitor_remove_prometheus(monitor);
}

/* Between events at steps and evaluations that take long, so that the file's time goes on. */
static void write_unless_new(struct monitor *m, double seconds) {
    if (MPI_Wtime() - m->written >= seconds) monitor_write_prometheus(m, -1);
}

static double flops_of(const struct monitor *m, const struct edge_set *active) {
    const struct config *config = &m->run->config;
    return model_flops_per_token(&config->model, &m->run->part.pipeline.edges, active,
                                 config->train.sequence_length);
}

void monitor_step(struct monitor *monitor, const struct step_report *report) {
    struct monitor *m = monitor;
    if (!m) return;
    const long gates = m->run->config.train.gate_interval, interval = m->run->config.monitor.interval;
    if (report->sequences != m->last.sequences) forget(m);
    if (m->flops == 0 || report->active_edges != m->last.active_edges) m->flops = flops_of(m, report->active);
    m->last = *report;
    count_step(m, report);
    if (gates && report->step % gates == 0) monitor_measure_gates(m, report);
    if (!interval) return;
    if ((report->step + 1) % interval) {
        write_unless_new(m, REFRESH_SECONDS);
        return;
    }
    take_figures(m, &m->figures);
    if (m->run->mesh.rank) return;
    record_figures(m);
    raise_alerts(m);
    monitor_write_board(m);
    write_unless_new(m, 1);
}

void monitor_no_step(struct monitor *monitor) {
    if (monitor) monitor->connection_seconds = model_connection_seconds(monitor->run->trainer.model);
}

void monitor_evaluation(struct monitor *monitor) {
    if (monitor) write_unless_new(monitor, 1);
}

void monitor_stall(struct monitor *monitor, double seconds) {
    if (monitor) monitor->stall += seconds;
}

void monitor_end(struct monitor *monitor, int status) {
    if (monitor) monitor_write_prometheus(monitor, status);
}
