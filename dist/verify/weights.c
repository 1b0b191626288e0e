/* Gradients of weights that wait (ACT_WEIGHTS). Each micro-batch's follow its backward pass, and those of the
 * micro-batch before: every sum has one order, the one without weight sets. */
#include "dist/verify/private.h"
#include "kernels/base/status.h"

#include <stddef.h>

/* The place of an action's weight set; NULL where there is no such. */
static int *set_of(const struct verifier *c, int rank, const struct action *a) {
    if (a->weight_set < 0 || a->weight_set >= c->schedule->weight_sets[rank]) return NULL;
    return &c->weight_set[rank][a->weight_set];
}

/* Whether all of the micro-batch before has been added to a chunk's gradients. */
static int verify_order(struct verifier *c, int rank, int s) {
    const struct action *a = verify_next(c, rank);
    if (!a->micro_batch || c->weights[verify_pass_index(c, s, a->micro_batch - 1)] == stage_bottom(c, s))
        return 0;
    return WRONG("gradients of weights of micro-batch %d come before it", a->micro_batch - 1);
}

int verify_backward_weights(struct verifier *c, int rank, int layer) {
    const struct action *a = verify_next(c, rank);
    int s = verify_stage(c, rank, a), *weights = &c->weights[verify_pass_index(c, s, a->micro_batch)];
    bool begins = layer == stage_top(c, s) + 1;
    if (a->weight_set < 0) {
        if (*weights != layer) return WRONG("the pass has begun with a weight set");
        TRY(verify_order(c, rank, s));
        *weights = a->end;
        return 0;
    }
    int *set = set_of(c, rank, a);
    if (!set) return WRONG("there is no such weight set: the rank has %d", c->schedule->weight_sets[rank]);
    int of = 1 + verify_pass_index(c, s, a->micro_batch);
    if (begins && *set) return WRONG("the weight set is taken by micro-batch %d", (*set - 1) % c->micro_batches);
    if (!begins && *set != of)
        return WRONG("the pass has begun with another weight set, or none");
    if (begins && a->micro_batch &&
        c->layer[verify_pass_index(c, s, a->micro_batch - 1)] != stage_bottom(c, s))
        return WRONG("the backward pass of micro-batch %d comes before it", a->micro_batch - 1);
    *set = of;
    return 0;
}

int verify_weights(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    if (a->chunk < 0 || a->chunk >= c->chunks) return WRONG("there is no such chunk");
    if (a->micro_batch < 0 || a->micro_batch >= c->micro_batches)
        return WRONG("there is no such micro-batch");
    int s = verify_stage(c, rank, a), at = verify_pass_index(c, s, a->micro_batch), *set = set_of(c, rank, a);
    if (!set || *set != 1 + at) return WRONG("the weight set does not hold the micro-batch");
    if (c->layer[at] != stage_bottom(c, s)) return WRONG("its backward pass is not done");
    TRY(verify_order(c, rank, s));
    if (a->layer != c->weights[at] - 1) return WRONG("the layer to go on with is %d", c->weights[at] - 1);
    if (a->end > a->layer || a->end < stage_bottom(c, s))
        return WRONG("the chunk's layers are %d to %d", stage_top(c, s), stage_bottom(c, s));
    if (c->shared[rank] || c->normed[rank]) return WRONG("gradients are summed already");
    c->weights[at] = a->end;
    if (a->end == stage_bottom(c, s)) *set = 0;
    return 0;
}
