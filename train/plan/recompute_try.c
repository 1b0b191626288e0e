/* Every figure comes from dry runs. Equal layers (same chunk, same connections into them) are tried once:
 * each combination of policies on one of them gives the bytes that it saves. A cost is in FLOP: those of
 * matrix products, and for everything else as many as take about the same time on a processor, whatever
 * machine this is, so that plans and runs make the same choice. */
#include "train/plan/recompute_try.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

bool try_allowed(const struct chooser *c, int combination) {
    return (c->layers_open || combination / POLICIES == 0) && (c->delta_open || combination % POLICIES == 0);
}

void try_set(const struct chooser *c, int layer, int combination) {
    struct recompute *policy = &c->policy[layer];
    *policy = c->fixed[layer];
    if (c->layers_open) policy->layer = (unsigned char)(combination / POLICIES);
    if (c->delta_open) policy->delta = (unsigned char)(combination % POLICIES);
}

/* ------------------------------------------------------------------------------------- which layers */

static const struct layout *layout_of(const struct chooser *c) {
    return &c->work->pipeline->layout[c->pipeline];
}

static int connections_into(const struct chooser *c, int layer) {
    const struct edges *edges = &c->work->pipeline->edges;
    return edges->first[layer + 1] - edges->first[layer];
}

/* The distances of connections into layers are a set that only grows with the layer, but for those that lie
 * above all layers: as many are the same ones. Which sources come from outside the chunk differs with the
 * place in it, and with that what passes over the edges; at the chunk's end nothing does. */
static bool same(const struct chooser *c, int a, struct span in_a, int b, struct span in_b) {
    const struct edges *edges = &c->work->pipeline->edges;
    if (in_a.first != in_b.first || connections_into(c, a) != connections_into(c, b)) return false;
    if ((a == in_a.first) != (b == in_b.first) || (a == in_a.end - 1) != (b == in_b.end - 1)) return false;
    for (int i = 0; i < connections_into(c, a); i++) {
        int source_a = edges->edge[edges->first[a] + i].source,
            source_b = edges->edge[edges->first[b] + i].source;
        if (a - source_a != b - source_b || (source_a < in_a.first) != (source_b < in_b.first)) return false;
    }
    return true;
}

int try_begin(struct chooser *c) {
    const struct layout *layout = layout_of(c);
    int layers = c->work->config->model.num_layers;
    size_t max = (size_t)layers;
    struct span *in = calloc(max, sizeof *in);
    bool all = (c->layer = calloc(max, sizeof *c->layer)) && (c->like = calloc(max, sizeof *c->like)) &&
               (c->activation_sets = calloc(max, sizeof *c->activation_sets)) &&
               (c->policy = calloc(max, sizeof *c->policy)) &&
               (c->option = calloc(max * COMBINATIONS, sizeof *c->option));
    for (int chunk = 0; in && all && chunk < layout->chunks; chunk++) {
        struct span span = layout_span(layout, chunk, layers);
        for (int l = span.first; l < span.end; l++) {
            in[c->count] = span;
            c->layer[c->count] = l;
            c->activation_sets[c->count] =
                c->work->pipeline->activation_sets[c->pipeline * layout->chunks + chunk];
            int like = 0;
            while (like < c->count && !same(c, c->layer[like], in[like], l, span)) like++;
            c->like[c->count++] = like;
        }
    }
    free(in);
    if (in && all) memcpy(c->policy, c->fixed, max * sizeof *c->policy);
    return in && all ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the choice of what is recomputed");
}

/* ------------------------------------------------------------------------------------------ dry runs */

static void raise_to(int64_t *max, int64_t value) {
    if (value > *max) *max = value;
}

static int64_t saved(const struct pass_costs *costs) {
    return (int64_t)costs->memory.activations + costs->memory.sources;
}

/* The bytes that one combination on one layer saves, for all layers like it: all others keep everything. */
static int try_layer(struct chooser *c, const struct rank_plan *rank, int place,
                     const struct pass_costs *base) {
    bool first = rank->layout.index[AXIS_TENSOR] == 0;
    for (int i = 1; i < COMBINATIONS; i++) {
        struct recompute_option *option = &c->option[place * COMBINATIONS + i];
        struct pass_costs with;
        if (!try_allowed(c, i)) continue;
        try_set(c, c->layer[place], i);
        TRY(rank_plan_sizes(rank, c->policy, &with));
        int64_t bytes = saved(&with) - saved(base);
        if (first || bytes > option->bytes) option->bytes = bytes;
    }
    try_set(c, c->layer[place], 0);
    return 0;
}

static void set_all(const struct chooser *c, int combination) {
    for (int place = 0; place < c->count; place++) try_set(c, c->layer[place], combination);
}

/* The workspace that a combination takes where any layer has it. */
static int try_shared(struct chooser *c, const struct rank_plan *rank, const struct pass_costs *base) {
    for (int i = 1; i < COMBINATIONS; i++) {
        struct pass_costs with;
        if (!try_allowed(c, i)) continue;
        set_all(c, i);
        TRY(rank_plan_sizes(rank, c->policy, &with));
        raise_to(&c->shared[i], with.memory.workspace - base->memory.workspace);
    }
    set_all(c, 0);
    return 0;
}

/* What a combination costs each layer when all layers have it: a layer on its own would still find in the
 * shared buffers what it wrote there on the way forward. So does the highest of the layers chosen where its
 * backward pass comes right after, which makes these costs a bound. */
static int try_all(struct chooser *c, const struct rank_plan *rank, const struct pass_costs *base) {
    for (int i = 1; i < COMBINATIONS; i++) {
        struct pass_costs with;
        if (!try_allowed(c, i)) continue;
        set_all(c, i);
        TRY(rank_plan_costs(rank, c->policy, &with));
        for (int place = 0; place < c->count; place++) {
            const struct action_cost *before = &base->layer[1 + c->layer[place]],
                                     *now = &with.layer[1 + c->layer[place]];
            double cost = now->flops - before->flops +
                          FLOP_PER_BYTE_SENT * (double)(now->bytes[AXIS_TENSOR] - before->bytes[AXIS_TENSOR]);
            double *max = &c->option[place * COMBINATIONS + i].cost;
            if (cost > *max) *max = cost;
        }
        pass_costs_free(&with);
    }
    set_all(c, 0);
    return 0;
}

static int try_each(struct chooser *c, const struct rank_plan *rank, const struct pass_costs *base) {
    TRY(try_shared(c, rank, base));
    for (int place = 0; place < c->count; place++)
        if (c->like[place] == place) TRY(try_layer(c, rank, place, base));
    return 0;
}

/* The memory that the policies as they are take, of the tensor index that takes most. */
static int note_taken(struct chooser *c, const struct rank_plan *rank, const struct pass_costs *costs) {
    struct memory memory;
    TRY(rank_plan_memory(rank, costs, &memory));
    raise_to(&c->taken, memory_sum(&memory));
    return 0;
}

typedef int measure(const struct rank_plan *rank, const struct recompute *policy, struct pass_costs *out);
typedef int trial(struct chooser *c, const struct rank_plan *rank, const struct pass_costs *costs);

/* Plans the rank at every tensor index with the policies as they are, its costs or its sizes alone, and tries
 * something with it. */
static int for_tensor_ranks(struct chooser *c, measure *take, trial *try) {
    for (int tensor = 0; tensor < c->work->size[AXIS_TENSOR]; tensor++) {
        struct rank_plan rank;
        struct pass_costs costs;
        TRY(rank_plan_create(c->work, tensor, c->pipeline, &rank));
        int status = take(&rank, c->policy, &costs);
        if (!status) {
            status = try(c, &rank, &costs);
            pass_costs_free(&costs);
        }
        rank_plan_free(&rank);
        TRY(status);
    }
    return 0;
}

int try_memory(struct chooser *c) {
    c->taken = 0;
    return for_tensor_ranks(c, rank_plan_sizes, note_taken);
}

int try_bytes(struct chooser *c) {
    TRY(for_tensor_ranks(c, rank_plan_sizes, try_each));
    for (int place = 0; place < c->count; place++)
        for (int i = 1; i < COMBINATIONS; i++)
            c->option[place * COMBINATIONS + i].bytes = c->option[c->like[place] * COMBINATIONS + i].bytes;
    return 0;
}

int try_costs(struct chooser *c) {
    TRY(for_tensor_ranks(c, rank_plan_costs, try_all));
    for (int place = 0; place < c->count; place++)
        for (int i = 1; i < COMBINATIONS; i++) {
            struct recompute_option *option = &c->option[place * COMBINATIONS + i];
            option->cost -= FLOP_PER_BYTE * (double)option->bytes / c->activation_sets[place] *
                            c->work->pipeline->micro_batches;
        }
    return 0;
}

void try_free(struct chooser *c) {
    free(c->layer);
    free(c->like);
    free(c->activation_sets);
    free(c->policy);
    free(c->option);
}
