/* Optimisers that a test names in the environment variable GDN_TEST_OPTIMIZER, since no key does. On the host
 * alone. */
#include "rows.h"
#include "train/optimizer/rules.h"

#include <stdlib.h>
#include <string.h>

static const struct moments *velocity(const struct row *row) {
    static const struct moments one = {1, {"velocity"}};
    (void)row;
    return &one;
}

/* Momentum beta1, decoupled decay. */
static void sgd(const struct update *u) {
    const struct treatment *t = &u->row->treatment;
    for (long i = 0; i < u->count; i++) {
        double v = t->beta1 * (double)u->moment[0][i] + u->gscale * (double)u->gradient[i];
        u->moment[0][i] = (real)v;
        u->weight[i] = (real)((double)u->weight[i] * (1 - u->lr * t->weight_decay) - u->lr * v);
    }
}

static const struct optimizer_rule rules[] = {
    {.name = "sgd", .moments = velocity, .update = sgd},
};

void rows_of_optimizers(void) {
    const char *name = getenv("GDN_TEST_OPTIMIZER");
    for (size_t i = 0; name && i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(name, rules[i].name)) optimizer_register(&rules[i]);
}
