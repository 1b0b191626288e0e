/* What rows of the table of rules are offered. */
#include "model/rule/rule.h"
#include "model/params/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

long rule_width(const struct model_config *config, enum rule_place place) {
    long width = 0;
    if (place < PLACE_QUERY) return stream_width(config);
    for (int l = 0; !width && l < config->num_layers; l++) {
        const struct mixer *mixer = mixer_of(config, l);
        if (mixer->place_width) width = mixer->place_width(config, place);
    }
    return width;
}

bool rule_enters(const struct rule_config *settings, int layer) {
    bool enters = !settings->num_layers;
    for (int i = 0; i < settings->num_layers; i++) enters = enters || settings->layers[i] == layer;
    return enters && (!settings->period || layer % settings->period == settings->period - 1);
}

static int add_edge(int node, struct edge *edge, int n) {
    for (int i = 0; i < n; i++)
        if (edge[i].source == node) return n;
    edge[n] = (struct edge){.source = node};
    return n + 1;
}

static int by_falling_source(const void *a, const void *b) {
    return ((const struct edge *)b)->source - ((const struct edge *)a)->source;
}

int rule_edges(const struct model_config *config, const struct rule_config *settings, int layer,
               struct edge *edge) {
    int n = 0;
    (void)config;
    if (!rule_enters(settings, layer)) return 0;
    for (int i = 0; i < settings->num_distances; i++)
        if (settings->distances[i] <= layer) n = add_edge(layer - settings->distances[i], edge, n);
    for (int i = 0; i < settings->num_sources; i++)
        if (settings->sources[i] < layer) n = add_edge(settings->sources[i], edge, n);
    qsort(edge, (size_t)n, sizeof *edge, by_falling_source);
    return n;
}

void rule_name(const struct rule_entry *entry, char out[RULE_NAME]) {
    if (entry->before)
        snprintf(out, RULE_NAME, "%s_%d", entry->row->name, entry->before + 1);
    else
        stpncpy(out, entry->row->name, RULE_NAME - 1)[0] = 0;
}

struct tensor rule_find_connections(const struct model *m, const struct rule_layer *x, const char *leaf) {
    char name[RULE_NAME];
    rule_name(x->entry, name);
    return find_tensor(m, "layers.%d.%s.%d.%s", x->layer, name, x->edge[0].distance, leaf);
}

struct tensor rule_find_shared(const struct model *m, const struct rule_layer *x, const char *leaf) {
    char name[RULE_NAME];
    rule_name(x->entry, name);
    return find_tensor(m, "layers.%d.%s.%s", x->layer, name, leaf);
}

real *source_gradient_of(const struct model *m, int node) {
    real *given = m->pass->source_gradient ? m->pass->source_gradient[1 + node] : NULL;
    return given || node < m->span.first - 1 ? given : m->rules->source_gradient[1 + node];
}

struct row_range rule_terms(const struct model *m) {
    long first = axis_first_row(m->tensor, m->T, m->tensor->index);
    return (struct row_range){first, axis_first_row(m->tensor, m->T, m->tensor->index + 1) - first};
}

int rule_active(const struct model *m, const struct rule_layer *x) {
    int n = 0;
    for (int i = 0; i < x->n; i++) n += rule_edge_active(m, x, i);
    return n;
}

double rule_clock(const struct model *m) {
    struct timespec now;
    if (!m->ops->device->host || m->planned) return 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
