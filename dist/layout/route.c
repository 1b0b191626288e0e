#include "dist/layout/route.h"
#include "kernels/base/status.h"

#include <stdbool.h>
#include <stdlib.h>

struct maker {
    const struct edges *edges;
    const struct layout *layout;
    struct routes *out;
    int *stage;   /* [num_layers + 1] stage of node n at 1 + n */
    bool full; /* no memory left */
};

static int stage_of(const struct maker *m, int node) {
    return m->stage[1 + node];
}

/* Nodes cross the boundary above their own stage as the stream where they are its last layer. */
static bool is_stream(const struct maker *m, int node) {
    return m->layout->stage && m->layout->stage[stage_of(m, node)].end == node + 1;
}

/* How many hops the rank of stage `to` lies after that of stage `from`: 0 … pipeline − 1. */
static int hops(const struct maker *m, int from, int to) {
    return (to - from) % m->layout->size[AXIS_PIPELINE];
}

static void push(struct maker *m, struct crossings *crossings, int kind, int index) {
    int n = crossings->count;
    if ((n & (n - 1)) == 0) { /* grows at powers of two */
        struct crossing *more = realloc(crossings->crossing, (size_t)(n ? 2 * n : 1) * sizeof *more);
        if (!more) {
            m->full = true;
            return;
        }
        crossings->crossing = more;
    }
    crossings->crossing[crossings->count].kind = kind;
    crossings->crossing[crossings->count++].index = index;
}

/* The node's edges into ranks that a node known at stages own … own + k does not reach, and whether one of
 * them needs the node itself; names `projector` theirs where it is one. */
static int edges_beyond(struct maker *m, int node, int k, int projector, bool *whole) {
    int n = 0, own = stage_of(m, node);
    for (int i = m->edges->leaves[1 + node]; i < m->edges->leaves[2 + node]; i++) {
        int e = m->edges->leaving[i];
        if (hops(m, own, stage_of(m, m->edges->edge[e].target)) <= k) continue;
        if (projector >= 0) m->out->projector[e] = projector;
        *whole |= m->edges->edge[e].whole;
        n++;
    }
    return n;
}

/* The first boundary at which the node's projections are together smaller than the node. */
static void choose_projector(struct maker *m, int node, const struct route_widths *widths) {
    int own = stage_of(m, node);
    for (int k = is_stream(m, node) ? 1 : 0;; k++) {
        bool whole = false;
        int n = edges_beyond(m, node, k, -1, &whole);
        if (!n) return;
        if (!whole && n * widths->edge < widths->node) {
            edges_beyond(m, node, k, own + k, &whole);
            return;
        }
    }
}

static void route_node(struct maker *m, int node) {
    int own = stage_of(m, node), reach = own, last = own; /* stages that need it: by first passage; at all */
    for (int i = m->edges->leaves[1 + node]; i < m->edges->leaves[2 + node]; i++) {
        int e = m->edges->leaving[i];
        const struct edge *edge = &m->edges->edge[e];
        if (!edge_set_has(m->out->active, e)) continue;
        int projector = m->out->projector[e], target = stage_of(m, edge->target);
        int first = projector >= 0 ? projector : own + hops(m, own, target);
        if (projector >= 0) target = projector;
        if (reach < first) reach = first;
        if (last < target) last = target;
    }
    int begin = own + (is_stream(m, node) ? 1 : 0);
    for (int b = begin; b < reach; b++) push(m, &m->out->forward[b], CROSSING_SOURCE, node);
    for (int b = begin; b < last; b++) push(m, &m->out->backward[b], CROSSING_SOURCE, node);
}

static void route_edge(struct maker *m, int e) {
    int projector = m->out->projector[e], target = stage_of(m, m->edges->edge[e].target);
    if (projector < 0 || !edge_set_has(m->out->active, e)) return;
    int first = projector + hops(m, projector, target); /* the target's rank has it from here on */
    for (int b = projector; b < first; b++) push(m, &m->out->forward[b], CROSSING_PROJECTED, e);
    for (int b = projector; b < target; b++) push(m, &m->out->backward[b], CROSSING_PROJECTED, e);
}

int routes_create(const struct edges *edges, const struct edge_set *active, const struct layout *layout,
                  const struct route_widths *widths, struct routes *out) {
    int stages = layout->stage ? layout->size[AXIS_PIPELINE] * layout->chunks : 1,
        num_layers = edges->num_layers;
    *out = (struct routes){.active = active,
                           .boundaries = stages - 1,
                           .forward = calloc((size_t)stages, sizeof *out->forward),
                           .backward = calloc((size_t)stages, sizeof *out->backward),
                           .projector = malloc((size_t)(edges->count + 1) * sizeof *out->projector)};
    struct maker m = {.edges = edges,
                      .layout = layout,
                      .out = out,
                      .stage = malloc((size_t)(num_layers + 1) * sizeof *m.stage)};
    m.full = !out->forward || !out->backward || !out->projector || !m.stage;
    if (!m.full) {
        for (int n = -1; n < num_layers; n++) m.stage[1 + n] = layout_stage_of(layout, n);
        for (int e = 0; e < edges->count; e++) out->projector[e] = -1;
        if (layout->narrow && widths->narrow)
            for (int n = -1; n < num_layers; n++) choose_projector(&m, n, widths);
        for (int n = -1; n < num_layers; n++) route_node(&m, n);
        for (int e = 0; e < edges->count; e++) route_edge(&m, e);
    }
    free(m.stage);
    if (!m.full) return 0;
    routes_free(out);
    return gdn_fail(GDN_INTERNAL, "out of memory for the routes of %d layers over %d stages", num_layers,
                    stages);
}

void routes_free(struct routes *routes) {
    for (int b = 0; b < routes->boundaries; b++) {
        if (routes->forward) free(routes->forward[b].crossing);
        if (routes->backward) free(routes->backward[b].crossing);
    }
    free(routes->forward);
    free(routes->backward);
    free(routes->projector);
    *routes = (struct routes){0};
}
