#include "dist/schedule/emit.h"

#include <stddef.h>

static struct flight *flight_of(struct emitter *e, int port, int micro_batch) {
    return &e->flight[(long)port * e->builder->options->micro_batches + micro_batch];
}

/* Fills in which message it is and where it goes; `up`: to or from the stage after. */
static void address(const struct emitter *e, struct action *action, const struct step *step, int port,
                    bool up) {
    const struct stage *stage = emit_stage_of(e, step);
    action->boundary = up ? step->stage : step->stage - 1;
    action->peer = up ? stage->after : stage->before;
    action->message = port * e->builder->options->micro_batches + step->micro_batch;
}

/* Sends what lies in a buffer, or a node from the activation set where the buffer is −1; it can go from
 * `ready` on. */
void emit_send(struct emitter *e, enum payload payload, int index, int port, int buffer, int activation_set,
               int ready) {
    struct action action = emit_about(e, e->step, ACT_SEND, payload, index);
    address(e, &action, e->step, port, !e->step->backward);
    action.buffer = buffer;
    action.activation_set = activation_set;
    emit_action(e, action);
    if (e->builder->full) return;
    struct flight *flight = flight_of(e, port, e->step->micro_batch);
    flight->buffer = buffer;
    flight->activation_set = activation_set;
    if (buffer < 0) flight->stage = emit_own_stage(e, index);
    struct outgoing *sends = buffer >= 0
                                 ? &emit_pool_of(e, e->stage->rank, payload)->buffer[buffer].sends
                                 : &e->activation_sets[flight->stage].activation_set[activation_set].sends;
    emit_latest(&sends->when, ready);
    emit_latest(&sends->when, flight->when);
    if (flight->when < 0) sends->open++;
}

void emit_send_held(struct emitter *e, enum payload payload, int index, int port, int ready) {
    int buffer = pool_find(emit_pool_of(e, e->stage->rank, payload), payload, index, e->step->micro_batch);
    emit_send(e, payload, index, port, buffer, -1, ready);
}

/* The receive of a message begins, now, for the same or a later step of the rank in hand: takes its buffer.
 * Returns whether it has one. */
static bool begin_receive(struct emitter *e, const struct step *step, const struct transfer *it, bool grow) {
    struct flight *flight = flight_of(e, it->in, step->micro_batch);
    if (flight->into >= 0) return true; /* it was posted */
    flight->into = emit_take(e, it->payload, it->index, step->micro_batch, grow);
    if (flight->into < 0) return false;
    emit_pool_of(e, e->stage->rank, it->payload)->buffer[flight->into].state = BUFFER_POSTED;
    flight->when = e->step->begin;
    struct outgoing *sends = NULL;
    int sender = step->backward ? emit_stage_of(e, step)->after : emit_stage_of(e, step)->before;
    if (flight->buffer >= 0) sends = &emit_pool_of(e, sender, it->payload)->buffer[flight->buffer].sends;
    if (flight->activation_set >= 0)
        sends = &e->activation_sets[flight->stage].activation_set[flight->activation_set].sends;
    if (sends) {
        sends->open--;
        emit_latest(&sends->when, flight->when);
    }
    return true;
}

static void receive_action(struct emitter *e, const struct step *step, enum act act,
                           const struct transfer *it) {
    struct action action = emit_about(e, step, act, it->payload, it->index);
    address(e, &action, step, it->in, step->backward);
    action.buffer = flight_of(e, it->in, step->micro_batch)->into;
    emit_action(e, action);
}

void emit_receive(struct emitter *e, const struct transfer *it) {
    if (it->in >= 0) {
        if (!begin_receive(e, e->step, it, true)) return;
        receive_action(e, e->step, ACT_RECEIVE, it);
        emit_pool_of(e, e->stage->rank, it->payload)
            ->buffer[flight_of(e, it->in, e->step->micro_batch)->into]
            .state = BUFFER_TAKEN;
    }
    if (it->out >= 0) emit_send_held(e, it->payload, it->index, it->out, e->step->begin);
}

static void post(struct emitter *e, const struct step *step, const struct transfer *it, bool grow) {
    if (it->in >= 0 && begin_receive(e, step, it, grow)) receive_action(e, step, ACT_POST, it);
}

/* Posts what the rank's next pass receives, so that it travels during this one: the stream or its gradient
 * always, the rest where there are buffers for it. */
void emit_post_next(struct emitter *e) {
    const struct step *next = e->step + 1, *begin = e->order->step + (long)e->stage->rank * e->order->steps,
                      *end = begin + e->order->count[e->stage->rank];
    while (next < end && next->weights) next++; /* which receive nothing */
    if (next == end) return;
    const struct stage *stage = emit_stage_of(e, next);
    const struct transfers *list = next->backward ? &stage->collect : &stage->arrive;
    if (next->backward && !stage->top) {
        struct transfer gradient = stage->gradient;
        gradient.out = -1;
        post(e, next, &gradient, true);
    }
    for (int i = list->count - 1; i >= 0; i--)
        post(e, next, &list->transfer[i], !next->backward && i == list->count - 1);
}
