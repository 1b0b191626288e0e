#include "dist/schedule/emit.h"

#include <stdlib.h>

const struct stage *emit_stage_of(const struct emitter *e, const struct step *step) {
    return &e->stages->stage[step->stage];
}

struct pool *emit_pool_of(struct emitter *e, int rank, enum payload payload) {
    return payload_is_narrow(payload) ? &e->narrow_blocks[rank] : &e->blocks[rank];
}

void emit_latest(int *when, int time) {
    if (*when < time) *when = time;
}

/* An action on something of `step`: the one in hand, or a later one whose receives are posted. */
struct action emit_about(const struct emitter *e, const struct step *step, enum act act, enum payload payload,
                         int index) {
    struct action action = action_blank(act);
    action.chunk = emit_stage_of(e, step)->chunk;
    action.micro_batch = step->micro_batch;
    action.payload = payload;
    action.index = index;
    return action;
}

void emit_action(struct emitter *e, struct action action) {
    schedule_append(e->builder, e->stage->rank, action);
}

void emit_free(struct emitter *e, int rank, struct pool *pool, int b) {
    const struct buffer *it = &pool->buffer[b];
    struct action action = action_blank(ACT_FREE);
    action.payload = it->payload;
    action.index = it->index;
    action.micro_batch = it->micro_batch;
    action.buffer = b;
    schedule_append(e->builder, rank, action);
    pool_free(pool, b);
}

/* A buffer for something that the rank in hand gets: a free one, else one whose sends have had time to go,
 * else one more; without `grow` rather none: −1. */
int emit_take(struct emitter *e, enum payload payload, int index, int micro_batch, bool grow) {
    struct pool *pool = emit_pool_of(e, e->stage->rank, payload);
    int b = pool_lowest(pool);
    if (b < 0 && (b = pool_oldest(pool, e->step->begin)) >= 0) emit_free(e, e->stage->rank, pool, b);
    if (b < 0 && !grow) return -1;
    if (b < 0 && (b = pool_grow(pool)) < 0) {
        e->builder->full = true;
        return -1;
    }
    pool_take(pool, b, payload, index, micro_batch);
    return b;
}

int emit_take_fresh(struct emitter *e, enum payload payload, int index) {
    struct action action = emit_about(e, e->step, ACT_TAKE, payload, index);
    action.buffer = emit_take(e, payload, index, e->step->micro_batch, true);
    emit_action(e, action);
    return action.buffer;
}

/* The contents are not needed any more. A buffer with sends on their way stays until somebody needs one. */
void emit_release(struct emitter *e, enum payload payload, int index) {
    struct pool *pool = emit_pool_of(e, e->stage->rank, payload);
    int b = pool_find(pool, payload, index, e->step->micro_batch);
    if (b < 0) return; /* without memory for it */
    const struct outgoing *sends = &pool->buffer[b].sends;
    if (!sends->open && sends->when < e->step->begin)
        emit_free(e, e->stage->rank, pool, b);
    else
        pool_done(pool, b);
}

void emit_release_all(struct emitter *e, const struct transfers *list) {
    for (int i = 0; i < list->count; i++) emit_release(e, list->transfer[i].payload, list->transfer[i].index);
}

int emit_own_stage(const struct emitter *e, int node) {
    for (int s = e->step->stage; s > 0; s--)
        if (e->stages->stage[s].rank == e->stage->rank && e->stages->stage[s].first <= node) return s;
    return e->stage->rank == e->stages->stage[0].rank ? 0 : e->step->stage;
}

int emit_activation_set_of(const struct emitter *e, int stage, int micro_batch) {
    const struct activation_sets *activation_sets = &e->activation_sets[stage];
    for (int i = 0; i < activation_sets->count; i++)
        if (activation_sets->activation_set[i].micro_batch == micro_batch) return i;
    return -1;
}

int emit_take_activation_set(struct emitter *e) {
    struct activation_sets *activation_sets = &e->activation_sets[e->step->stage];
    int i = 0;
    while (i < activation_sets->count) {
        const struct activation_set *it = &activation_sets->activation_set[i];
        if (it->micro_batch < 0 && !it->sends.open && it->sends.when < e->step->begin) break;
        i++;
    }
    if (i == activation_sets->count) {
        struct activation_set *more =
            realloc(activation_sets->activation_set, (size_t)(i + 1) * sizeof *more);
        if (!more) {
            e->builder->full = true;
            return -1;
        }
        activation_sets->activation_set = more;
        activation_sets->count++;
    }
    activation_sets->activation_set[i] =
        (struct activation_set){.micro_batch = e->step->micro_batch, .sends = {.when = -1}};
    return i;
}

void emit_retire(struct emitter *e, int stage) {
    int activation_set = emit_activation_set_of(e, stage, e->step->micro_batch);
    if (activation_set >= 0) e->activation_sets[stage].activation_set[activation_set].micro_batch = -1;
}
