/* Orders that follow from planned times: each rank, whenever it is free, does what is ready and comes first by
 * some precedence of passes; and where nothing is, gradients of weights that wait (Qi et al. 2024, whose V
 * comes out of it where forward passes, gradients of inputs and of weights take the same time). Which
 * precedence is best depends on the times: the steps' beginnings and ends are tried with all of them.
 *
 * Activation sets of a rank are bounded. It cannot stand still for that: forward passes of its first chunk
 * leave one for a second, so that whatever has come to the second chunk goes on to the last stage, whose
 * backward pass needs no set, and so back. */
#include "dist/schedule/private.h"
#include "kernels/base/status.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 2, KINDS = 2 * CHUNKS, PRECEDENCES = 24, WAYS = 4 * PRECEDENCES, TRIED = 4 };
static const int NEVER = INT_MAX;

/* What is tried. Kinds of passes are chunk 0's and 1's forward, then their backward ones. */
struct way {
    int precedence[KINDS]; /* the first first */
    bool patient;          /* gradients of weights are not begun where a pass is ready before half of them is done */
    bool at_once;          /* ordered as if messages took no time */
};

struct clock {
    struct step *step;
    int count, now;
    int next[KINDS];    /* micro-batch of the next pass of a kind */
    int held;           /* activation sets in use */
    int left;           /* backward passes that have left gradients of weights */
    int first, waiting; /* step of the first backward pass whose gradients of weights wait, and how many do */
};

struct walker {
    const struct layout *layout;
    const struct order_limits *limits;
    int ranks, chunks, stages, micro_batches, steps;
    bool forward_only;
    struct way way;
    struct clock *clock; /* [ranks] */
    int *done;           /* [2, stages, micro-batches] when passes end; NEVER: not known yet */
};

static int *done_at(const struct walker *w, bool backward, int stage, int micro_batch) {
    return &w->done[((long)backward * w->stages + stage) * w->micro_batches + micro_batch];
}

static struct stage_times times_of(const struct walker *w, int stage) {
    return w->limits->times ? w->limits->times[stage]
                            : (struct stage_times){FORWARD_TIME, INPUTS_TIME, WEIGHTS_TIME, 0, 0};
}

static int sets_of(const struct walker *w, int rank) {
    return w->limits->weight_sets ? w->limits->weight_sets[rank] : 0;
}

/* When a stage has what the pass of another one leaves for it. */
static int received(const struct walker *w, bool backward, int from, int m) {
    int done = *done_at(w, backward, from, m);
    if (done == NEVER || w->way.at_once || layout_turns(w->layout, backward ? from - 1 : from)) return done;
    return done + (backward ? times_of(w, from).down : times_of(w, from).up);
}

/* When a rank's next pass of a kind could begin, as far as others and its activation sets are concerned. */
static int ready_at(const struct walker *w, int rank, int kind) {
    const struct clock *c = &w->clock[rank];
    int chunk = kind % CHUNKS, m = c->next[kind], stage = layout_stage(w->layout, rank, chunk);
    bool backward = kind >= CHUNKS;
    if (m == w->micro_batches) return NEVER;
    if (backward)
        return stage == w->stages - 1 ? *done_at(w, false, stage, m)
               : *done_at(w, false, stage, m) == NEVER ? NEVER
                                                       : received(w, true, stage + 1, m);
    int spare = chunk < w->chunks - 1 ? 2 : 1;
    if (!w->forward_only && c->held + spare > w->limits->activation_sets[rank]) return NEVER;
    return stage ? received(w, false, stage - 1, m) : 0;
}

static void add(struct walker *w, int rank, struct step step, int begin, int time) {
    struct clock *c = &w->clock[rank];
    step.rank = rank;
    step.begin = begin;
    step.end = c->now = begin + time;
    c->step[c->count++] = step;
}

static bool leaves_weights(const struct step *step) {
    return step->backward && step->weight_set >= 0;
}

static void add_weights_of(struct walker *w, int rank, struct step step) {
    struct clock *c = &w->clock[rank];
    step.backward = false;
    step.weights = true;
    c->waiting--;
    add(w, rank, step, c->now, times_of(w, step.stage).weights);
}

/* Gradients of weights of the backward pass that has waited longest. */
static void add_weights(struct walker *w, int rank) {
    struct clock *c = &w->clock[rank];
    while (!leaves_weights(&c->step[c->first])) c->first++;
    add_weights_of(w, rank, c->step[c->first++]);
}

/* What waits after the last pass, the second chunk's first: its sums travel during the first one's. */
static void add_rest(struct walker *w, int rank) {
    struct clock *c = &w->clock[rank];
    int end = c->count;
    for (int chunk = w->chunks - 1; chunk >= 0; chunk--)
        for (int i = c->first; i < end; i++)
            if (leaves_weights(&c->step[i]) && layout_chunk_of(w->layout, c->step[i].stage) == chunk)
                add_weights_of(w, rank, c->step[i]);
}

static void add_pass(struct walker *w, int rank, int kind, int ready) {
    struct clock *c = &w->clock[rank];
    int stage = layout_stage(w->layout, rank, kind % CHUNKS), sets = sets_of(w, rank), m = c->next[kind]++;
    const struct stage_times times = times_of(w, stage);
    bool backward = kind >= CHUNKS, leaves = backward && sets;
    if (leaves && c->waiting == sets) add_weights(w, rank);
    /* Sets are taken and done in turn, so that a set is free once as many others have been taken. */
    int set = leaves ? c->left++ % sets : -1;
    struct step step = {.stage = stage, .micro_batch = m, .backward = backward, .weight_set = set};
    int time = !backward ? times.forward : times.inputs + (leaves ? 0 : times.weights);
    add(w, rank, step, ready > c->now ? ready : c->now, time);
    *done_at(w, backward, stage, m) = c->now;
    if (leaves) c->waiting++;
    c->held += backward ? -1 : 1;
}

/* What a rank does next, and when it could: a kind of pass, or KINDS for gradients of weights. */
static int next_of(const struct walker *w, int rank, int *when) {
    const struct clock *c = &w->clock[rank];
    int best = KINDS, earliest = NEVER;
    for (int i = 0; i < KINDS; i++) {
        int kind = w->way.precedence[i], ready = ready_at(w, rank, kind);
        if (ready < c->now) ready = c->now;
        if (ready < earliest) best = kind, earliest = ready;
    }
    *when = earliest;
    if (!c->waiting || earliest == c->now) return best;
    int time = times_of(w, c->step[c->count - 1].stage).weights;
    if (w->way.patient && earliest != NEVER && earliest - c->now < time / 2) return best;
    *when = c->now;
    return KINDS;
}

/* All ranks' lists; NEVER where they do not come to their ends, else when the last of them ends. */
static int walk(struct walker *w) {
    long passes = 0, all = (long)w->stages * w->micro_batches * (w->forward_only ? 1 : 2);
    int end = 0;
    for (long i = 0; i < 2L * w->stages * w->micro_batches; i++) w->done[i] = NEVER;
    for (int r = 0; r < w->ranks; r++) {
        struct clock *c = &w->clock[r];
        *c = (struct clock){.step = c->step};
        for (int kind = 0; kind < KINDS; kind++)
            if (kind % CHUNKS >= w->chunks || (w->forward_only && kind >= CHUNKS))
                c->next[kind] = w->micro_batches;
    }
    while (passes < all) {
        int rank = -1, first = NEVER, chosen = KINDS;
        for (int r = 0; r < w->ranks; r++) {
            int when, next = next_of(w, r, &when);
            if (when < first) rank = r, first = when, chosen = next;
        }
        if (rank < 0) return NEVER;
        if (chosen == KINDS) {
            add_weights(w, rank);
        } else {
            add_pass(w, rank, chosen, first);
            passes++;
        }
    }
    for (int r = 0; r < w->ranks; r++) {
        add_rest(w, r);
        if (w->clock[r].now > end) end = w->clock[r].now;
    }
    return end;
}

/* A rank's step gets its times, if what it needs is there. */
static bool take_time(struct walker *w, struct clock *c, struct step *s) {
    int time = s->end - s->begin, ready = 0;
    if (s->backward && s->stage < w->stages - 1) ready = received(w, true, s->stage + 1, s->micro_batch);
    if (!s->backward && !s->weights && s->stage) ready = received(w, false, s->stage - 1, s->micro_batch);
    if (ready == NEVER) return false;
    s->begin = ready > c->now ? ready : c->now;
    s->end = c->now = s->begin + time;
    if (!s->weights) *done_at(w, s->backward, s->stage, s->micro_batch) = s->end;
    return true;
}

/* The lists as they stand get their times, with messages; returns when the last of them ends. */
static int take_times(struct walker *w) {
    int end = 0;
    w->way.at_once = false;
    for (long i = 0; i < 2L * w->stages * w->micro_batches; i++) w->done[i] = NEVER;
    for (int r = 0; r < w->ranks; r++) w->clock[r].now = w->clock[r].first = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < w->ranks; r++) {
            struct clock *c = &w->clock[r];
            while (c->first < c->count && take_time(w, c, &c->step[c->first])) c->first++, moved = true;
        }
    }
    for (int r = 0; r < w->ranks; r++)
        if (w->clock[r].now > end) end = w->clock[r].now;
    return end;
}

/* The n-th precedence of the kinds. */
static void precede(int n, int kinds[KINDS]) {
    int left[KINDS] = {0, 1, 2, 3};
    for (int i = 0, count = KINDS; i < KINDS; i++, count--) {
        int k = n % count;
        n /= count;
        kinds[i] = left[k];
        memmove(&left[k], &left[k + 1], (size_t)(count - 1 - k) * sizeof *left);
    }
}

static struct way way_of(int n) {
    struct way way = {.patient = n % 2, .at_once = n / 2 % 2};
    precede(n / 4, way.precedence);
    return way;
}

/* The way that is shortest; the first of equals. */
static int walk_best(struct walker *w) {
    int best = NEVER, chosen = 0, micro_batches = w->micro_batches, some = TRIED * w->ranks;
    if (w->micro_batches > some) w->micro_batches = some;
    for (int n = 0; n < WAYS; n++) {
        w->way = way_of(n);
        if (walk(w) == NEVER) return NEVER;
        int end = take_times(w);
        if (end < best) best = end, chosen = n;
    }
    w->micro_batches = micro_batches;
    w->way = way_of(chosen);
    return walk(w) == NEVER ? NEVER : take_times(w);
}

int order_by_time(const struct layout *layout, int micro_batches, bool forward_only,
                  const struct order_limits *limits, struct order *out) {
    int ranks = layout->stage ? layout->size[AXIS_PIPELINE] : 1, chunks = layout->stage ? layout->chunks : 1;
    struct walker w = {.layout = layout,
                       .limits = limits,
                       .ranks = ranks,
                       .chunks = chunks,
                       .stages = ranks * chunks,
                       .micro_batches = micro_batches,
                       .steps = 3 * micro_batches * chunks,
                       .forward_only = forward_only};
    *out = (struct order){.ranks = ranks,
                          .steps = w.steps,
                          .count = calloc((size_t)ranks, sizeof *out->count),
                          .step = malloc((size_t)ranks * (size_t)w.steps * sizeof *out->step)};
    w.clock = calloc((size_t)ranks, sizeof *w.clock);
    w.done = malloc(2 * (size_t)w.stages * (size_t)micro_batches * sizeof *w.done);
    bool full = !out->count || !out->step || !w.clock || !w.done;
    for (int r = 0; !full && r < ranks; r++) w.clock[r].step = out->step + (long)r * w.steps;
    bool walked = !full && walk_best(&w) != NEVER;
    for (int r = 0; walked && r < ranks; r++) out->count[r] = w.clock[r].count;
    if (walked && order_sort(out)) full = true;
    free(w.clock);
    free(w.done);
    if (walked && !full) return 0;
    order_free(out);
    return full ? gdn_fail(GDN_INTERNAL, "out of memory for a schedule of %d ranks", ranks)
                : gdn_fail(GDN_INTERNAL, "no order of %d micro-batches over %d ranks with %d chunks by time",
                           micro_batches, ranks, chunks);
}
