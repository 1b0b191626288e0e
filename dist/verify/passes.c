#include "dist/verify/private.h"
#include "kernels/base/status.h"

static int check_pass(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    if (a->chunk < 0 || a->chunk >= c->chunks) return WRONG("there is no such chunk");
    if (a->micro < 0 || a->micro >= c->micro_batches) return WRONG("there is no such micro-batch");
    if (!check_slot_exists(c, rank, a)) return WRONG("there is no such slot");
    return 0;
}

/* What the layers [from, to] of a stage read of other stages. */
static int check_sources(struct checker *c, int rank, int stage, int from, int to) {
    const struct action *a = check_next(c, rank);
    int stream = c->span[stage].first - 1;
    if (stage > 0 && !check_has_node(c, rank, stream, a->micro))
        return WRONG("the stream, node %d, is not on this rank", stream);
    for (int l = from < 0 ? 0 : from; l <= to && l < c->num_layers; l++)
        for (int e = c->edges->first[l]; e < c->edges->first[l + 1]; e++) {
            int node = c->edges->edge[e].source;
            if (!check_active(c, e)) continue;
            if (c->routes->projector[e] >= 0) {
                if (!check_full(c, rank, CARGO_EDGE, e, a->micro))
                    return WRONG("layer %d reads the strip of edge %d, which is not on this rank", l, e);
            } else if (c->stage[1 + node] != stage && !check_has_node(c, rank, node, a->micro))
                return WRONG("layer %d reads node %d, which is not on this rank", l, node);
        }
    return 0;
}

int check_forward(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    TRY(check_pass(c, rank));
    int s = check_stage(c, rank, a);
    struct saved *slot = &c->saved[s][a->slot];
    if (c->forwards[check_pass_index(c, s, a->micro)] >= 0) return WRONG("done before");
    if (slot->micro >= 0 && !c->options->forward_only)
        return WRONG("the slot is taken by micro-batch %d, whose backward pass is not done", slot->micro);
    TRY(check_sources(c, rank, s, c->span[s].first, c->span[s].end - 1));
    *slot = (struct saved){.micro = a->micro, .message = -1};
    c->forwards[check_pass_index(c, s, a->micro)] = a->slot;
    return 0;
}

/* An edge's gradient joins its source's sum. */
static int add(struct checker *c, int rank, int e, int *sums) {
    const struct edge *edge = &c->edges->edge[e];
    if (*sums >= c->place[e])
        return WRONG("the gradient of edge %d joins that of node %d twice or too late", e, edge->source);
    if (*sums < c->place[e] - 1)
        return WRONG(
            "the gradient of edge %d joins that of node %d as number %d of %d, before those of later targets",
            e, edge->source, *sums + 1, c->total[1 + edge->source]);
    ++*sums;
    return 0;
}

/* A node's backward pass takes in what later stages have left. */
static int collect(struct checker *c, int rank, int node) {
    const struct action *a = check_next(c, rank);
    int total = c->total[1 + node];
    if (!total) return 0;
    struct held *h = check_find(c, rank, CARGO_DEPOSIT, node, a->micro);
    if (!h) return WRONG("the deposit for node %d is not on this rank", node);
    if (h->sums != total)
        return WRONG("the deposit for node %d has %d of %d gradients of later stages", node, h->sums, total);
    h->state = HELD_SPENT;
    return 0;
}

/* One layer's edges leave their gradients. */
static int leave(struct checker *c, int rank, int stage, int layer, int *stream_sums) {
    const struct action *a = check_next(c, rank);
    for (int e = c->edges->first[layer]; e < c->edges->first[layer + 1]; e++) {
        int node = c->edges->edge[e].source;
        if (!check_active(c, e) || c->stage[1 + node] == stage) continue;
        if (c->routes->projector[e] >= 0) {
            struct held *h = check_find(c, rank, CARGO_EDGE_GRADIENT, e, a->micro);
            if (!h || h->state != HELD_EMPTY)
                return WRONG("no strip is taken for the gradient of edge %d", e);
            h->state = HELD_FULL;
            continue;
        }
        struct held *h = check_find(c, rank, CARGO_DEPOSIT, node, a->micro);
        if (!h && node != c->span[stage].first - 1)
            return WRONG("layer %d has no deposit to add to for node %d", layer, node);
        TRY(add(c, rank, e, h ? &h->sums : stream_sums));
    }
    return 0;
}

/* After a stage's last layer the gradient is the stream's, with what was left at that node. */
static int hand_down(struct checker *c, int rank, int stage, struct held *gradient,
                     const struct saved *slot) {
    const struct action *a = check_next(c, rank);
    int node = c->span[stage].first - 1;
    gradient->state = stage == 0 ? HELD_SPENT : HELD_FULL;
    check_rename(c, rank, gradient, node);
    if (stage == 0) return 0;
    struct held *deposit = check_find(c, rank, CARGO_DEPOSIT, node, a->micro);
    gradient->sums = deposit ? deposit->sums : slot->sums;
    if (deposit) deposit->state = HELD_SPENT;
    if (gradient->sums != c->total[1 + node])
        return WRONG("the gradient of node %d has %d of %d gradients of later stages", node, gradient->sums,
                     c->total[1 + node]);
    return 0;
}

int check_backward(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    TRY(check_pass(c, rank));
    int s = check_stage(c, rank, a), *layer = &c->layer[check_pass_index(c, s, a->micro)];
    struct saved *slot = &c->saved[s][a->slot];
    if (c->options->forward_only) return WRONG("a schedule without gradients");
    if (check_slot(c, s, a->micro) != a->slot) return WRONG("the slot does not hold the micro-batch");
    if (a->layer != *layer - 1) return WRONG("the layer to go on with is %d", *layer - 1);
    if (a->end > a->layer || a->end < stage_bottom(c, s))
        return WRONG("the chunk's layers are %d to %d", stage_top(c, s), stage_bottom(c, s));
    if (c->shared[rank] || c->normed[rank]) return WRONG("gradients are summed already");
    struct held *gradient = check_find(c, rank, CARGO_GRADIENT, c->span[s].end - 1, a->micro);
    if (!gradient) return WRONG("the gradient of node %d is not on this rank", c->span[s].end - 1);
    TRY(check_sources(c, rank, s, a->end, a->layer));
    for (int l = a->layer; l >= a->end; l--) {
        *layer = l;
        if (l == c->num_layers) continue;
        if (l != c->span[s].end - 1) TRY(collect(c, rank, l));
        if (l >= 0) TRY(leave(c, rank, s, l, &slot->sums));
    }
    if (a->end != stage_bottom(c, s)) return 0;
    TRY(hand_down(c, rank, s, gradient, slot));
    slot->micro = -1;
    return 0;
}

static int check_projection(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    if (a->index < 0 || a->index >= c->edges->count || !check_active(c, a->index))
        return WRONG("there is no such edge");
    if (a->chunk < 0 || a->chunk >= c->chunks || c->routes->projector[a->index] != check_stage(c, rank, a))
        return WRONG("stage %d projects the edge", c->routes->projector[a->index]);
    int node = c->edges->edge[a->index].source;
    if (!check_has_node(c, rank, node, a->micro)) return WRONG("node %d is not on this rank", node);
    return 0;
}

int check_project(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    TRY(check_projection(c, rank));
    struct held *h = check_buffer(c, rank, a);
    if (!h || h->state != HELD_EMPTY || !check_holds(h, CARGO_EDGE, a->index, a->micro))
        return WRONG("the strip is not taken for it");
    h->state = HELD_FULL;
    return 0;
}

int check_unproject(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    TRY(check_projection(c, rank));
    struct held *h = check_buffer(c, rank, a);
    if (!h || h->state != HELD_FULL || !check_holds(h, CARGO_EDGE_GRADIENT, a->index, a->micro))
        return WRONG("the strip does not hold it");
    if (c->shared[rank] || c->normed[rank]) return WRONG("gradients are summed already");
    int node = c->edges->edge[a->index].source;
    struct held *deposit = check_find(c, rank, CARGO_DEPOSIT, node, a->micro);
    if (!deposit) return WRONG("there is no deposit to add to for node %d", node);
    h->state = HELD_SPENT;
    return add(c, rank, a->index, &deposit->sums);
}
