/* What a layer keeps in bf16 (SAVE_BF16). Its passes have it in buffers that all layers use in turn, as they
 * have what is computed again. */
#include "model/layer/stream.h"

void store_layer(struct model *m, int l) {
    const struct stored_list *stored = &m->layer[l].stored;
    for (int i = 0; m->gradients && i < stored->count; i++)
        if (stored->buffer[i].kept)
            m->ops->to_bf16(stored->buffer[i].count, stored->buffer[i].at, stored->buffer[i].kept);
}

/* Rows that were gathered of the norms' outputs are not theirs any more. */
static void written(struct model *m, const struct layer *layer) {
    if (layer->stored.count == 0) return;
    stream_written(m, layer->n1);
    stream_written(m, layer->n2);
}

void load_layer(struct model *m, int l) {
    const struct stored_list *stored = &m->layer[l].stored;
    for (int i = 0; i < stored->count; i++)
        if (stored->buffer[i].kept)
            m->ops->from_bf16(1, stored->buffer[i].count, stored->buffer[i].kept, stored->buffer[i].at,
                              stored->buffer[i].count);
    written(m, &m->layer[l]);
}

void round_layer(struct model *m, int l) {
    const struct stored_list *stored = &m->layer[l].stored;
    for (int i = 0; i < stored->count; i++)
        if (!stored->buffer[i].kept) m->ops->round_bf16(stored->buffer[i].count, stored->buffer[i].at);
    written(m, &m->layer[l]);
}
