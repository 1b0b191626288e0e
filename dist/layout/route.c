#include "dist/layout/route.h"
#include "kernels/base/status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* The first stage from `from` on whose rank is that of stage `to`. */
static int arrival(const struct maker *m, int from, int to) {
    int rank = layout_rank_of(m->layout, to);
    while (layout_rank_of(m->layout, from) != rank) from++;
    return from;
}

/* The last stage of `from`'s rank before what begins there arrives at stage `to`: in a V a rank may have it
 * from its first chunk on and send it from its second. */
static int departure(const struct maker *m, int from, int to) {
    int rank = layout_rank_of(m->layout, from);
    while (layout_rank_of(m->layout, to) != rank) to--;
    return to;
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

/* Does a node that is known from stage `own` on reach the rank of a target at stage own + k, or before? */
static bool reached(const struct maker *m, int own, int k, int target) {
    return arrival(m, own, target) <= own + k;
}

/* The node's edges into ranks that a node known at stages own … own + k does not reach, and whether one of
 * them needs the node itself; has the rank of stage `projector` project for them where it is one. */
static int edges_beyond(struct maker *m, int node, int k, int projector, bool *whole) {
    int n = 0, own = stage_of(m, node);
    for (int i = m->edges->leaves[1 + node]; i < m->edges->leaves[2 + node]; i++) {
        int e = m->edges->leaving[i];
        int target = stage_of(m, m->edges->edge[e].target);
        if (reached(m, own, k, target)) continue;
        if (projector >= 0) m->out->projector[e] = departure(m, projector, arrival(m, projector, target));
        *whole |= m->edges->edge[e].whole;
        n++;
    }
    return n;
}

/* Does the node come to a rank that lacked it when it goes on from stage own + k? */
static bool goes_on(const struct maker *m, int own, int k) {
    return arrival(m, own, own + k + 1) == own + k + 1;
}

/* The first boundary at which the node's projections are together smaller than the node. */
static void choose_projector(struct maker *m, int node, const struct route_widths *widths) {
    int own = stage_of(m, node);
    for (int k = is_stream(m, node) ? 1 : 0;; k++) {
        bool whole = false;
        int n = edges_beyond(m, node, k, -1, &whole);
        if (!n) return;
        if (!whole && n * widths->edge < widths->node && goes_on(m, own, k)) {
            edges_beyond(m, node, k, own + k, &whole);
            return;
        }
    }
}

/* Marks the boundaries that something known from stage `from` on crosses to come to the rank of stage `to`. */
static void mark(const struct maker *m, int from, int to, bool *crosses) {
    int end = arrival(m, from, to);
    for (int b = departure(m, from, end); b < end; b++) crosses[b] = true;
}

/* `crosses` [stages] is scratch, as in the next. */
static void route_node(struct maker *m, int node, bool *crosses) {
    int own = stage_of(m, node), last = own, begin = own + (is_stream(m, node) ? 1 : 0);
    memset(crosses, 0, (size_t)m->out->boundaries + 1);
    for (int i = m->edges->leaves[1 + node]; i < m->edges->leaves[2 + node]; i++) {
        int e = m->edges->leaving[i];
        if (!edge_set_has(m->out->active, e)) continue;
        int projector = m->out->projector[e],
            target = projector >= 0 ? projector : stage_of(m, m->edges->edge[e].target);
        mark(m, own, target, crosses);
        if (last < target) last = target;
    }
    for (int b = begin; b < m->out->boundaries; b++)
        if (crosses[b]) push(m, &m->out->forward[b], CROSSING_SOURCE, node);
    for (int b = begin; b < last; b++) push(m, &m->out->backward[b], CROSSING_SOURCE, node);
}

static void route_edge(struct maker *m, int e, bool *crosses) {
    int projector = m->out->projector[e], target = stage_of(m, m->edges->edge[e].target);
    if (projector < 0 || !edge_set_has(m->out->active, e)) return;
    memset(crosses, 0, (size_t)m->out->boundaries + 1);
    mark(m, projector, target, crosses);
    for (int b = projector; b < target; b++) {
        if (crosses[b]) push(m, &m->out->forward[b], CROSSING_PROJECTED, e);
        push(m, &m->out->backward[b], CROSSING_PROJECTED, e);
    }
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
    bool *crosses = calloc((size_t)stages, sizeof *crosses);
    m.full = !out->forward || !out->backward || !out->projector || !m.stage || !crosses;
    if (!m.full) {
        for (int n = -1; n < num_layers; n++) m.stage[1 + n] = layout_stage_of(layout, n);
        for (int e = 0; e < edges->count; e++) out->projector[e] = -1;
        if (layout->narrow && widths->narrow)
            for (int n = -1; n < num_layers; n++) choose_projector(&m, n, widths);
        for (int n = -1; n < num_layers; n++) route_node(&m, n, crosses);
        for (int e = 0; e < edges->count; e++) route_edge(&m, e, crosses);
    }
    free(m.stage);
    free(crosses);
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
