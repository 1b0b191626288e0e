#include "dist/schedule/private.h"
#include "kernels/base/status.h"

#include <stdlib.h>

/* The i-th pass of a rank in one direction. Micro-batches go through a rank's chunks in groups of as many as
 * there are ranks, so that a group's first has come round when its last has left; where they do not divide,
 * in groups as equal as can be of no fewer than that. */
static void pass_of_index(int ranks, int chunks, int micro_batches, int i, int *chunk, int *micro_batch) {
    long groups = micro_batches / ranks > 1 ? micro_batches / ranks : 1;
    long group =
        ((i / chunks + 1) * groups - 1) / micro_batches; /* group g: those from micro_batches·g/groups on */
    int first = (int)(micro_batches * group / groups),
        size = (int)(micro_batches * (group + 1) / groups) - first;
    int within = i - first * chunks;
    *chunk = within / size;
    *micro_batch = first + within % size;
}

static struct step step_at(int ranks, int chunks, int micro_batches, int rank, int i, bool backward) {
    int chunk, micro_batch;
    pass_of_index(ranks, chunks, micro_batches, i, &chunk, &micro_batch);
    if (backward) chunk = chunks - 1 - chunk;
    return (struct step){
        .rank = rank, .stage = rank + chunk * ranks, .micro_batch = micro_batch, .backward = backward};
}

/* A rank's passes: `warm_up` forward passes, then one forward and one backward in turn, then what is left. */
static void fill(struct step *step, int ranks, int chunks, int micro_batches, int rank, int warm_up,
                 bool forward_only) {
    int n = micro_batches * chunks, k = 0, backward = 0;
    for (int i = 0; i < n; i++) {
        step[k++] = step_at(ranks, chunks, micro_batches, rank, i, false);
        if (!forward_only && i >= warm_up)
            step[k++] = step_at(ranks, chunks, micro_batches, rank, backward++, true);
    }
    while (!forward_only && backward < n)
        step[k++] = step_at(ranks, chunks, micro_batches, rank, backward++, true);
}

/* Walks all passes as far as they can go, and puts them on their ranks' lists with their times; returns
 * whether they reach their ends. pass [ranks, passes]; filling [ranks]. */
static bool walk(struct order *order, const struct step *pass, int passes, int chunks, int micro_batches,
                 struct filling *filling, int *next, int *done, int *stack) {
    int ranks = order->ranks, stages = ranks * chunks, waiting = 0;
    long walked = 0;
    for (int i = 0; i < 2 * stages * micro_batches; i++) done[i] = -1;
    for (int r = 0; r < ranks; r++) {
        next[r] = 0;
        filling[r] = (struct filling){.step = order->step + (long)r * order->steps, .sets = filling[r].sets};
    }
    for (int r = ranks - 1; r >= 0; r--) stack[waiting++] = r;
    while (waiting) {
        int r = stack[--waiting];
        if (next[r] == passes) continue;
        const struct step *s = &pass[(long)r * passes + next[r]];
        int *forward = done + (long)s->micro_batch * stages,
            *backward = forward + (long)stages * micro_batches, needed = 0;
        if (s->backward)
            needed = s->stage == stages - 1 ? forward[s->stage] : backward[s->stage + 1];
        else if (s->stage)
            needed = forward[s->stage - 1];
        if (needed < 0) continue;
        (s->backward ? backward : forward)[s->stage] = filling_add(&filling[r], s, needed)->end;
        next[r]++;
        walked++;
        /* Whoever may have waited for this one looks again, and this rank goes on. */
        stack[waiting++] = s->backward ? (r + ranks - 1) % ranks : (r + 1) % ranks;
        stack[waiting++] = r;
    }
    return walked == (long)ranks * passes;
}

static int earlier(const void *a, const void *b) {
    const struct step *x = *(struct step *const *)a, *y = *(struct step *const *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

int order_sort(struct order *order) {
    order->sorted = NULL;
    for (int r = 0; r < order->ranks; r++) order->all += order->count[r];
    order->sorted = malloc((size_t)order->all * sizeof *order->sorted);
    if (!order->sorted) return -1;
    for (int r = 0, n = 0; r < order->ranks; r++)
        for (int i = 0; i < order->count[r]; i++)
            order->sorted[n++] = &order->step[(long)r * order->steps + i];
    qsort(order->sorted, (size_t)order->all, sizeof *order->sorted, earlier);
    return 0;
}

int order_create(int ranks, int chunks, int micro_batches, bool forward_only, const int *weight_sets,
                 struct order *out) {
    int n = micro_batches * chunks, passes = forward_only ? n : 2 * n, steps = weight_sets ? 3 * n : passes;
    size_t all = (size_t)ranks * (size_t)passes;
    *out = (struct order){.ranks = ranks,
                          .steps = steps,
                          .count = calloc((size_t)ranks, sizeof *out->count),
                          .step = malloc((size_t)ranks * (size_t)steps * sizeof *out->step)};
    struct step *pass = malloc(all * sizeof *pass);
    struct filling *filling = calloc((size_t)ranks, sizeof *filling);
    int *next = malloc((size_t)ranks * sizeof *next),
        *done = malloc(2 * (size_t)ranks * (size_t)n * sizeof *done);
    int *stack = malloc((all + 2 * (size_t)ranks + 2) * sizeof *stack);
    bool full = !out->count || !out->step || !pass || !filling || !next || !done || !stack, walked = false;
    for (int r = 0; !full && weight_sets && r < ranks; r++) filling[r].sets = weight_sets[r];
    /* Where groups are not as large as there are ranks, the usual warm-up may leave ranks waiting for each
     * other. One that takes in everything cannot: then all ranks go through the same order. */
    for (int more = 0; !full && !walked && more <= n; more++) {
        for (int r = 0; r < ranks; r++) {
            int warm_up = more + (chunks == 1 ? ranks - 1 - r : 2 * (ranks - 1 - r) + (chunks - 1) * ranks);
            fill(pass + (long)r * passes, ranks, chunks, micro_batches, r, warm_up, forward_only);
        }
        walked = walk(out, pass, passes, chunks, micro_batches, filling, next, done, stack);
    }
    for (int r = 0; walked && r < ranks; r++) {
        filling_end(&filling[r]);
        out->count[r] = filling[r].count;
    }
    if (walked && order_sort(out)) full = true;
    free(pass);
    free(filling);
    free(next);
    free(done);
    free(stack);
    if (walked && !full) return 0;
    order_free(out);
    return full ? gdn_fail(GDN_INTERNAL, "out of memory for a schedule of %d ranks", ranks)
                : gdn_fail(GDN_INTERNAL, "no order of %d micro-batches over %d ranks with %d chunks",
                           micro_batches, ranks, chunks);
}

void order_free(struct order *order) {
    free(order->count);
    free(order->step);
    free(order->sorted);
    *order = (struct order){0};
}
