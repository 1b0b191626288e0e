#include "train/step/finite.h"
#include "train/step/private.h"

static bool looks_at_all(const struct executor *x) {
    return x->e.state && x->e.mesh->size > 1;
}

long executor_looks(const struct executor *x) {
    return 2 * x->layout->chunks + 1;
}

static void look(struct executor *x, long which, long count, const real *at) {
    if (looks_at_all(x)) finite_check(x->e.ops, count, at, x->own + which * FINITE_SUMS);
}

void executor_look_at_message(struct executor *x, const struct action *a, const real *at) {
    long which = payload_goes_down(a->payload) ? x->layout->chunks + a->chunk : a->chunk;
    look(x, which, executor_rows(x, a->micro_batch) * x->columns[a->payload], at);
}

static void look_at_bucket(struct executor *x, const struct bucket *bucket) {
    look(x, 2 * x->layout->chunks, bucket->count, x->e.state->gradient + bucket->first);
}

static const struct shards *shards_of(const struct executor *x) {
    return &x->e.pipeline->shards[x->layout->index[AXIS_PIPELINE]];
}

void executor_look_at_bucket(struct executor *x, int bucket) {
    const struct bucket *it = &shards_of(x)->bucket[bucket];
    if (!it->shared) look_at_bucket(x, it);
}

void executor_look_at_shared(struct executor *x) {
    const struct shards *shards = shards_of(x);
    for (int b = 0; b < shards->buckets; b++)
        if (shards->bucket[b].shared) look_at_bucket(x, &shards->bucket[b]);
}

void executor_look_begin(struct executor *x) {
    if (looks_at_all(x))
        x->e.ops->device->clear(x->own, (size_t)(executor_looks(x) * FINITE_SUMS) * sizeof *x->own);
}

/* The first of the looks that found something, as the places of the whole step are numbered. */
static int first_bad(const struct executor *x) {
    const struct layout *layout = x->layout;
    int chunks = layout->chunks, stages = layout->size[AXIS_PIPELINE] * chunks, first = -1;
    for (int i = 0; i < executor_looks(x); i++) {
        if (finite_seen(x->found_own + i * FINITE_SUMS)) continue;
        int stage = layout_stage(layout, layout->index[AXIS_PIPELINE], i % chunks);
        int place = i < chunks ? stage : i < 2 * chunks ? 2 * stages - 1 - stage : 2 * stages;
        if (first < 0 || place < first) first = place;
    }
    return first;
}

int executor_first_bad(struct executor *x) {
    if (!looks_at_all(x)) return -1;
    size_t bytes = (size_t)(executor_looks(x) * FINITE_SUMS) * sizeof *x->found_own;
    x->e.ops->device->download(x->found_own, x->own, bytes);
    return first_bad(x);
}
