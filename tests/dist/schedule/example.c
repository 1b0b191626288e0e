#include "tests/dist/schedule/example.h"
#include "kernels/base/random.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_EDGES = 6 * 128 };

/* Does chance leave out the edge? One of so many; 0: never. */
static bool chosen(const struct shape *shape, const char *what, int layer, int distance, int of) {
    uint64_t at = (uint64_t)(layer * 1000 + distance);
    return of && random_bits(shape->seed, random_name(what), at) % (uint64_t)of == 0;
}

static void make_edges(const struct shape *shape, struct example *out) {
    struct edge list[MOST_EDGES] = {0};
    bool has[MOST_EDGES];
    int count = 0, active = shape->active ? shape->active : 6;
    for (int l = 0; l < shape->layers; l++)
        for (int i = 0; i < 6 && shape->distances[i] && shape->distances[i] <= l + (shape->embedding ? 1 : 0);
             i++) {
            if (chosen(shape, "left out", l, shape->distances[i], shape->left_out)) continue;
            list[count++] = (struct edge){.target = l, .source = l - shape->distances[i], .scale = 1};
        }
    if (edges_of(list, count, shape->layers, &out->edges)) abort();
    for (int e = 0; e < count; e++) {
        const struct edge *edge = &out->edges.edge[e];
        has[e] = !chosen(shape, "inactive", edge->target, edge->distance, shape->inactive);
        for (int i = active; i < 6; i++)
            if (shape->distances[i] == edge->distance) has[e] = false;
    }
    if (edge_set_create(&out->edges, has, &out->active)) abort();
}

/* Buckets as rows of a rank's layers could fill them: complete at layers in descending order, some shared. */
static void make_shards(const struct shape *shape, struct example *out) {
    int ranks = shape->pipeline, stages = ranks * shape->chunks;
    out->shards = calloc((size_t)ranks, sizeof *out->shards);
    for (int r = 0; r < ranks; r++) {
        struct shards *shards = &out->shards[r];
        int layers[64], n = 0;
        if (r == layout_rank_of(&out->layout, stages - 1)) layers[n++] = shape->layers;
        for (int s = stages - 1; s >= 0; s--)
            for (int l = out->stage[s].end - 1; l >= out->stage[s].first && layout_rank_of(&out->layout, s) == r; l--) layers[n++] = l;
        if (r == 0) layers[n++] = -1;
        shards->buckets = shape->buckets;
        shards->bucket = calloc((size_t)shape->buckets, sizeof *shards->bucket);
        for (int b = 0; b < shape->buckets; b++) {
            uint64_t bits = random_bits(shape->seed, (uint64_t)r, (uint64_t)b);
            shards->bucket[b].ready = layers[b * n / shape->buckets];                    /* descending */
            if (bits % 5 == 0) shards->bucket[b].ready = layers[bits / 5 % (uint64_t)n]; /* of another zone */
            shards->bucket[b].shared = shape->share && bits / 1000 % 4 == 0;
        }
        /* A rank's last bucket, so that its gradients are all in some bucket. */
        shards->bucket[shape->buckets - 1].ready = layers[n - 1];
    }
}

void example_routes(const struct shape *shape, struct example *out) {
    *out = (struct example){.shape = *shape};
    make_edges(shape, out);
    int stages = shape->pipeline * shape->chunks;
    for (int s = 0; s < stages; s++) {
        out->stage[s].first = s ? out->stage[s - 1].end : 0;
        out->stage[s].end = shape->ends[0] ? shape->ends[s] : shape->layers * (s + 1) / stages;
    }
    out->layout = layout_full();
    out->layout.size[AXIS_PIPELINE] = shape->pipeline;
    out->layout.chunks = shape->chunks;
    out->layout.v = shape->v;
    if (stages > 1) out->layout.stage = out->stage;
    out->layout.narrow = shape->narrow;
    struct route_widths widths = {.narrow = shape->narrow, .node = shape->node, .edge = shape->edge};
    if (routes_create(&out->edges, &out->active, &out->layout, &widths, &out->routes)) abort();
}

void example_schedule(const struct shape *shape, struct example *out) {
    example_routes(shape, out);
    if (shape->buckets) make_shards(shape, out);
    out->options = (struct schedule_options){.micro_batches = shape->micro_batches,
                                             .num_layers = shape->layers,
                                             .forward_only = shape->forward_only,
                                             .overlap = shape->overlap,
                                             .shards = out->shards,
                                             .share = shape->share,
                                             .weight_sets = shape->weight_sets ? out->weight_sets : NULL,
                                             .activation_sets = shape->in_flight ? out->activation_sets : NULL};
    for (int r = 0; r < shape->pipeline; r++)
        out->weight_sets[r] = shape->v || shape->in_flight || r >= shape->weight_sets ? shape->weight_sets : r;
    for (int r = 0; r < shape->pipeline; r++) out->activation_sets[r] = shape->in_flight;
    if (schedule_create(&out->edges, &out->routes, &out->layout, &out->options, &out->schedule)) {
        fprintf(stderr, "%s\n", gdn_failure());
        abort();
    }
}

void example_free(struct example *example) {
    schedule_free(&example->schedule);
    routes_free(&example->routes);
    for (int r = 0; example->shards && r < example->shape.pipeline; r++) free(example->shards[r].bucket);
    free(example->shards);
    edge_set_free(&example->active);
    edges_free(&example->edges);
}

/* The n-th case's k-th number, in [0, below). */
static int draw(unsigned seed, unsigned n, unsigned k, int below) {
    return (int)(random_bits(seed, n, k) % (uint64_t)below);
}

struct shape example_random(unsigned seed, unsigned n) {
    unsigned k = 0;
#define DRAW(below) draw(seed, n, k++, below)
    struct shape shape = {.seed = seed + n};
    shape.pipeline = 1 + DRAW(8);
    shape.chunks = 1 + DRAW(4);
    int stages = shape.pipeline * shape.chunks;
    shape.layers = stages + DRAW(41 - stages);
    for (int s = 0, end = 0; s < stages; s++) { /* the stages after this one need a layer each */
        int max = shape.layers - end - (stages - 1 - s);
        end += s == stages - 1 ? max : DRAW(3) ? 1 + DRAW(max < 3 ? max : 3) : 1 + DRAW(max);
        shape.ends[s] = end;
    }
    for (int i = 0, d = 0, count = DRAW(7); i < count; i++) {
        int max = DRAW(2) ? 2 : 8;
        shape.distances[i] = d += 1 + DRAW(max);
    }
    shape.embedding = DRAW(2);
    shape.active = DRAW(2) ? 0 : 1 + DRAW(6);
    shape.left_out = DRAW(3) ? 0 : 2 + DRAW(6);
    shape.inactive = DRAW(3) ? 0 : 2 + DRAW(6);
    shape.micro_batches = 1 + DRAW(20);
    shape.narrow = DRAW(2);
    shape.node = 16;
    shape.edge = 1 + DRAW(16);
    shape.buckets = DRAW(3) ? 1 + DRAW(10) : 0;
    shape.overlap = DRAW(2);
    shape.share = DRAW(2);
    shape.forward_only = DRAW(6) == 0;
    if (shape.chunks == 2 && shape.pipeline > 1) shape.v = DRAW(3);
    if (shape.chunks == 1 || shape.v) shape.weight_sets = DRAW(9);
    if ((shape.chunks == 1 && !DRAW(3)) || (shape.v && DRAW(3))) shape.in_flight = 2 + DRAW(12);
    return shape;
}

void example_print(const struct shape *s) {
    fprintf(stderr,
            "layers %d pipeline %d chunks %d v %d in_flight %d micro-batches %d active %d left_out %d inactive %d embedding %d "
            "narrow %d edge %ld "
            "buckets %d overlap %d share %d forward_only %d weight_sets %d distances",
            s->layers, s->pipeline, s->chunks, s->v, s->in_flight, s->micro_batches, s->active, s->left_out, s->inactive,
            s->embedding, s->narrow, s->edge, s->buckets, s->overlap, s->share, s->forward_only,
            s->weight_sets);
    for (int i = 0; i < 6 && s->distances[i]; i++) fprintf(stderr, " %d", s->distances[i]);
    fprintf(stderr, " ends");
    for (int i = 0; s->ends[0] && i < s->pipeline * s->chunks; i++) fprintf(stderr, " %d", s->ends[i]);
    fprintf(stderr, "\n");
}

int example_check(const struct example *e) {
    return schedule_verify(&e->edges, &e->active, &e->routes, &e->layout, &e->options, &e->schedule);
}

int example_edge(const struct example *example, int source, int target) {
    for (int e = 0; e < example->edges.count; e++)
        if (example->edges.edge[e].source == source && example->edges.edge[e].target == target) return e;
    abort();
}

/* How long an action takes: a forward pass 1, a backward pass 2, of which gradients of weights are 1. */
static int time_of(const struct action *a) {
    if (a->act == ACT_BACKWARD) return a->weight_set < 0 ? 2 : 1;
    return a->act == ACT_FORWARD || a->act == ACT_WEIGHTS;
}

int example_makespan(const struct example *e) {
    int ranks = e->shape.pipeline, messages = e->schedule.messages, longest = 0;
    int *at = calloc((size_t)ranks, sizeof *at), *clock = calloc((size_t)ranks, sizeof *clock);
    int *sent = malloc((size_t)(messages + 1) * sizeof *sent),
        *begun = malloc((size_t)(messages + 1) * sizeof *begun);
    int *from = malloc(1000 * (size_t)ranks * sizeof *from); /* message last sent from a block */
    for (int k = 0; k < messages; k++) sent[k] = begun[k] = -1;
    for (int i = 0; i < 1000 * ranks; i++) from[i] = -1;
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < ranks; r++)
            for (; at[r] < e->schedule.rank[r].count; at[r]++) {
                const struct action *a = &e->schedule.rank[r].action[at[r]];
                int *last = &from[r * 1000 + (a->buffer < 0 ? 999 : a->buffer)], wait = 0;
                if (a->act == ACT_RECEIVE && begun[a->message] < 0) begun[a->message] = clock[r];
                if (a->act == ACT_RECEIVE && (wait = sent[a->message]) < 0) break;
                if (a->act == ACT_FREE && *last >= 0 && (wait = begun[*last]) < 0) break;
                if (clock[r] < wait) clock[r] = wait;
                if (a->act == ACT_POST) begun[a->message] = clock[r];
                if (a->act == ACT_SEND) sent[a->message] = clock[r], *last = a->message;
                if (a->act == ACT_FREE) *last = -1;
                clock[r] += time_of(a);
                moved = true;
            }
    }
    for (int r = 0; r < ranks; r++) {
        if (at[r] != e->schedule.rank[r].count) abort(); /* they wait for each other */
        if (longest < clock[r]) longest = clock[r];
    }
    free(at), free(clock), free(sent), free(begun), free(from);
    return longest;
}
