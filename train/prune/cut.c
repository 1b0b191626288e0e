#include "train/prune/layers.h"

#include "kernels/base/status.h"
#include "model/rules/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number that a node has now: of one that has gone that of the nearest below. */
static int now_of(const int *now, int node) {
    while (node >= 0 && now[node] < 0) node--;
    return node < 0 ? -1 : now[node];
}

static int by_place(const void *a, const void *b) {
    const struct cut_edge *x = a, *y = b;
    return x->now.target != y->now.target ? x->now.target - y->now.target : y->now.source - x->now.source;
}

/* Where two connections of a layer come to read the same, the one that has read it stays, else the nearer. */
static void add_edge(struct cut *cut, const struct edge *edge, struct delta_edge now) {
    for (int i = 0; i < cut->edges; i++)
        if (cut->edge[i].now.target == now.target && cut->edge[i].now.source == now.source) return;
    cut->edge[cut->edges++] = (struct cut_edge){now, edge->target, edge->distance, edge->scale};
}

/* By what each contribution is less than it was, as its distance is another one now (model.md, 2). */
static int find_factors(struct cut *cut, const struct model_config *config) {
    struct edges now;
    TRY(edges_create(config, &now));
    for (int i = 0; i < cut->edges; i++)
        for (int e = 0; e < now.count; e++)
            if (now.edge[e].measured && now.edge[e].target == cut->edge[i].now.target &&
                now.edge[e].source == cut->edge[i].now.source)
                cut->edge[i].factor /= now.edge[e].scale;
    edges_free(&now);
    return 0;
}

static int list(const struct edges *edges, const struct edge_set *active, const int *now, struct cut *cut,
                struct model_config *model) {
    struct delta_config *delta = &model->delta;
    for (int again = 0; again < 2; again++) /* those whose source stays, then the others */
        for (int e = 0; e < edges->count; e++) {
            const struct edge *edge = &edges->edge[e];
            const bool stays = edge->source < 0 || now[edge->source] >= 0;
            if (!edge->measured || !edge_set_has(active, e) || now[edge->target] < 0 || stays == again) continue;
            add_edge(cut, edge, (struct delta_edge){now[edge->target], now_of(now, edge->source)});
        }
    if (cut->edges > MAX_EDGES)
        return gdn_fail(GDN_INPUT, "more than %d connections are left: model.delta.edges can list %d", MAX_EDGES,
                        MAX_EDGES);
    qsort(cut->edge, (size_t)cut->edges, sizeof *cut->edge, by_place);
    delta->num_distances = delta->stage_steps = 0;
    delta->embedding_source = false;
    delta->num_edges = cut->edges;
    for (int i = 0; i < cut->edges; i++) delta->edges[i] = cut->edge[i].now;
    return find_factors(cut, model);
}

int cut_create(const struct config *config, const struct edges *edges, const struct edge_set *active, const bool *gone,
               struct cut *cut, struct config *out) {
    const int layers = config->model.num_layers;
    int *now = malloc((size_t)layers * sizeof *now);
    *out = *config;
    *cut = (struct cut){.layer = calloc((size_t)layers, sizeof *cut->layer),
                        .edge = calloc((size_t)edges->count + 1, sizeof *cut->edge)};
    int status = now && cut->layer && cut->edge ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for %d layers", layers);
    for (int l = 0; !status && l < layers; l++) {
        now[l] = gone[l] ? -1 : cut->num_layers;
        if (!gone[l]) cut->layer[cut->num_layers++] = l;
    }
    out->model.num_layers = cut->num_layers;
    if (!status) status = list(edges, active, now, cut, &out->model);
    free(now);
    return status;
}

void cut_free(struct cut *cut) {
    free(cut->layer);
    free(cut->edge);
    *cut = (struct cut){0};
}

/* What the scale of a connection's distance can be joined to, by its kind (model.md, 3). */
static const char *const scaled[] = {
    [KIND_BOTTLENECK] = "output_proj.weight", [KIND_FULL] = "gate.weight", [KIND_ADAPTIVE] = "mix"};

void cut_name(const struct cut *cut, const struct model_config *config, const char *name, char *before, size_t size,
              double *factor) {
    int layer, distance, used = 0;
    *factor = 1;
    if (sscanf(name, "layers.%d.%n", &layer, &used) != 1 || !used) {
        snprintf(before, size, "%s", name);
        return;
    }
    const char *rest = name + used;
    used = 0;
    if (sscanf(rest, "delta.%d.%n", &distance, &used) != 1 || !used) { /* the layer's, or its connections' */
        snprintf(before, size, "layers.%d.%s", cut->layer[layer], rest);
        return;
    }
    const struct cut_edge *edge = cut->edge;
    while (edge->now.target != layer || layer - edge->now.source != distance) edge++;
    if (!strcmp(rest + used, scaled[config->delta.kind])) *factor = edge->factor;
    snprintf(before, size, "layers.%d.delta.%d.%s", edge->target, edge->distance, rest + used);
}

void cut_groups(const struct cut *cut, struct train_config *train) {
    int kept = 0;
    for (int g = 0; g < train->num_groups; g++) {
        struct parameter_group group = train->groups[g];
        int before, used = 0, now = 0;
        if (sscanf(train->groups[g].match, "layers.%d.%n", &before, &used) == 1 && used) {
            while (now < cut->num_layers && cut->layer[now] != before) now++;
            if (now == cut->num_layers) continue;
            snprintf(group.match, sizeof group.match, "layers.%d.%s", now, train->groups[g].match + used);
        }
        train->groups[kept++] = group;
    }
    train->num_groups = kept;
}
