#include "train/step/private.h"

/* Elements of a message. */
static long elements(const struct executor *x, const struct action *a) {
    long T = executor_rows(x, a->micro);
    return cargo_is_strip(a->cargo) ? T * x->width
                                    : boundary_elements(x->layout, T, x->e.config->hidden_size);
}

static bool packed(const struct executor *x, const struct action *a) {
    return x->compressed && !cargo_is_strip(a->cargo);
}

static int holder(const struct executor *x, const struct action *a) {
    return locations_holder(&x->locations, a->cargo, a->buffer);
}

int execute_post(void *executor, const struct action *a) {
    struct executor *x = executor;
    struct buffer *into = executor_buffer(x, a);
    real *room = packed(x, a) ? boundary_room(&x->boundary, a->buffer) : into->x;
    transport_receive(x->transport, holder(x, a), room, elements(x, a), a->peer, a->message, packed(x, a));
    into->posted = true;
    return 0;
}

int execute_receive(void *executor, const struct action *a) {
    struct executor *x = executor;
    struct buffer *into = executor_buffer(x, a);
    if (!into->posted) execute_post(x, a);
    into->posted = false;
    transport_wait(x->transport, holder(x, a));
    if (packed(x, a)) boundary_unpack(&x->boundary, a->buffer, executor_rows(x, a->micro), into->x);
    return 0;
}

int execute_take(void *executor, const struct action *a) {
    struct executor *x = executor;
    if (a->cargo == CARGO_DEPOSIT)
        x->e.ops->zero(executor_rows(x, a->micro) * x->e.config->hidden_size, executor_buffer(x, a)->x);
    return 0;
}

/* The chunk's own output, from its slot. */
static int send_output(struct executor *x, const struct action *a) {
    int chunk = locations_chunk(&x->locations, a->index);
    const real *from = locations_own_output(&x->locations, a->micro, a->index);
    if (!from) return executor_missing(a, "node");
    int slot = locations_slot(&x->locations, a->micro, chunk);
    executor_look_at_message(x, a, from);
    if (packed(x, a)) from = boundary_pack_output(&x->boundary, a, slot, executor_rows(x, a->micro), from);
    if (!from) return executor_missing(a, "place for factors");
    transport_send(x->transport, locations_slot_holder(&x->locations, chunk, slot), from, elements(x, a),
                   a->peer, a->message, packed(x, a));
    return 0;
}

int execute_send(void *executor, const struct action *a) {
    struct executor *x = executor;
    if (a->buffer < 0) return send_output(x, a);
    real *block = executor_buffer(x, a)->x;
    const real *from = block;
    executor_look_at_message(x, a, from);
    if (packed(x, a)) from = boundary_pack(&x->boundary, x->list, a, executor_rows(x, a->micro), block);
    transport_send(x->transport, holder(x, a), from, elements(x, a), a->peer, a->message, packed(x, a));
    return 0;
}

int execute_free(void *executor, const struct action *a) {
    struct executor *x = executor;
    transport_wait(x->transport, holder(x, a));
    return 0;
}

void executor_expect(struct executor *x) {
    int count = 0;
    for (int i = 0; i < x->locations.blocks + x->locations.strips; i++) x->locations.buffer[i].posted = false;
    for (int i = 0; i < x->list->count; i++) {
        const struct action *a = &x->list->action[i];
        if (a->act != ACT_POST && a->act != ACT_RECEIVE) continue;
        struct buffer *into = executor_buffer(x, a);
        bool begun = a->act == ACT_RECEIVE && into->posted;
        into->posted = a->act == ACT_POST;
        if (begun || packed(x, a)) continue;
        x->peer[count] = a->peer;
        x->message[count++] = a->message;
    }
    transport_expect(x->transport, count, x->peer, x->message);
}
