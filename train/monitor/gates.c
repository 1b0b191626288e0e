/* Mean gates and contributions of single connections, in steps that measure them. */
#include "train/monitor/private.h"

#include "model/params/edges.h"

#include <math.h>

/* Connections in one event, so that a line stays within what metrics_end takes. */
enum { GATES_IN_LINE = 1000 };

double effective_connections(const double *contribution, int count) {
    double sum = 0, entropy = 0;
    for (int i = 0; i < count; i++) sum += contribution[i];
    for (int i = 0; i < count; i++) {
        double share = contribution[i] / sum;
        if (share != 0) entropy -= share * log(share);
    }
    return count ? exp(entropy) : NAN;
}

/* Means over the tokens of the step but for padding, from the sums over all ranks. */
static void take_gates(struct monitor *m, const struct step_report *report) {
    const struct edges *edges = &m->run->part.pipeline.edges;
    const struct config *config = &m->run->config;
    const double tokens = (double)report->unpadded;
    const double gates = (double)model_gates(&config->model);
    m->measured = 0;
    for (int l = 0; l < config->model.num_layers; l++)
        for (int e = edges->first[l]; e < edges->first[l + 1]; e++) {
            if (!edges->edge[e].measured || !edge_set_has(report->active, e)) continue;
            int at = m->measured++;
            m->gate[at] = m->sums[2 * e] / (tokens * gates);
            m->contribution[at] = m->sums[2 * e + 1] / tokens;
            m->layer[at] = edges->edge[e].target, m->distance[at] = edges->edge[e].distance;
        }
    m->effective = effective_connections(m->contribution, m->measured);
}

static void record_gates(struct monitor *m, int64_t step) {
    struct metrics *metrics = &m->rundir->metrics;
    for (int at = 0; at < m->measured; at += GATES_IN_LINE) {
        int count = m->measured - at < GATES_IN_LINE ? m->measured - at : GATES_IN_LINE;
        metrics_begin(metrics, "gates");
        metrics_integer(metrics, "step", step);
        metrics_integers(metrics, "layer", m->layer + at, count);
        metrics_integers(metrics, "distance", m->distance + at, count);
        metrics_numbers(metrics, "gate", m->gate + at, count);
        metrics_numbers(metrics, "contribution", m->contribution + at, count);
        metrics_end(metrics);
    }
}

void monitor_measure_gates(struct monitor *m, const struct step_report *report) {
    const struct connection_sums *found = executor_connections(m->run->trainer.executor);
    int edges = m->run->part.pipeline.edges.count;
    for (int e = 0; e < edges; e++) {
        m->sums[2 * e] = found[e].gate;
        m->sums[2 * e + 1] = found[e].contribution;
    }
    mesh_sum(&m->run->mesh, m->sums, 2 * edges);
    take_gates(m, report);
    record_gates(m, report->step);
}
