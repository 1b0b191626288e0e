#include "dist/schedule/private.h"
#include "kernels/base/status.h"

#include <stdlib.h>

/* What a stage uses a node for. */
enum { USE_STREAM = 1, USE_LAYERS = 2, USE_PROJECT = 4 };

struct maker {
    const struct edges *edges;
    const struct routes *routes;
    const struct layout *layout;
    int num_layers;
    bool forward_only;
    struct stages *out;
    unsigned char *use; /* [stages, num_layers + 1], node n at 1 + n */
    int *forward_port;  /* [boundaries] the stream's; crossings follow in their order */
    int *backward_port; /* the same for gradients */
    bool full;
};

static void push(struct maker *m, struct transfers *list, enum payload payload, int index, int in, int out) {
    int n = list->count;
    if ((n & (n - 1)) == 0) { /* grows at powers of two */
        struct transfer *more = realloc(list->transfer, (size_t)(n ? 2 * n : 1) * sizeof *more);
        if (!more) {
            m->full = true;
            return;
        }
        list->transfer = more;
    }
    list->transfer[list->count++] =
        (struct transfer){.payload = payload, .index = index, .in = in, .out = out};
}

static unsigned char use_of(const struct maker *m, int stage, int node) {
    return m->use[(long)stage * (m->num_layers + 1) + 1 + node];
}

static bool edge_active(const struct maker *m, int e) {
    return edge_set_has(m->routes->active, e);
}

/* The edges into a stage's layers are first_edge(first) … first_edge(end) − 1. */
static int first_edge(const struct maker *m, int layer) {
    return m->edges->first[layer];
}

static void mark_uses(struct maker *m) {
    int width = m->num_layers + 1;
    for (int s = 0; s < m->out->count; s++) {
        const struct stage *stage = &m->out->stage[s];
        unsigned char *use = m->use + (long)s * width;
        if (!stage->bottom) use[stage->first] |= USE_STREAM;
        for (int e = first_edge(m, stage->first); e < first_edge(m, stage->end); e++)
            if (edge_active(m, e) && m->routes->projector[e] < 0)
                use[1 + m->edges->edge[e].source] |= USE_LAYERS;
    }
    for (int e = 0; e < m->edges->count; e++)
        if (edge_active(m, e) && m->routes->projector[e] >= 0)
            m->use[(long)m->routes->projector[e] * width + 1 + m->edges->edge[e].source] |= USE_PROJECT;
}

/* Port of a crossing in a boundary's list; −1 where it is not there, STAYS at a turn. */
static int port(const struct crossings *lists, const int *ports, int count, int boundary, int kind,
                int index) {
    if (boundary < 0 || boundary >= count) return -1;
    for (int i = 0; i < lists[boundary].count; i++)
        if ((int)lists[boundary].crossing[i].kind == kind && lists[boundary].crossing[i].index == index)
            return ports[boundary] == STAYS ? STAYS : ports[boundary] + 1 + i;
    return -1;
}

static int forward_port(const struct maker *m, int boundary, int kind, int index) {
    return port(m->routes->forward, m->forward_port, m->routes->boundaries, boundary, kind, index);
}

static int backward_port(const struct maker *m, int boundary, int kind, int index) {
    return port(m->routes->backward, m->backward_port, m->routes->boundaries, boundary, kind, index);
}

static void number_ports(struct maker *m) {
    int n = 0;
    for (int b = 0; b < m->routes->boundaries; b++) {
        if (layout_turns(m->layout, b)) {
            m->forward_port[b] = m->backward_port[b] = STAYS;
            continue;
        }
        m->forward_port[b] = n;
        n += 1 + m->routes->forward[b].count;
        m->backward_port[b] = n;
        if (!m->forward_only) n += 1 + m->routes->backward[b].count;
    }
    m->out->ports = n;
}

/* The rank's next stage after s; as many as there are where it has none. */
static int next_of_rank(const struct maker *m, int s) {
    const struct stage *stage = &m->out->stage[s];
    if (stage->chunk + 1 == m->layout->chunks) return m->out->count;
    return layout_stage(m->layout, stage->rank, stage->chunk + 1);
}

/* A node received at stage s stays on the rank until its last use there, by stage s or by one of the rank's
 * later stages, whose backward passes come first. */
static void plan_end_of_node(struct maker *m, int s, int node) {
    struct stage *stage = m->out->stage;
    int last = -1;
    for (int u = s; u < m->out->count; u = next_of_rank(m, u))
        if (use_of(m, u, node) && (m->forward_only || last < 0)) last = u;
    if (last >= 0 && !m->forward_only)
        push(m, &stage[last].leave, PAYLOAD_SOURCE, node, -1, -1);
    else
        push(m, &stage[last >= 0 ? last : s].forget, PAYLOAD_SOURCE, node, -1, -1);
}

static void plan_end_of_narrow(struct maker *m, int s, int edge) {
    struct stage *stage = m->out->stage;
    int target = layout_stage_of(m->layout, m->edges->edge[edge].target);
    if (stage[target].rank != stage[s].rank)
        push(m, &stage[s].forget, PAYLOAD_PROJECTED, edge, -1, -1);
    else
        push(m, m->forward_only ? &stage[target].forget : &stage[target].leave, PAYLOAD_PROJECTED, edge, -1,
             -1);
}

/* The same for a stage's own outputs, in its activation set. */
static void plan_end_of_activation_set(struct maker *m, int s) {
    const struct stage *stage = &m->out->stage[s];
    int last = s;
    for (int u = next_of_rank(m, s); u < m->out->count; u = next_of_rank(m, u))
        for (int n = stage->bottom ? -1 : stage->first; n < stage->end; n++)
            if (use_of(m, u, n) || forward_port(m, u, CROSSING_SOURCE, n) >= 0) last = u;
    push(m, &m->out->stage[last].retire, PAYLOAD_SOURCE, s, -1, -1);
}

/* Is the node an output of the stage, or of an earlier one of its rank? */
static bool on_rank(const struct maker *m, int s, int node) {
    return m->out->stage[layout_stage_of(m->layout, node)].rank == m->out->stage[s].rank;
}

static void describe_forward(struct maker *m, int s) {
    struct stage *stage = &m->out->stage[s];
    for (int pass = 0; s > 0 && pass < 2; pass++) {
        const struct crossings *crossings = &m->routes->forward[s - 1];
        for (int i = 0; i < crossings->count; i++) {
            int kind = (int)crossings->crossing[i].kind, index = crossings->crossing[i].index;
            int out = forward_port(m, s, kind, index);
            if ((pass == 0) != (out >= 0)) continue; /* those that go on, then the others */
            push(m, &stage->arrive, kind == CROSSING_SOURCE ? PAYLOAD_SOURCE : PAYLOAD_PROJECTED, index,
                 m->forward_port[s - 1] + 1 + i, out);
        }
    }
    if (s > 0 && !layout_turns(m->layout, s - 1)) {
        int stream = stage->first - 1;
        push(m, &stage->arrive, PAYLOAD_SOURCE, stream, m->forward_port[s - 1],
             forward_port(m, s, CROSSING_SOURCE, stream));
    }
    for (int i = 0; i < stage->arrive.count; i++) {
        const struct transfer *it = &stage->arrive.transfer[i];
        if (it->payload == PAYLOAD_SOURCE)
            plan_end_of_node(m, s, it->index);
        else
            plan_end_of_narrow(m, s, it->index);
    }

    if (!stage->top) {
        if (!layout_turns(m->layout, s))
            push(m, &stage->produce, PAYLOAD_SOURCE, stage->end - 1, -1, m->forward_port[s]);
        const struct crossings *crossings = &m->routes->forward[s];
        for (int i = 0; i < crossings->count; i++)
            if (crossings->crossing[i].kind == CROSSING_SOURCE && on_rank(m, s, crossings->crossing[i].index))
                push(m, &stage->produce, PAYLOAD_SOURCE, crossings->crossing[i].index, -1,
                     m->forward_port[s] + 1 + i);
    }
    for (int e = 0; e < m->edges->count; e++) {
        if (m->routes->projector[e] != s || !edge_active(m, e)) continue;
        bool own = layout_stage_of(m->layout, m->edges->edge[e].source) == s;
        push(m, own ? &stage->late : &stage->early, PAYLOAD_PROJECTED, e, -1,
             forward_port(m, s, CROSSING_PROJECTED, e));
        push(m, &stage->forget, PAYLOAD_PROJECTED, e, -1, -1);
    }
    if (m->forward_only) plan_end_of_activation_set(m, s);
}

/* Where a source gradient goes once this stage has added its part: on, or into the gradient of its own node
 * or the stream. */
static void plan_end_of_source_gradient(struct maker *m, int s, int node) {
    struct stage *stage = &m->out->stage[s];
    if (node < stage->first - 1)
        push(m, &stage->deliver, PAYLOAD_SOURCE_GRADIENT, node, -1,
             backward_port(m, s - 1, CROSSING_SOURCE, node));
    else
        push(m, &stage->drain, PAYLOAD_SOURCE_GRADIENT, node, -1, -1);
}

static void describe_backward(struct maker *m, int s) {
    struct stage *stage = &m->out->stage[s];
    stage->gradient = (struct transfer){.payload = PAYLOAD_STREAM_GRADIENT,
                                        .index = stage->end - 1,
                                        .in = stage->top ? -1 : m->backward_port[s],
                                        .out = stage->bottom ? -1 : m->backward_port[s - 1]};
    for (int pass = 0; !stage->top && pass < 2; pass++) {
        const struct crossings *crossings = &m->routes->backward[s];
        for (int i = 0; i < crossings->count; i++) {
            int kind = (int)crossings->crossing[i].kind, index = crossings->crossing[i].index,
                in = layout_turns(m->layout, s) ? STAYS : m->backward_port[s] + 1 + i;
            bool node = kind == CROSSING_SOURCE;
            bool stays = node
                             ? index >= stage->first - 1 || (use_of(m, s, index) & (USE_LAYERS | USE_PROJECT))
                             : m->routes->projector[index] == s;
            if ((pass == 0) == stays) continue; /* those that only pass through, then the others */
            push(m, &stage->collect, node ? PAYLOAD_SOURCE_GRADIENT : PAYLOAD_PROJECTED_GRADIENT, index, in,
                 stays ? -1 : backward_port(m, s - 1, kind, index));
            if (node && stays) plan_end_of_source_gradient(m, s, index);
        }
    }
    for (int n = -1; n < stage->end; n++) {
        int use = use_of(m, s, n);
        bool own = n >= stage->first - 1; /* or the stream's: collected in place */
        if (!(use & USE_PROJECT) && (own || !(use & USE_LAYERS))) continue;
        if (!stage->top && backward_port(m, s, CROSSING_SOURCE, n) != -1)
            continue; /* comes with a sum in it */
        push(m, &stage->begin, PAYLOAD_SOURCE_GRADIENT, n, -1, -1);
        plan_end_of_source_gradient(m, s, n);
    }
    for (int e = first_edge(m, stage->first); e < first_edge(m, stage->end); e++) {
        if (m->routes->projector[e] < 0 || !edge_active(m, e)) continue;
        push(m, &stage->begin, PAYLOAD_PROJECTED_GRADIENT, e, -1, -1);
        push(m, &stage->deliver, PAYLOAD_PROJECTED_GRADIENT, e, -1,
             backward_port(m, s - 1, CROSSING_PROJECTED, e));
    }
    for (int e = m->edges->count - 1; e >= 0; e--)
        if (m->routes->projector[e] == s && edge_active(m, e))
            push(m, &stage->unproject, PAYLOAD_PROJECTED_GRADIENT, e, -1, -1);
}

int stages_describe(const struct edges *edges, const struct routes *routes, const struct layout *layout,
                    int num_layers, bool forward_only, struct stages *out) {
    int count = layout->stage ? layout->size[AXIS_PIPELINE] * layout->chunks : 1;
    *out = (struct stages){.count = count, .stage = calloc((size_t)count, sizeof *out->stage)};
    struct maker m = {.edges = edges,
                      .routes = routes,
                      .layout = layout,
                      .num_layers = num_layers,
                      .forward_only = forward_only,
                      .out = out,
                      .use = calloc((size_t)count * (size_t)(num_layers + 1), 1),
                      .forward_port = malloc((size_t)count * sizeof *m.forward_port),
                      .backward_port = malloc((size_t)count * sizeof *m.backward_port)};
    m.full = !out->stage || !m.use || !m.forward_port || !m.backward_port;
    if (!m.full) {
        for (int s = 0; s < count; s++) {
            struct span span = layout->stage ? layout->stage[s] : (struct span){0, num_layers};
            struct stage *stage = &out->stage[s];
            stage->rank = layout_rank_of(layout, s);
            stage->chunk = layout_chunk_of(layout, s);
            stage->before = layout_rank_of(layout, (s + count - 1) % count);
            stage->after = layout_rank_of(layout, (s + 1) % count);
            stage->first = span.first;
            stage->end = span.end;
            stage->bottom = s == 0;
            stage->top = s == count - 1;
        }
        number_ports(&m);
        mark_uses(&m);
        for (int s = 0; s < count; s++) describe_forward(&m, s);
        for (int s = 0; s < count && !forward_only; s++) describe_backward(&m, s);
    }
    free(m.use);
    free(m.forward_port);
    free(m.backward_port);
    if (!m.full) return 0;
    stages_free(out);
    return gdn_fail(GDN_INTERNAL, "out of memory for the schedule of %d stages", count);
}

void stages_free(struct stages *stages) {
    for (int s = 0; stages->stage && s < stages->count; s++) {
        struct stage *it = &stages->stage[s];
        struct transfers *lists[] = {&it->arrive,  &it->early,   &it->produce, &it->late,
                                     &it->forget,  &it->collect, &it->begin,   &it->unproject,
                                     &it->deliver, &it->drain,   &it->leave,   &it->retire};
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) free(lists[i]->transfer);
    }
    free(stages->stage);
    *stages = (struct stages){0};
}
