#include "model/base/dropout.h"

bool drops_layer(const struct model *m, int layer) {
    return drops(m, m->config.dropout.layer) && !m->planned &&
           dropout_leaves_out(&m->config, m->pass->options->masks, layer);
}

struct mask dropout_mask(const struct model *m, enum dropout_site site, int layer, int distance,
                         double rate) {
    static const char *const names[] = {[DROP_MIXER] = "dropout.mixer",
                                        [DROP_MLP] = "dropout.mlp",
                                        [DROP_ATTENTION] = "dropout.attention",
                                        [DROP_GATE] = "dropout.gate"};
    const struct pass *pass = m->pass;
    uint64_t place = (uint64_t)layer << 32 | (uint64_t)distance;
    const long length = whole_length(m);
    return (struct mask){.site = random_bits(pass->options->masks, random_name(names[site]), place),
                         .row = (uint64_t)(pass->sequence * length),
                         .p = rate};
}

/* Which row of the pass's whole sequences a token of the micro-batch is. */
static long whole_row(const struct model *m, long t) {
    const int context = m->context->size;
    const long row = t / m->S;
    if (context == 1) return t;
    return row / 2 * whole_length(m) + piece_of_row(context, m->context->index, row) * m->S + t % m->S;
}

void dropout_rows(const struct model *m, const struct mask *mask, long first, long count, long W, const real *x,
                  long ldx, real *y, long ldy) {
    for (long done = 0, some; done < count; done += some) {
        const long t = first + done, left = m->S - t % m->S; /* of its piece */
        some = m->context->size == 1 || left > count - done ? count - done : left;
        const struct mask part = mask_part(mask, whole_row(m, t), 0);
        m->ops->dropout(some, W, &part, x + done * ldx, ldx, y + done * ldy, ldy);
    }
}
