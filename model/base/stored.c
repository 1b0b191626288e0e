/* What is kept in bf16 from a forward to a backward pass (SAVE_BF16). Passes have it in buffers that all layers
 * use in turn, as they have what is computed again. */
#include <assert.h>

#include "model/base/base.h"

real *save_bf16(struct model *m, real *at, long count, bool keep) {
    struct stored_list *list = m->stored;
    if (!list) return take(&m->scratch, count);
    assert(list->count < STORED);
    uint16_t *kept = keep ? arena_take(&m->saved, (size_t)count * sizeof *kept) : NULL;
    list->buffer[list->count++] = (struct stored){at, kept, count};
    return at;
}

void stored_keep(const struct model *m, const struct stored_list *list) {
    for (int i = 0; m->gradients && i < list->count; i++)
        if (list->buffer[i].kept)
            m->ops->to_bf16(list->buffer[i].count, list->buffer[i].at, list->buffer[i].kept);
}

void stored_bring(const struct model *m, const struct stored_list *list) {
    for (int i = 0; i < list->count; i++)
        if (list->buffer[i].kept)
            m->ops->from_bf16(1, list->buffer[i].count, list->buffer[i].kept, list->buffer[i].at,
                              list->buffer[i].count);
}

void stored_round(const struct model *m, const struct stored_list *list) {
    for (int i = 0; i < list->count; i++)
        if (!list->buffer[i].kept) m->ops->round_bf16(list->buffer[i].count, list->buffer[i].at);
}
