/* What rows of the table of rules are offered. */
#include "model/rule/rule.h"
#include "model/params/stream.h"

#include <stdio.h>
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

bool rule_enters_at(const struct rule_config *settings, enum rule_place place) {
    enum rule_place own = settings->place == PLACE_HEAD ? PLACE_AFTER : (enum rule_place)settings->place;
    return place == own || settings->channels >> place & 1;
}

bool rule_projects(const struct rule_entry *entry, enum rule_place place) {
    return entry->row->projects && rule_enters_at(entry->settings, place);
}

bool rule_enters_alone(const struct rule_entry *entry, int layer) {
    if (entry->row->streams) return true;
    return entry->row->tokens && entry->row->tokens(entry->settings) && rule_enters(entry->settings, layer);
}

int rule_add_edge(struct edge another, struct edge *edge, int n) {
    int at = n;
    for (int i = 0; i < n; i++)
        if (edge[i].source == another.source) return n;
    for (; at > 0 && edge[at - 1].source < another.source; at--) edge[at] = edge[at - 1];
    edge[at] = another;
    return n + 1;
}

int rule_edges(const struct model_config *config, const struct rule_config *settings, int layer,
               struct edge *edge) {
    int n = 0;
    (void)config;
    if (!rule_enters(settings, layer)) return 0;
    for (int i = 0; i < settings->num_distances; i++)
        if (settings->distances[i] <= layer)
            n = rule_add_edge((struct edge){.source = layer - settings->distances[i]}, edge, n);
    for (int i = 0; i < settings->num_sources; i++)
        if (settings->sources[i] < layer)
            n = rule_add_edge((struct edge){.source = settings->sources[i]}, edge, n);
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
    struct tensor found = {0};
    rule_name(x->entry, name);
    for (int i = 0; i < x->n && !found.w; i++)
        found = find_tensor(m, "layers.%d.%s.%d.%s", x->layer, name, x->edge[i].distance, leaf);
    return found;
}

struct tensor rule_find_shared(const struct model *m, const struct rule_layer *x, const char *leaf) {
    char name[RULE_NAME];
    rule_name(x->entry, name);
    return find_tensor(m, "layers.%d.%s.%s", x->layer, name, leaf);
}

struct tensor rule_find_trunk(const struct model *m, int layer, const char *leaf) {
    return find_tensor(m, "layers.%d.%s", layer, leaf);
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
    return x->n ? n : x->enters;
}

double rule_clock(const struct model *m) {
    struct timespec now;
    if (!m->ops->device->host || m->planned) return 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
