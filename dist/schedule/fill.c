/* Where gradients of weights go in a rank's list (ZB-H1; Qi et al. 2024): passes keep 1F1B's order, and
 * before each of them that the rank would have to wait for, gradients are computed that wait, in the order of
 * micro-batches. */
#include "dist/schedule/private.h"

static int now(const struct filling *f) {
    return f->count ? f->step[f->count - 1].end : 0;
}

static void add_weights(struct filling *f, int rank, int stage) {
    int begin = now(f);
    f->step[f->count++] = (struct step){.rank = rank,
                                        .stage = stage,
                                        .micro_batch = f->from,
                                        .weight_set = f->from % f->sets,
                                        .weights = true,
                                        .begin = begin,
                                        .end = begin + WEIGHTS_TIME};
    f->from++;
}

struct step *filling_add(struct filling *f, const struct step *pass, int ready) {
    bool fills = pass->backward && f->sets;
    while (f->from < f->to && now(f) < ready) add_weights(f, pass->rank, pass->stage);
    if (fills && f->to - f->from == f->sets) add_weights(f, pass->rank, pass->stage);
    struct step *step = &f->step[f->count];
    *step = *pass;
    step->begin = now(f) > ready ? now(f) : ready;
    step->end = step->begin + (!pass->backward ? FORWARD_TIME : fills ? INPUTS_TIME : BACKWARD_TIME);
    step->weight_set = fills ? pass->micro_batch % f->sets : -1;
    f->count++;
    if (fills) f->to = pass->micro_batch + 1;
    return step;
}

void filling_end(struct filling *f) {
    while (f->from < f->to) add_weights(f, f->step[f->count - 1].rank, f->step[f->count - 1].stage);
}
