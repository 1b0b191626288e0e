/* AdamW: decoupled weight decay (Loshchilov & Hutter 2019; model.md, 6). */
#include "train/optimizer/rules.h"

#include <math.h>

enum { EXP_AVG, EXP_AVG_SQ };

static const struct moments *moments(const struct row *row) {
    static const struct moments both = {2, {[EXP_AVG] = "exp_avg", [EXP_AVG_SQ] = "exp_avg_sq"}};
    (void)row;
    return &both;
}

static void update(const struct update *u) {
    const struct treatment *t = &u->row->treatment;
    double n = (double)u->steps;
    u->ops->adamw(u->count, u->weight, u->gradient, u->moment[EXP_AVG], u->moment[EXP_AVG_SQ], u->gscale,
                  u->lr, t->beta1, t->beta2, u->train->adam_eps, u->decay, u->train->cautious_decay,
                  1 - pow(t->beta1, n), 1 - pow(t->beta2, n));
}

const struct optimizer_rule optimizer_adamw = {.name = "adamw", .moments = moments, .update = update};
