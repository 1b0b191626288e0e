#include "dist/schedule/emit.h"
#include "kernels/base/status.h"

#include <limits.h>
#include <stdlib.h>

static void project(struct emitter *e, const struct transfers *edges, int activation_set, int ready) {
    for (int i = 0; i < edges->count; i++) {
        const struct transfer *it = &edges->transfer[i];
        struct action action = emit_about(e, e->step, ACT_PROJECT, PAYLOAD_PROJECTED, it->index);
        action.buffer = emit_take_fresh(e, PAYLOAD_PROJECTED, it->index);
        action.activation_set = activation_set;
        emit_action(e, action);
        emit_send(e, PAYLOAD_PROJECTED, it->index, it->out, action.buffer, -1, ready);
    }
}

static void emit_forward(struct emitter *e) {
    const struct stage *stage = e->stage;
    for (int i = 0; i < stage->arrive.count; i++) emit_receive(e, &stage->arrive.transfer[i]);
    project(e, &stage->early, -1, e->step->begin);
    emit_post_next(e);
    struct action action = action_blank(ACT_FORWARD);
    action.chunk = stage->chunk;
    action.micro_batch = e->step->micro_batch;
    action.activation_set = emit_take_activation_set(e);
    emit_action(e, action);
    for (int i = 0; i < stage->produce.count; i++) {
        const struct transfer *it = &stage->produce.transfer[i];
        int set = emit_activation_set_of(e, emit_own_stage(e, it->index), action.micro_batch);
        emit_send(e, PAYLOAD_SOURCE, it->index, it->out, -1, set, e->step->end);
    }
    project(e, &stage->late, action.activation_set, e->step->end);
    emit_release_all(e, &stage->forget);
    for (int i = 0; i < stage->retire.count; i++) emit_retire(e, stage->retire.transfer[i].index);
}

static void unproject(struct emitter *e, int activation_set) {
    const struct transfers *edges = &e->stage->unproject;
    for (int i = 0; i < edges->count; i++) {
        int index = edges->transfer[i].index;
        struct action action = emit_about(e, e->step, ACT_UNPROJECT, PAYLOAD_PROJECTED_GRADIENT, index);
        action.buffer = pool_find(&e->narrow_blocks[e->stage->rank], PAYLOAD_PROJECTED_GRADIENT, index,
                                  e->step->micro_batch);
        action.activation_set = activation_set;
        emit_action(e, action);
        emit_release(e, PAYLOAD_PROJECTED_GRADIENT, index);
    }
}

/* With which gradients of weights are complete: the last micro-batch's pass, or what it has left. */
static bool completes(const struct emitter *e) {
    bool leaves = e->step->backward && e->step->weight_set >= 0;
    return e->step->micro_batch == e->builder->options->micro_batches - 1 && !leaves;
}

/* The backward pass itself, or the gradients of weights that it has left; what completes these in pieces,
 * between which buckets start. Returns the layer it ends at. */
static int emit_layers(struct emitter *e, enum act act, int activation_set) {
    const struct stage *stage = e->stage;
    bool last = completes(e);
    struct action action = action_blank(act);
    action.chunk = stage->chunk;
    action.micro_batch = e->step->micro_batch;
    action.activation_set = activation_set;
    action.weight_set = e->step->weight_set;
    int end = stage->bottom ? -1 : stage->first;
    action.layer = stage->top ? e->builder->options->num_layers : stage->end - 1;
    for (;;) {
        struct syncing *sync = &e->sync[stage->rank];
        action.end = last ? buckets_cut(e->builder, stage->rank, sync, action.layer, end) : end;
        emit_action(e, action);
        if (action.end == end) return end;
        buckets_after_layer(e->builder, stage->rank, sync, action.end);
        action.layer = action.end - 1;
    }
}

/* Gradients for earlier stages of other ranks. */
static void deliver(struct emitter *e) {
    const struct stage *stage = e->stage;
    int stream = stage->first - 1, port = stage->gradient.out;
    if (port >= 0) emit_send_held(e, PAYLOAD_STREAM_GRADIENT, stream, port, e->step->end);
    for (int i = 0; i < stage->deliver.count; i++) {
        const struct transfer *it = &stage->deliver.transfer[i];
        if (it->out >= 0) emit_send_held(e, it->payload, it->index, it->out, e->step->end);
    }
    if (port != STAYS) emit_release(e, PAYLOAD_STREAM_GRADIENT, stream);
    for (int i = 0; i < stage->deliver.count; i++) {
        const struct transfer *it = &stage->deliver.transfer[i];
        if (it->out >= 0) emit_release(e, it->payload, it->index);
    }
}

static void emit_backward(struct emitter *e) {
    const struct stage *stage = e->stage;
    int activation_set = emit_activation_set_of(e, e->step->stage, e->step->micro_batch),
        micro_batch = e->step->micro_batch;
    for (int i = 0; i < stage->collect.count; i++) emit_receive(e, &stage->collect.transfer[i]);
    for (int i = 0; i < stage->begin.count; i++)
        emit_take_fresh(e, stage->begin.transfer[i].payload, stage->begin.transfer[i].index);
    unproject(e, activation_set);
    struct transfer gradient = stage->gradient;
    gradient.out = -1;
    if (stage->top)
        emit_take_fresh(e, PAYLOAD_STREAM_GRADIENT, gradient.index);
    else
        emit_receive(e, &gradient);
    emit_post_next(e);

    int end = emit_layers(e, ACT_BACKWARD, activation_set);
    struct pool *blocks = &e->blocks[stage->rank];
    int b = pool_find(blocks, PAYLOAD_STREAM_GRADIENT, gradient.index, micro_batch);
    if (b < 0) return; /* without memory for it */
    pool_rename(blocks, b, stage->first - 1);
    deliver(e);
    for (int i = 0; i < stage->collect.count; i++)
        if (stage->collect.transfer[i].out >= 0)
            emit_release(e, stage->collect.transfer[i].payload, stage->collect.transfer[i].index);
    emit_release_all(e, &stage->drain);
    emit_release_all(e, &stage->leave);
    emit_retire(e, e->step->stage);
    if (completes(e)) buckets_after_layer(e->builder, stage->rank, &e->sync[stage->rank], end);
}

static void emit_weights(struct emitter *e) {
    int end = emit_layers(e, ACT_WEIGHTS, -1), *sets = &e->builder->out->weight_sets[e->stage->rank];
    if (completes(e)) buckets_after_layer(e->builder, e->stage->rank, &e->sync[e->stage->rank], end);
    if (*sets <= e->step->weight_set) *sets = e->step->weight_set + 1;
}

/* What a rank does after its last pass. */
static void emit_end(struct emitter *e, int rank) {
    struct pool *pools[] = {&e->blocks[rank], &e->narrow_blocks[rank]};
    for (int i = 0; i < 2; i++)
        for (int b; (b = pool_oldest(pools[i], INT_MAX)) >= 0;) emit_free(e, rank, pools[i], b);
    if (!e->builder->options->forward_only) buckets_finish(e->builder, rank, &e->sync[rank]);
}

static void note_sizes(const struct emitter *e) {
    struct schedule *out = e->builder->out;
    int ranks = e->order->ranks;
    for (int s = 0; s < e->stages->count; s++)
        out->activation_sets[e->stages->stage[s].rank * (e->stages->count / ranks) + e->stages->stage[s].chunk] =
            e->activation_sets[s].count;
    for (int r = 0; r < ranks; r++) {
        out->blocks[r] = e->blocks[r].count;
        out->narrow_blocks[r] = e->narrow_blocks[r].count;
    }
    out->messages = e->stages->ports * e->builder->options->micro_batches;
}

static int emit_steps(struct emitter *e) {
    int ranks = e->order->ranks;
    for (int r = 0; r < ranks; r++) {
        pool_begin(&e->blocks[r]);
        pool_begin(&e->narrow_blocks[r]);
    }
    for (int r = 0; r < ranks && !e->builder->options->forward_only; r++)
        TRY(buckets_begin(e->builder, r, &e->sync[r]));
    long messages = (long)e->stages->ports * e->builder->options->micro_batches;
    for (long i = 0; i < messages; i++) e->flight[i] = (struct flight){-1, -1, -1, -1, -1};
    for (long i = 0; i < e->order->all && !e->builder->full; i++) {
        e->step = e->order->sorted[i];
        e->stage = emit_stage_of(e, e->step);
        if (e->step->weights)
            emit_weights(e);
        else if (e->step->backward)
            emit_backward(e);
        else
            emit_forward(e);
    }
    for (int r = 0; r < ranks && !e->builder->full; r++) emit_end(e, r);
    note_sizes(e);
    return 0;
}

int emit_all(const struct order *order, const struct stages *stages, struct builder *builder) {
    size_t ranks = (size_t)order->ranks,
           messages = (size_t)stages->ports * (size_t)builder->options->micro_batches;
    struct emitter e = {.builder = builder,
                        .order = order,
                        .stages = stages,
                        .blocks = calloc(ranks, sizeof *e.blocks),
                        .narrow_blocks = calloc(ranks, sizeof *e.narrow_blocks),
                        .activation_sets = calloc((size_t)stages->count, sizeof *e.activation_sets),
                        .flight = malloc((messages + 1) * sizeof *e.flight),
                        .sync = calloc(ranks, sizeof *e.sync)};
    int status = 0;
    if (!e.blocks || !e.narrow_blocks || !e.activation_sets || !e.flight || !e.sync)
        builder->full = true;
    else
        status = emit_steps(&e);
    for (size_t r = 0; r < ranks; r++) {
        if (e.blocks) pool_end(&e.blocks[r]);
        if (e.narrow_blocks) pool_end(&e.narrow_blocks[r]);
        if (e.sync) free(e.sync[r].queue);
    }
    for (int s = 0; e.activation_sets && s < stages->count; s++) free(e.activation_sets[s].activation_set);
    free(e.blocks);
    free(e.narrow_blocks);
    free(e.activation_sets);
    free(e.flight);
    free(e.sync);
    return status;
}
