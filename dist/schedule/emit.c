#include "dist/schedule/emit.h"
#include "kernels/base/status.h"

#include <limits.h>
#include <stdlib.h>

static void project(struct emitter *e, const struct entries *edges, int slot, int ready) {
    for (int i = 0; i < edges->count; i++) {
        const struct entry *it = &edges->entry[i];
        struct action action = emit_about(e, e->step, ACT_PROJECT, CARGO_EDGE, it->index);
        action.buffer = emit_take_fresh(e, CARGO_EDGE, it->index);
        action.slot = slot;
        emit_action(e, action);
        emit_send(e, CARGO_EDGE, it->index, it->out, action.buffer, -1, ready);
    }
}

static void emit_forward(struct emitter *e) {
    const struct stage *stage = e->stage;
    for (int i = 0; i < stage->arrive.count; i++) emit_receive(e, &stage->arrive.entry[i]);
    project(e, &stage->early, -1, e->step->begin);
    emit_post_next(e);
    struct action action = action_blank(ACT_FORWARD);
    action.chunk = stage->chunk;
    action.micro = e->step->micro;
    action.slot = emit_take_slot(e);
    emit_action(e, action);
    for (int i = 0; i < stage->produce.count; i++) {
        const struct entry *it = &stage->produce.entry[i];
        emit_send(e, CARGO_NODE, it->index, it->out, -1, action.slot, e->step->end);
    }
    project(e, &stage->late, action.slot, e->step->end);
    emit_release_all(e, &stage->forget);
    for (int i = 0; i < stage->retire.count; i++) emit_retire(e, stage->retire.entry[i].index);
}

static void unproject(struct emitter *e, int slot) {
    const struct entries *edges = &e->stage->unproject;
    for (int i = 0; i < edges->count; i++) {
        int index = edges->entry[i].index;
        struct action action = emit_about(e, e->step, ACT_UNPROJECT, CARGO_EDGE_GRADIENT, index);
        action.buffer = pool_find(&e->strips[e->stage->rank], CARGO_EDGE_GRADIENT, index, e->step->micro);
        action.slot = slot;
        emit_action(e, action);
        emit_release(e, CARGO_EDGE_GRADIENT, index);
    }
}

/* The backward pass itself; the rank's last one through a chunk in pieces, between which buckets start.
 * Returns the layer it ends at. */
static int emit_layers(struct emitter *e, int slot) {
    const struct stage *stage = e->stage;
    bool last = e->step->micro == e->builder->options->micro_batches - 1;
    struct action action = action_blank(ACT_BACKWARD);
    action.chunk = stage->chunk;
    action.micro = e->step->micro;
    action.slot = slot;
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

static void emit_backward(struct emitter *e) {
    const struct stage *stage = e->stage;
    int slot = emit_slot_of(e, e->step->stage, e->step->micro), micro = e->step->micro;
    for (int i = 0; i < stage->collect.count; i++) emit_receive(e, &stage->collect.entry[i]);
    for (int i = 0; i < stage->begin.count; i++)
        emit_take_fresh(e, stage->begin.entry[i].cargo, stage->begin.entry[i].index);
    unproject(e, slot);
    struct entry gradient = stage->gradient;
    int port = gradient.out;
    gradient.out = -1;
    if (stage->top)
        emit_take_fresh(e, CARGO_GRADIENT, gradient.index);
    else
        emit_receive(e, &gradient);
    emit_post_next(e);

    int end = emit_layers(e, slot);
    struct pool *blocks = &e->blocks[stage->rank];
    int b = pool_find(blocks, CARGO_GRADIENT, gradient.index, micro);
    if (b < 0) return; /* without memory for it */
    pool_rename(blocks, b, stage->first - 1);
    if (!stage->bottom) emit_send(e, CARGO_GRADIENT, stage->first - 1, port, b, -1, e->step->end);
    for (int i = 0; i < stage->deliver.count; i++) {
        const struct entry *it = &stage->deliver.entry[i];
        emit_send_held(e, it->cargo, it->index, it->out, e->step->end);
    }
    emit_release(e, CARGO_GRADIENT, stage->first - 1);
    emit_release_all(e, &stage->deliver);
    for (int i = 0; i < stage->collect.count; i++)
        if (stage->collect.entry[i].out >= 0)
            emit_release(e, stage->collect.entry[i].cargo, stage->collect.entry[i].index);
    emit_release_all(e, &stage->drain);
    emit_release_all(e, &stage->leave);
    emit_retire(e, e->step->stage);
    if (micro == e->builder->options->micro_batches - 1)
        buckets_after_layer(e->builder, stage->rank, &e->sync[stage->rank], end);
}

/* What a rank does after its last pass. */
static void emit_end(struct emitter *e, int rank) {
    struct pool *pools[] = {&e->blocks[rank], &e->strips[rank]};
    for (int i = 0; i < 2; i++)
        for (int b; (b = pool_oldest(pools[i], INT_MAX)) >= 0;) emit_free(e, rank, pools[i], b);
    if (!e->builder->options->forward_only) buckets_finish(e->builder, rank, &e->sync[rank]);
}

static void note_sizes(const struct emitter *e) {
    struct schedule *out = e->builder->out;
    int ranks = e->order->ranks;
    for (int s = 0; s < e->stages->count; s++)
        out->slots[s % ranks * (e->stages->count / ranks) + s / ranks] = e->places[s].count;
    for (int r = 0; r < ranks; r++) {
        out->blocks[r] = e->blocks[r].count;
        out->strips[r] = e->strips[r].count;
    }
    out->messages = e->stages->ports * e->builder->options->micro_batches;
}

static int emit_steps(struct emitter *e) {
    int ranks = e->order->ranks;
    for (int r = 0; r < ranks; r++) {
        pool_begin(&e->blocks[r]);
        pool_begin(&e->strips[r]);
    }
    for (int r = 0; r < ranks && !e->builder->options->forward_only; r++)
        TRY(buckets_begin(e->builder, r, &e->sync[r]));
    long messages = (long)e->stages->ports * e->builder->options->micro_batches;
    for (long i = 0; i < messages; i++) e->flight[i] = (struct flight){-1, -1, -1, -1};
    for (long i = 0; i < (long)ranks * e->order->steps && !e->builder->full; i++) {
        e->step = e->order->sorted[i];
        e->stage = emit_stage_of(e, e->step);
        if (e->step->backward)
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
                        .strips = calloc(ranks, sizeof *e.strips),
                        .places = calloc((size_t)stages->count, sizeof *e.places),
                        .flight = malloc((messages + 1) * sizeof *e.flight),
                        .sync = calloc(ranks, sizeof *e.sync)};
    int status = 0;
    if (!e.blocks || !e.strips || !e.places || !e.flight || !e.sync)
        builder->full = true;
    else
        status = emit_steps(&e);
    for (size_t r = 0; r < ranks; r++) {
        if (e.blocks) pool_end(&e.blocks[r]);
        if (e.strips) pool_end(&e.strips[r]);
        if (e.sync) free(e.sync[r].queue);
    }
    for (int s = 0; e.places && s < stages->count; s++) free(e.places[s].place);
    free(e.blocks);
    free(e.strips);
    free(e.places);
    free(e.flight);
    free(e.sync);
    return status;
}
