/* Buffers that layers computing again share are paid once, whichever layers do; so each set of policies that
 * may be used at all is solved for itself, with that much less memory (recompute_solve), and the cheapest
 * wins. */
#include "train/plan/recompute_auto.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/plan/recompute_try.h"

/* The options that a set of policies leaves: none above the combination `max` in either part. Others are as
 * POLICY_NONE, which comes first and so is taken. */
static void limit(const struct chooser *c, int max, struct recompute_option *out) {
    for (int place = 0; place < c->count; place++)
        for (int i = 0; i < COMBINATIONS; i++) {
            bool may = try_allowed(c, i) && i / POLICIES <= max / POLICIES && i % POLICIES <= max % POLICIES;
            out[place * COMBINATIONS + i] =
                may ? c->option[place * COMBINATIONS + i] : (struct recompute_option){0};
        }
}

/* Workspace of layers with different policies up to these. */
static int64_t shared_up_to(const struct chooser *c, int max) {
    int64_t bytes = 0;
    for (int i = 0; i < COMBINATIONS; i++)
        if (i / POLICIES <= max / POLICIES && i % POLICIES <= max % POLICIES && c->shared[i] > bytes)
            bytes = c->shared[i];
    return bytes;
}

struct solution {
    bool fits, any;
    double cost;
    int64_t bytes;         /* more than without */
    unsigned char *chosen; /* [count] combinations */
};

static int64_t bytes_of(const struct chooser *c, const unsigned char *chosen) {
    int64_t bytes = 0;
    for (int place = 0; place < c->count; place++)
        bytes += c->option[place * COMBINATIONS + chosen[place]].bytes;
    return bytes;
}

/* Is it better than what was found so far? */
static bool better(const struct solution *a, const struct solution *than) {
    if (!than->any || a->fits != than->fits) return !than->any || a->fits;
    return a->fits ? a->cost < than->cost : a->bytes < than->bytes;
}

static int solve(const struct chooser *c, int64_t budget, struct recompute_option *options,
                 unsigned char *chosen, struct solution *best) {
    best->any = false;
    for (int max = 0; max < COMBINATIONS; max++) {
        struct solution found = {.any = true, .chosen = best->chosen};
        int64_t shared = shared_up_to(c, max);
        if (!try_allowed(c, max)) continue;
        limit(c, max, options);
        TRY(recompute_solve(options, c->count, COMBINATIONS, budget - shared, chosen, &found.cost,
                            &found.fits));
        found.bytes = bytes_of(c, chosen) + shared;
        if (!better(&found, best)) continue;
        memcpy(found.chosen, chosen, (size_t)c->count);
        *best = found;
    }
    return 0;
}

/* NULL: all layers as they were. */
static void set_policies(const struct chooser *c, const unsigned char *chosen) {
    for (int place = 0; place < c->count; place++) try_set(c, c->layer[place], chosen ? chosen[place] : 0);
}

/* Solves, and where layers that were taken for alike are not quite, again with as much less. */
static int choose(struct chooser *c, struct recompute_option *options, unsigned char *chosen,
                  struct solution *best) {
    int64_t budget = c->available - c->taken;
    for (int round = 0; round < 8; round++) {
        TRY(solve(c, budget, options, chosen, best));
        set_policies(c, best->chosen);
        if (!best->fits) return 0;
        TRY(try_memory(c));
        if (c->taken <= c->available) return 0;
        budget -= c->taken - c->available;
    }
    return 0;
}

/* Costs take most of the time and matter only where something fits, which bytes alone tell. */
static int choose_cheapest(struct chooser *c, struct recompute_option *options, unsigned char *chosen,
                           struct solution *best) {
    int64_t taken = c->taken;
    TRY(try_bytes(c));
    TRY(solve(c, c->available - taken, options, chosen, best));
    if (!best->fits) {
        set_policies(c, best->chosen);
        TRY(try_memory(c));
        if (c->taken > c->available) return 0;
    }
    c->taken = taken;
    set_policies(c, NULL);
    TRY(try_costs(c));
    return choose(c, options, chosen, best);
}

static int run_chooser(struct chooser *c, double *ratio) {
    TRY(try_begin(c));
    TRY(try_memory(c));
    *ratio = (double)c->taken / (double)c->available;
    if (c->taken <= c->available) return 0;
    struct recompute_option *options = calloc((size_t)c->count * COMBINATIONS, sizeof *options);
    unsigned char *chosen = calloc(2 * (size_t)c->count, 1);
    struct solution best = {.chosen = chosen ? chosen + c->count : NULL};
    int status = options && chosen
                     ? choose_cheapest(c, options, chosen, &best)
                     : gdn_fail(GDN_INTERNAL, "out of memory for the choice of what is recomputed");
    free(options);
    free(chosen);
    return status;
}

int recompute_auto(const struct rank_work *work, int pipeline, int64_t available, struct recompute *policy,
                   double *ratio) {
    const struct train_config *train = &work->config->train;
    struct chooser c = {
        .work = work,
        .pipeline = pipeline,
        .available = available,
        .fixed = policy,
        .layers_open = train->recompute == RECOMPUTE_AUTO,
        .delta_open = train->recompute_delta == RECOMPUTE_AUTO ||
                      (train->recompute_delta == RECOMPUTE_SAME && train->recompute == RECOMPUTE_AUTO),
    };
    *ratio = 0;
    int status = run_chooser(&c, ratio);
    for (int place = 0; !status && place < c.count; place++)
        policy[c.layer[place]] = c.policy[c.layer[place]];
    try_free(&c);
    return status;
}
