#include "train/step/packing.h"

#include "kernels/backends/backends.h"
#include "train/step/message_size.h"

static int *output_of(const struct packing *p, const struct action *a) {
    return &p->output_of[a->chunk * p->nodes + 1 + a->index];
}

/* A place for what an own node goes as, for each activation set of its chunk: from the messages of the first
 * micro-batch, which stands for the others. Returns how many. */
static int find_outputs(struct packing *p) {
    int rank = p->layout->index[AXIS_PIPELINE], outputs = 0;
    const struct actions *list = &p->pipeline->schedule.rank[rank];
    const int *activation_sets = p->pipeline->activation_sets + rank * p->layout->chunks;
    for (int n = 0; p->output_of && n < p->layout->chunks * p->nodes; n++) p->output_of[n] = -1;
    for (int i = 0; i < list->count; i++) {
        const struct action *a = &list->action[i];
        if (a->act != ACT_SEND || a->micro_batch != 0 || a->buffer >= 0) continue;
        if (p->output_of) *output_of(p, a) = outputs;
        outputs += activation_sets[layout_chunk_of(p->layout, layout_stage_of(p->layout, a->index))];
    }
    return outputs;
}

void packing_lay_out(struct packing *p, struct arena *host, struct arena *blocks) {
    int rank = p->layout->index[AXIS_PIPELINE];
    if (!packs(p)) return;
    p->host = p->ops ? ops_on_host(p->ops) : NULL;
    p->room = message_elements(p->layout, PAYLOAD_SOURCE, p->rows, p->columns[PAYLOAD_SOURCE]);
    p->narrow_room = message_elements(p->layout, PAYLOAD_PROJECTED, p->rows, p->columns[PAYLOAD_PROJECTED]);
    p->output_of = arena_take(host, (size_t)(p->layout->chunks * p->nodes) * sizeof *p->output_of);
    long outputs = find_outputs(p);
    struct arena *arena = message_is_compressed(p->layout, PAYLOAD_SOURCE) ? host : blocks;
    p->block = arena_take(arena, (size_t)(p->pipeline->blocks[rank] * p->room) * sizeof *p->block);
    p->output = arena_take(arena, (size_t)(outputs * p->room) * sizeof *p->output);
    p->narrow =
        arena_take(blocks, (size_t)(p->pipeline->narrow_blocks[rank] * p->narrow_room) * sizeof *p->narrow);
}

uint16_t *packing_room(const struct packing *p, const struct action *a, int activation_set) {
    if (payload_is_narrow(a->payload)) return p->narrow + a->buffer * p->narrow_room;
    if (a->buffer >= 0) return p->block + a->buffer * p->room;
    int output = *output_of(p, a);
    return output < 0 ? NULL : p->output + (output + activation_set) * p->room;
}

static const struct ops *ops_of(const struct packing *p, const struct action *a) {
    return message_is_compressed(p->layout, a->payload) ? p->host : p->ops;
}

void packing_pack(const struct packing *p, const struct action *a, long count, const real *x,
                  uint16_t *room) {
    ops_of(p, a)->to_bf16(count, x, room);
}

void packing_unpack(const struct packing *p, const struct action *a, long count, const uint16_t *room,
                    real *x) {
    ops_of(p, a)->from_bf16(1, count, room, x, count);
}
