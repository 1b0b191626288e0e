#include "train/step/message_size.h"
#include "train/step/private.h"

static long elements(const struct executor *x, const struct action *a) {
    return message_elements(x->layout, a->payload, executor_rows(x, a->micro_batch), x->columns[a->payload]);
}

/* A dry run counts factors, but makes none. */
static bool compressed(const struct executor *x, const struct action *a) {
    return !x->dry && message_is_compressed(x->layout, a->payload);
}

/* It counts, too, what context ranks hand over to make them. */
static void count_compressing(struct executor *x, const struct action *a) {
    if (x->dry && message_is_compressed(x->layout, a->payload))
        boundary_count(&x->boundary, x->list, a, executor_rows(x, a->micro_batch));
}

static bool packed(const struct executor *x) {
    return !x->dry && packs(&x->packing);
}

/* What a SEND hands over: of an own output from that activation set. NULL where there is no place for it. */
static const void *pack(const struct executor *x, const struct action *a, int activation_set,
                        const real *from) {
    if (!packed(x)) return from;
    uint16_t *room = packing_room(&x->packing, a, activation_set);
    if (room) packing_pack(&x->packing, a, elements(x, a), from, room);
    return room;
}

static int owner(const struct executor *x, const struct action *a) {
    return locations_owner(&x->locations, a->payload, a->buffer);
}

/* What a message carries, once it has come and is unpacked. */
static real *carried(const struct executor *x, const struct action *a) {
    return compressed(x, a) ? boundary_room(&x->boundary, a->buffer) : executor_buffer(x, a)->x;
}

int execute_post(void *executor, const struct action *a) {
    struct executor *x = executor;
    struct buffer *into = executor_buffer(x, a);
    void *room = packed(x) ? (void *)packing_room(&x->packing, a, -1) : carried(x, a);
    transport_receive(x->transport, owner(x, a), room, elements(x, a), a->peer, a->message, compressed(x, a));
    into->posted = true;
    return 0;
}

/* Starts a pass's receives together, so that their senders are asked at the same time: up to the first action
 * that might give a buffer back. */
static void post_all(struct executor *x, const struct action *a) {
    const struct action *end = x->list->action + x->list->count;
    for (; a < end && (a->act == ACT_RECEIVE || a->act == ACT_SEND); a++)
        if (a->act == ACT_RECEIVE && !executor_buffer(x, a)->posted) execute_post(x, a);
}

int execute_receive(void *executor, const struct action *a) {
    struct executor *x = executor;
    struct buffer *into = executor_buffer(x, a);
    if (!into->posted) post_all(x, a);
    into->posted = false;
    transport_wait(x->transport, owner(x, a));
    if (packed(x))
        packing_unpack(&x->packing, a, elements(x, a), packing_room(&x->packing, a, -1), carried(x, a));
    if (compressed(x, a))
        boundary_decompress(&x->boundary, a->buffer, executor_rows(x, a->micro_batch), into->x);
    return 0;
}

int execute_take(void *executor, const struct action *a) {
    struct executor *x = executor;
    if (a->payload == PAYLOAD_SOURCE_GRADIENT)
        x->e.ops->zero(executor_rows(x, a->micro_batch) * x->columns[a->payload], executor_buffer(x, a)->x);
    return 0;
}

/* The chunk's own output, from its activation set. */
static int send_output(struct executor *x, const struct action *a) {
    int chunk = locations_chunk(&x->locations, a->index);
    const real *from = locations_own_output(&x->locations, a->micro_batch, a->index);
    if (!from) return executor_missing(a, "node");
    int activation_set = locations_activation_set(&x->locations, a->micro_batch, chunk);
    executor_look_at_message(x, a, from);
    if (compressed(x, a))
        from =
            boundary_compress_output(&x->boundary, a, activation_set, executor_rows(x, a->micro_batch), from);
    if (!from) return executor_missing(a, "place for factors");
    const void *message = pack(x, a, activation_set, from);
    if (!message) return executor_missing(a, "place for a message");
    transport_send(x->transport, locations_activation_set_owner(&x->locations, chunk, activation_set),
                   message, elements(x, a), a->peer, a->message, compressed(x, a));
    return 0;
}

int execute_send(void *executor, const struct action *a) {
    struct executor *x = executor;
    count_compressing(x, a);
    if (a->buffer < 0) return send_output(x, a);
    real *block = executor_buffer(x, a)->x;
    const real *from = block;
    executor_look_at_message(x, a, from);
    if (compressed(x, a))
        from = boundary_compress(&x->boundary, x->list, a, executor_rows(x, a->micro_batch), block);
    transport_send(x->transport, owner(x, a), pack(x, a, -1, from), elements(x, a), a->peer, a->message,
                   compressed(x, a));
    return 0;
}

int execute_free(void *executor, const struct action *a) {
    struct executor *x = executor;
    transport_wait(x->transport, owner(x, a));
    return 0;
}

void executor_expect(struct executor *x) {
    int count = 0;
    for (int i = 0; i < x->locations.blocks + x->locations.narrow_blocks; i++)
        x->locations.buffer[i].posted = false;
    for (int i = 0; i < x->list->count; i++) {
        const struct action *a = &x->list->action[i];
        enum act_role role = act_kinds[a->act].role;
        if (role != ROLE_POST && role != ROLE_RECEIVE) continue;
        struct buffer *into = executor_buffer(x, a);
        bool begun = role == ROLE_RECEIVE && into->posted;
        into->posted = role == ROLE_POST;
        if (begun || compressed(x, a)) continue;
        x->peer[count] = a->peer;
        x->message[count++] = a->message;
    }
    transport_expect(x->transport, count, x->peer, x->message);
}
