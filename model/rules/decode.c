/* What rules keep of the tokens so far in generation. */
#include "model/rules/rules.h"

#include <stdlib.h>

typedef void each(struct model *m, struct rule_layer *x, void *context);

/* Calls it for each layer of the rules that keep something. */
static void for_each(struct model *m, const struct activation_set *set, each *call, void *context) {
    for (int r = 0; r < m->rules->count; r++)
        for (int l = 0; l < m->config.num_layers; l++) {
            struct rule_layer *x = &set->rule[r][l];
            if (x->enters && x->row->decode_bytes) call(m, x, context);
        }
}

static void create(struct model *m, struct rule_layer *x, void *there) {
    (void)m;
    x->decode = calloc(1, x->row->decode_bytes);
    if (!x->decode) *(bool *)there = false;
}

bool rules_create_decode(struct model *m, const struct activation_set *set) {
    bool there = true;
    for_each(m, set, create, &there);
    return there;
}

struct room {
    struct arena *arena;
    long capacity;
};

static void lay_out(struct model *m, struct rule_layer *x, void *context) {
    const struct room *room = context;
    if (x->row->lay_out_decode) x->row->lay_out_decode(m, x, room->arena, room->capacity);
}

void rules_lay_out_decode(struct model *m, const struct activation_set *set, struct arena *arena,
                          long capacity) {
    for_each(m, set, lay_out, &(struct room){arena, capacity});
}

static void reset(struct model *m, struct rule_layer *x, void *context) {
    (void)context;
    x->row->reset(m, x);
}

void rules_reset(struct model *m, const struct activation_set *set) {
    for_each(m, set, reset, NULL);
}
