#include "dist/verify/verify.h"
#include "dist/verify/private.h"
#include "kernels/base/status.h"

#include <stdlib.h>

/* --- What is known before the run. */

/* The gradient that an edge leaves at its source. */
struct arrival {
    int edge, source, target;
    int stage;   /* where its gradient is added to the source's sum */
    bool narrow; /* by UNPROJECT, before the stage's own backward pass */
};

static int by_arrival(const void *a, const void *b) {
    const struct arrival *x = a, *y = b;
    if (x->source != y->source) return x->source - y->source;
    if (x->stage != y->stage) return y->stage - x->stage;
    if (x->narrow != y->narrow) return x->narrow ? -1 : 1;
    return y->target - x->target;
}

/* The order in which later stages add to each node: by descending target, but that the gradient of a narrow
 * edge is added at its projector. */
static int find_places(struct verifier *c) {
    struct arrival *all = malloc((size_t)(c->edges->count + 1) * sizeof *all);
    if (!all) return gdn_fail(GDN_INTERNAL, "out of memory for checking a schedule");
    int n = 0, status = 0;
    for (int e = 0; e < c->edges->count && !status; e++) {
        const struct edge *edge = &c->edges->edge[e];
        int own = c->stage[1 + edge->source], target = c->stage[1 + edge->target],
            by = c->routes->projector[e];
        c->place[e] = 0;
        if (by >= 0 && (by < own || by >= target ||
                        layout_rank_of(c->layout, target) == layout_rank_of(c->layout, by)))
            status = gdn_fail(
                GDN_INTERNAL,
                "schedule: edge %d from node %d (stage %d) to layer %d (stage %d) cannot be projected "
                "by stage %d",
                e, edge->source, own, edge->target, target, by);
        if (edge_set_has(c->active, e) && target > own)
            all[n++] = (struct arrival){.edge = e,
                                        .source = edge->source,
                                        .target = edge->target,
                                        .stage = by >= 0 ? by : target,
                                        .narrow = by >= 0};
    }
    qsort(all, (size_t)n, sizeof *all, by_arrival);
    for (int i = 0; i < n; i++) c->place[all[i].edge] = ++c->total[1 + all[i].source];
    free(all);
    return status;
}

static int buckets_of(const struct verifier *c, int rank) {
    return c->options->shards ? c->options->shards[rank].buckets : 0;
}

/* Memory, zeroed; notes where there is none. */
static void *get(size_t count, size_t size, bool *full) {
    void *p = calloc(count + 1, size);
    if (!p) *full = true;
    return p;
}

static bool reserve(struct verifier *c) {
    bool full = false;
    size_t ranks = (size_t)c->ranks, stages = (size_t)c->stages, nodes = (size_t)c->num_layers + 1;
    size_t passes = stages * (size_t)c->micro_batches;
    c->span = get(stages, sizeof *c->span, &full);
    c->stage = get(nodes, sizeof *c->stage, &full);
    c->place = get((size_t)c->edges->count, sizeof *c->place, &full);
    c->total = get(nodes, sizeof *c->total, &full);
    c->message = get((size_t)c->schedule->messages, sizeof *c->message, &full);
    c->blocks = get(ranks, sizeof *c->blocks, &full);
    c->narrow_blocks = get(ranks, sizeof *c->narrow_blocks, &full);
    c->blocks_by_content = get(ranks, sizeof *c->blocks_by_content, &full);
    c->narrow_by_content = get(ranks, sizeof *c->narrow_by_content, &full);
    c->saved = get(stages, sizeof *c->saved, &full);
    c->forwards = get(passes, sizeof *c->forwards, &full);
    c->layer = get(passes, sizeof *c->layer, &full);
    c->weights = get(passes, sizeof *c->weights, &full);
    c->weight_set = get(ranks, sizeof *c->weight_set, &full);
    c->bucket = get(ranks, sizeof *c->bucket, &full);
    c->in_flight = get(ranks, sizeof *c->in_flight, &full);
    c->shared = get(ranks, sizeof *c->shared, &full);
    c->normed = get(ranks, sizeof *c->normed, &full);
    c->at = get(ranks, sizeof *c->at, &full);
    for (int r = 0; r < c->ranks && !full; r++) {
        c->blocks[r] = get((size_t)c->schedule->blocks[r], sizeof **c->blocks, &full);
        c->narrow_blocks[r] = get((size_t)c->schedule->narrow_blocks[r], sizeof **c->narrow_blocks, &full);
        c->weight_set[r] = get((size_t)c->schedule->weight_sets[r], sizeof **c->weight_set, &full);
        c->bucket[r] = get((size_t)buckets_of(c, r), sizeof **c->bucket, &full);
        if (lookup_reserve(&c->blocks_by_content[r], c->schedule->blocks[r])) full = true;
        if (lookup_reserve(&c->narrow_by_content[r], c->schedule->narrow_blocks[r])) full = true;
    }
    for (int s = 0; s < c->stages && !full; s++)
        c->saved[s] = get((size_t)verify_activation_sets(c, s), sizeof **c->saved, &full);
    return !full;
}

static void release(struct verifier *c) {
    for (int r = 0; r < c->ranks; r++) {
        if (c->blocks) free(c->blocks[r]);
        if (c->narrow_blocks) free(c->narrow_blocks[r]);
        if (c->bucket) free(c->bucket[r]);
        if (c->weight_set) free(c->weight_set[r]);
        if (c->blocks_by_content) lookup_free(&c->blocks_by_content[r]);
        if (c->narrow_by_content) lookup_free(&c->narrow_by_content[r]);
    }
    for (int s = 0; c->saved && s < c->stages; s++) free(c->saved[s]);
    void *all[] = {c->span,
                   c->stage,
                   c->place,
                   c->total,
                   c->message,
                   c->blocks,
                   c->narrow_blocks,
                   c->saved,
                   c->layer,
                   c->weights,
                   c->weight_set,
                   c->forwards,
                   c->bucket,
                   c->shared,
                   c->in_flight,
                   c->normed,
                   c->at,
                   c->blocks_by_content,
                   c->narrow_by_content};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void begin(struct verifier *c) {
    for (int s = 0; s < c->stages; s++) {
        c->span[s] = c->layout->stage ? c->layout->stage[s] : (struct span){0, c->num_layers};
        for (int n = c->span[s].first; n < c->span[s].end; n++) c->stage[1 + n] = s;
        for (int i = 0; i < verify_activation_sets(c, s); i++)
            c->saved[s][i] = (struct saved){.micro_batch = -1, .message = -1};
        for (int m = 0; m < c->micro_batches; m++) {
            c->forwards[s * c->micro_batches + m] = -1;
            c->layer[s * c->micro_batches + m] = c->weights[s * c->micro_batches + m] = stage_top(c, s) + 1;
        }
    }
    c->stage[0] = 0;
}

/* --- The run. */

/* Two or more ranks wait for each other: says so of the first. */
static int deadlock(const struct verifier *c) {
    for (int r = 0; r < c->ranks; r++) {
        if (c->at[r] == c->schedule->rank[r].count) continue;
        const struct action *a = &c->schedule->rank[r].action[c->at[r]];
        int other = a->peer;
        for (int o = 0; other < 0 && o < c->ranks;
             o++) /* for a FREE or a collective: whoever else is stuck */
            if (o != r && c->at[o] < c->schedule->rank[o].count) other = o;
        if (other < 0) return verify_wrong(c, r, c->at[r], "deadlock: waits for ever");
        if (c->at[other] == c->schedule->rank[other].count)
            return verify_wrong(c, r, c->at[r],
                                "deadlock: waits for ever, pipeline rank %d has come to its end", other);
        char text[160];
        action_text(&c->schedule->rank[other].action[c->at[other]], text);
        return verify_wrong(c, r, c->at[r],
                            "deadlock: waits for ever, as does pipeline rank %d at action %d (%s)", other,
                            c->at[other], text);
    }
    return 0;
}

/* Runs all lists against each other as far as they go. */
static int run(struct verifier *c) {
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < c->ranks; r++)
            while (c->at[r] < c->schedule->rank[r].count && verify_ready(c, r)) {
                TRY(verify_action(c, r));
                c->at[r]++;
                moved = true;
            }
    }
    return deadlock(c);
}

/* No more micro-batches' gradients of weights may wait than was said. */
static int verify_weight_sets(const struct verifier *c) {
    for (int r = 0; r < c->ranks; r++) {
        int most = c->options->weight_sets ? c->options->weight_sets[r] : 0;
        if (c->schedule->weight_sets[r] < 0 || c->schedule->weight_sets[r] > most)
            return verify_wrong(c, r, -1, "%d weight sets, of at most %d", c->schedule->weight_sets[r], most);
    }
    return 0;
}

static int verify_all(struct verifier *c) {
    TRY(verify_weight_sets(c));
    if (!reserve(c))
        return gdn_fail(GDN_INTERNAL, "out of memory for checking a schedule of %d ranks", c->ranks);
    begin(c);
    TRY(find_places(c));
    TRY(verify_messages(c));
    TRY(run(c));
    return verify_end(c);
}

int schedule_verify(const struct edges *edges, const struct edge_set *active, const struct routes *routes,
                    const struct layout *layout, const struct schedule_options *options,
                    const struct schedule *schedule) {
    struct verifier c = {.edges = edges,
                         .routes = routes,
                         .layout = layout,
                         .options = options,
                         .schedule = schedule,
                         .active = active,
                         .ranks = layout->stage ? layout->size[AXIS_PIPELINE] : 1,
                         .chunks = layout->stage ? layout->chunks : 1,
                         .num_layers = options->num_layers,
                         .micro_batches = options->micro_batches};
    c.stages = c.ranks * c.chunks;
    if (schedule->ranks != c.ranks)
        return gdn_fail(GDN_INTERNAL, "the schedule is for %d pipeline ranks, not %d", schedule->ranks,
                        c.ranks);
    int status = verify_all(&c);
    release(&c);
    return status;
}
