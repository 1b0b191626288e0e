#include "dist/verify/private.h"
#include "kernels/base/status.h"

#include <stddef.h>

/* Whether the gradients of weights of the layers ≥ `layer` have all micro-batches. */
static bool backward_done(const struct verifier *c, int rank, int layer) {
    for (int chunk = 0; chunk < c->chunks; chunk++) {
        int s = layout_stage(c->layout, rank, chunk);
        if (stage_top(c, s) < layer) continue;
        int to = layer > stage_bottom(c, s) ? layer : stage_bottom(c, s);
        for (int m = 0; m < c->micro_batches; m++)
            if (c->weights[verify_pass_index(c, s, m)] > to) return false;
    }
    return true;
}

int verify_share(struct verifier *c, int rank) {
    if (!backward_done(c, rank, -1)) return WRONG("a backward pass is still to come");
    if (c->shared[rank]) return WRONG("done before");
    c->shared[rank] = true;
    return 0;
}

int verify_norm(struct verifier *c, int rank) {
    for (int b = 0; c->options->shards && b < c->options->shards[rank].buckets; b++)
        if (c->bucket[rank][b] != ACT_FINISH) return WRONG("bucket %d is not finished", b);
    c->normed[rank] = true;
    return 0;
}

int verify_bucket(struct verifier *c, int rank) {
    static const int after[ACTS] = {[ACT_FINISH] = ACT_REDUCE,
                                    [ACT_UPDATE] = ACT_FINISH,
                                    [ACT_GATHER] = ACT_UPDATE,
                                    [ACT_GATHERED] = ACT_GATHER};
    const struct action *a = verify_next(c, rank);
    const struct shards *shards = c->options->shards ? &c->options->shards[rank] : NULL;
    if (!shards || a->index < 0 || a->index >= shards->buckets) return WRONG("there is no such bucket");
    int *state = &c->bucket[rank][a->index];
    if (*state != after[a->act]) return WRONG("out of order, or done before");
    *state = (int)a->act;
    if (a->act == ACT_REDUCE) {
        const struct bucket *bucket = &shards->bucket[a->index];
        if (bucket->shared ? !c->shared[rank] : !backward_done(c, rank, bucket->ready))
            return WRONG("a gradient in the bucket is still to come");
        if (++c->in_flight[rank] > SYNC_IN_FLIGHT)
            return WRONG("more than %d buckets in flight", SYNC_IN_FLIGHT);
    }
    if (a->act == ACT_FINISH) c->in_flight[rank]--;
    if (a->act == ACT_UPDATE && !c->normed[rank]) return WRONG("the norm is not known yet");
    return 0;
}
