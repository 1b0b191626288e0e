#include "dist/verify/private.h"
#include "kernels/base/status.h"

static int verify_pass(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    if (a->chunk < 0 || a->chunk >= c->chunks) return WRONG("there is no such chunk");
    if (a->micro_batch < 0 || a->micro_batch >= c->micro_batches)
        return WRONG("there is no such micro-batch");
    if (!verify_activation_set_exists(c, rank, a)) return WRONG("there is no such activation set");
    return 0;
}

/* What the layers [from, to] of a stage read of other stages. */
static int verify_sources(struct verifier *c, int rank, int stage, int from, int to) {
    const struct action *a = verify_next(c, rank);
    int stream = c->span[stage].first - 1;
    if (stage > 0 && !verify_has_node(c, rank, stream, a->micro_batch))
        return WRONG("the stream, node %d, is not on this rank", stream);
    for (int l = from < 0 ? 0 : from; l <= to && l < c->num_layers; l++)
        for (int e = c->edges->first[l]; e < c->edges->first[l + 1]; e++) {
            int node = c->edges->edge[e].source;
            if (!verify_active(c, e)) continue;
            if (c->routes->projector[e] >= 0) {
                if (!verify_full(c, rank, PAYLOAD_PROJECTED, e, a->micro_batch))
                    return WRONG("layer %d reads the projected source of edge %d, which is not on this rank",
                                 l, e);
            } else if (c->stage[1 + node] != stage && !verify_has_node(c, rank, node, a->micro_batch))
                return WRONG("layer %d reads node %d, which is not on this rank", l, node);
        }
    return 0;
}

int verify_forward(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    TRY(verify_pass(c, rank));
    int s = verify_stage(c, rank, a);
    struct saved *activation_set = &c->saved[s][a->activation_set];
    if (c->forwards[verify_pass_index(c, s, a->micro_batch)] >= 0) return WRONG("done before");
    if (activation_set->micro_batch >= 0 && !c->options->forward_only)
        return WRONG("the activation set is taken by micro-batch %d, whose backward pass is not done",
                     activation_set->micro_batch);
    TRY(verify_sources(c, rank, s, c->span[s].first, c->span[s].end - 1));
    *activation_set = (struct saved){.micro_batch = a->micro_batch, .message = -1};
    c->forwards[verify_pass_index(c, s, a->micro_batch)] = a->activation_set;
    return 0;
}

/* An edge's gradient joins its source's sum. */
static int add(struct verifier *c, int rank, int e, int *sums) {
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
static int collect(struct verifier *c, int rank, int node) {
    const struct action *a = verify_next(c, rank);
    int total = c->total[1 + node];
    if (!total) return 0;
    struct held *h = verify_find(c, rank, PAYLOAD_SOURCE_GRADIENT, node, a->micro_batch);
    if (!h) return WRONG("the gradient of source %d is not on this rank", node);
    if (h->sums != total)
        return WRONG("the gradient of source %d has %d of %d gradients of later stages", node, h->sums,
                     total);
    h->state = HELD_SPENT;
    return 0;
}

/* One layer's edges leave their gradients. */
static int leave(struct verifier *c, int rank, int stage, int layer, int *stream_sums) {
    const struct action *a = verify_next(c, rank);
    for (int e = c->edges->first[layer]; e < c->edges->first[layer + 1]; e++) {
        int node = c->edges->edge[e].source;
        if (!verify_active(c, e) || c->stage[1 + node] == stage) continue;
        if (c->routes->projector[e] >= 0) {
            struct held *h = verify_find(c, rank, PAYLOAD_PROJECTED_GRADIENT, e, a->micro_batch);
            if (!h || h->state != HELD_EMPTY)
                return WRONG("no narrow block is taken for the gradient of edge %d", e);
            h->state = HELD_FULL;
            continue;
        }
        struct held *h = verify_find(c, rank, PAYLOAD_SOURCE_GRADIENT, node, a->micro_batch);
        if (!h && node != c->span[stage].first - 1)
            return WRONG("layer %d has no source gradient to add to for source %d", layer, node);
        TRY(add(c, rank, e, h ? &h->sums : stream_sums));
    }
    return 0;
}

/* After a stage's last layer the gradient is the stream's, with what was left at that node. */
static int hand_down(struct verifier *c, int rank, int stage, struct held *gradient,
                     const struct saved *activation_set) {
    const struct action *a = verify_next(c, rank);
    int node = c->span[stage].first - 1;
    gradient->state = stage == 0 ? HELD_SPENT : HELD_FULL;
    verify_rename(c, rank, gradient, node);
    if (stage == 0) return 0;
    struct held *source_gradient = verify_find(c, rank, PAYLOAD_SOURCE_GRADIENT, node, a->micro_batch);
    gradient->sums = source_gradient ? source_gradient->sums : activation_set->sums;
    if (source_gradient) source_gradient->state = HELD_SPENT;
    if (gradient->sums != c->total[1 + node])
        return WRONG("the gradient of node %d has %d of %d gradients of later stages", node, gradient->sums,
                     c->total[1 + node]);
    return 0;
}

int verify_backward(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    TRY(verify_pass(c, rank));
    int s = verify_stage(c, rank, a), *layer = &c->layer[verify_pass_index(c, s, a->micro_batch)];
    struct saved *activation_set = &c->saved[s][a->activation_set];
    if (c->options->forward_only) return WRONG("a schedule without gradients");
    if (verify_activation_set(c, s, a->micro_batch) != a->activation_set)
        return WRONG("the activation set does not hold the micro-batch");
    if (a->layer != *layer - 1) return WRONG("the layer to go on with is %d", *layer - 1);
    if (a->end > a->layer || a->end < stage_bottom(c, s))
        return WRONG("the chunk's layers are %d to %d", stage_top(c, s), stage_bottom(c, s));
    if (c->shared[rank] || c->normed[rank]) return WRONG("gradients are summed already");
    struct held *gradient = verify_find(c, rank, PAYLOAD_STREAM_GRADIENT, c->span[s].end - 1, a->micro_batch);
    if (!gradient) return WRONG("the gradient of node %d is not on this rank", c->span[s].end - 1);
    TRY(verify_sources(c, rank, s, a->end, a->layer));
    TRY(verify_backward_weights(c, rank, *layer));
    for (int l = a->layer; l >= a->end; l--) {
        *layer = l;
        if (l == c->num_layers) continue;
        if (l != c->span[s].end - 1) TRY(collect(c, rank, l));
        if (l >= 0) TRY(leave(c, rank, s, l, &activation_set->sums));
    }
    if (a->end != stage_bottom(c, s)) return 0;
    TRY(hand_down(c, rank, s, gradient, activation_set));
    activation_set->micro_batch = -1;
    return 0;
}

static int verify_projection(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    if (a->index < 0 || a->index >= c->edges->count || !verify_active(c, a->index))
        return WRONG("there is no such edge");
    if (a->chunk < 0 || a->chunk >= c->chunks || c->routes->projector[a->index] != verify_stage(c, rank, a))
        return WRONG("stage %d projects the edge", c->routes->projector[a->index]);
    int node = c->edges->edge[a->index].source;
    if (!verify_has_node(c, rank, node, a->micro_batch)) return WRONG("node %d is not on this rank", node);
    return 0;
}

int verify_project(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    TRY(verify_projection(c, rank));
    struct held *h = verify_buffer(c, rank, a);
    if (!h || h->state != HELD_EMPTY || !verify_holds(h, PAYLOAD_PROJECTED, a->index, a->micro_batch))
        return WRONG("the narrow block is not taken for it");
    h->state = HELD_FULL;
    return 0;
}

int verify_unproject(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    TRY(verify_projection(c, rank));
    struct held *h = verify_buffer(c, rank, a);
    if (!h || h->state != HELD_FULL || !verify_holds(h, PAYLOAD_PROJECTED_GRADIENT, a->index, a->micro_batch))
        return WRONG("the narrow block does not hold it");
    if (c->shared[rank] || c->normed[rank]) return WRONG("gradients are summed already");
    int node = c->edges->edge[a->index].source;
    struct held *source_gradient = verify_find(c, rank, PAYLOAD_SOURCE_GRADIENT, node, a->micro_batch);
    if (!source_gradient) return WRONG("there is no source gradient to add to for source %d", node);
    h->state = HELD_SPENT;
    return add(c, rank, a->index, &source_gradient->sums);
}
