#include "dist/schedule/emit.h"

#include <stdlib.h>

const struct stage *emit_stage_of(const struct emitter *e, const struct step *step) {
    return &e->stages->stage[step->stage];
}

struct pool *emit_pool_of(struct emitter *e, int rank, enum cargo cargo) {
    return cargo_is_strip(cargo) ? &e->strips[rank] : &e->blocks[rank];
}

void emit_latest(int *when, int time) {
    if (*when < time) *when = time;
}

/* An action on something of `step`: the one in hand, or a later one whose receives are posted. */
struct action emit_about(const struct emitter *e, const struct step *step, enum act act, enum cargo cargo,
                         int index) {
    struct action action = action_blank(act);
    action.chunk = emit_stage_of(e, step)->chunk;
    action.micro = step->micro;
    action.cargo = cargo;
    action.index = index;
    return action;
}

void emit_action(struct emitter *e, struct action action) {
    schedule_append(e->builder, e->stage->rank, action);
}

void emit_free(struct emitter *e, int rank, struct pool *pool, int b) {
    const struct buffer *it = &pool->buffer[b];
    struct action action = action_blank(ACT_FREE);
    action.cargo = it->cargo;
    action.index = it->index;
    action.micro = it->micro;
    action.buffer = b;
    schedule_append(e->builder, rank, action);
    pool_free(pool, b);
}

/* A buffer for something that the rank in hand gets: a free one, else one whose sends have had time to go,
 * else one more; without `grow` rather none: −1. */
int emit_take(struct emitter *e, enum cargo cargo, int index, int micro, bool grow) {
    struct pool *pool = emit_pool_of(e, e->stage->rank, cargo);
    int b = pool_lowest(pool);
    if (b < 0 && (b = pool_oldest(pool, e->step->begin)) >= 0) emit_free(e, e->stage->rank, pool, b);
    if (b < 0 && !grow) return -1;
    if (b < 0 && (b = pool_grow(pool)) < 0) {
        e->builder->full = true;
        return -1;
    }
    pool_take(pool, b, cargo, index, micro);
    return b;
}

int emit_take_fresh(struct emitter *e, enum cargo cargo, int index) {
    struct action action = emit_about(e, e->step, ACT_TAKE, cargo, index);
    action.buffer = emit_take(e, cargo, index, e->step->micro, true);
    emit_action(e, action);
    return action.buffer;
}

/* The contents are not needed any more. A buffer with sends on their way stays until somebody needs one. */
void emit_release(struct emitter *e, enum cargo cargo, int index) {
    struct pool *pool = emit_pool_of(e, e->stage->rank, cargo);
    int b = pool_find(pool, cargo, index, e->step->micro);
    if (b < 0) return; /* without memory for it */
    const struct outgoing *sends = &pool->buffer[b].sends;
    if (!sends->open && sends->when < e->step->begin)
        emit_free(e, e->stage->rank, pool, b);
    else
        pool_done(pool, b);
}

void emit_release_all(struct emitter *e, const struct entries *list) {
    for (int i = 0; i < list->count; i++) emit_release(e, list->entry[i].cargo, list->entry[i].index);
}

int emit_slot_of(const struct emitter *e, int stage, int micro) {
    const struct places *places = &e->places[stage];
    for (int i = 0; i < places->count; i++)
        if (places->place[i].micro == micro) return i;
    return -1;
}

int emit_take_slot(struct emitter *e) {
    struct places *places = &e->places[e->step->stage];
    int i = 0;
    while (i < places->count) {
        const struct place *it = &places->place[i];
        if (it->micro < 0 && !it->sends.open && it->sends.when < e->step->begin) break;
        i++;
    }
    if (i == places->count) {
        struct place *more = realloc(places->place, (size_t)(i + 1) * sizeof *more);
        if (!more) {
            e->builder->full = true;
            return -1;
        }
        places->place = more;
        places->count++;
    }
    places->place[i] = (struct place){.micro = e->step->micro, .sends = {.when = -1}};
    return i;
}

void emit_retire(struct emitter *e, int stage) {
    int slot = emit_slot_of(e, stage, e->step->micro);
    if (slot >= 0) e->places[stage].place[slot].micro = -1;
}
