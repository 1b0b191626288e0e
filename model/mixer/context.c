#include "model/mixer/context.h"

#include "dist/layout/pieces.h"

int context_piece(const struct model *m, long row) {
    return piece_of_row(m->context->size, m->context->index, row);
}

struct context_sequence context_sequence_of(const struct model *m, const struct mask *mask, long s) {
    const long first = s * whole_length(m);
    struct context_sequence sequence = {.start = m->start ? m->start + first : NULL, .drops = mask};
    if (mask) sequence.mask = mask_part(mask, first, 0);
    return sequence;
}

void context_rotate(struct model *m, const struct context_heads *z, const real *cosine, const real *sine,
                    int direction, real *qkv) {
    const long P = m->S;
    for (long row = 0; row < m->B; row++) {
        const struct context_sequence sequence = context_sequence_of(m, NULL, row / 2);
        const long first = context_piece(m, row) * P;
        m->ops->rope(P, P, first, context_start(&sequence, first), z->H + z->K, z->hd, cosine, sine, direction,
                     qkv + row * P * z->wide, z->wide);
    }
}

void context_reorder(struct model *m, enum context_way way, long width, long each, real *by_rank,
                     real *in_order) {
    const int c = m->context->size;
    const long count = m->S * width;
    for (int piece = 0; piece < 2 * c; piece++) {
        real *at = by_rank + piece_rank(c, piece) * each + piece_row(c, piece) * count;
        real *position = in_order + piece * count;
        m->ops->copy(count, way == TO_POSITIONS ? at : position, way == TO_POSITIONS ? position : at);
    }
}
