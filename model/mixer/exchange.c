#include "model/mixer/exchange.h"
#include "kernels/base/append.h"
#include "model/mixer/context.h"

static const struct exchange *const rows[] = {&exchange_gather, &exchange_ring, &exchange_heads};
enum { ROWS = sizeof rows / sizeof *rows };

const char *exchange_words(void) {
    static char words[ROWS * 16];
    size_t used = 0;
    for (int i = 0; i < ROWS; i++)
        used = text_append(words, sizeof words, used, "%s%s", i ? "|" : "", rows[i]->name);
    return words;
}

const struct conflict *exchange_conflict(int exchange, const struct model_config *config, int tensor,
                                         int context) {
    return rows[exchange]->conflict ? rows[exchange]->conflict(config, tensor, context) : NULL;
}

bool exchange_to_next(int exchange) {
    return rows[exchange]->to_next;
}

static const struct exchange *row_of(const struct model *m) {
    return rows[m->context_exchange];
}

void context_lay_out(struct model *m, struct context *x, const struct context_heads *z) {
    if (context_cuts(m)) row_of(m)->lay_out(m, x, z);
}

void context_forward(struct model *m, const struct context *x, const struct context_heads *z,
                     const struct mask *mask, const real *qkv, real *o, real *lse) {
    const long rows_of_one = 2 * m->S;
    for (long s = 0; s < m->B / 2; s++) {
        const long at = s * rows_of_one;
        const struct context_sequence sequence = context_sequence_of(m, mask, s);
        row_of(m)->forward(m, x, z, &sequence, qkv + at * z->wide, o + at * z->H * z->hd, lse + at * z->H);
    }
}

void context_backward(struct model *m, const struct context *x, const struct context_heads *z,
                      const struct mask *mask, const real *qkv, const real *o, const real *lse,
                      const real *dout, real *dqkv, real *work) {
    const long rows_of_one = 2 * m->S;
    for (long s = 0; s < m->B / 2; s++) {
        const long at = s * rows_of_one, own = at * z->H * z->hd;
        const struct context_sequence sequence = context_sequence_of(m, mask, s);
        row_of(m)->backward(m, x, z, &sequence,
                            &(struct context_saved){qkv + at * z->wide, o + own, dout + own, lse + at * z->H},
                            dqkv + at * z->wide, work);
    }
}
