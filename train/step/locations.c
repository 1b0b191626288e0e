#include "train/step/locations.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------- creation */

static long places_of(const struct locations *l, enum payload payload) {
    return payload_is_narrow(payload) ? l->edges->count : l->num_layers + 1;
}

/* Activation sets of the chunks before `chunk`. */
static int activation_sets_before(const struct locations *l, int chunk) {
    int at = 0;
    for (int c = 0; c < chunk; c++) at += l->activation_sets[c];
    return at;
}

static void *take(struct arena *arena, long count, size_t size) {
    return arena_take(arena, (size_t)count * size);
}

/* Which of this rank's chunks computes each node. */
static void find_chunks(struct locations *l) {
    const struct layout *layout = l->layout;
    for (int node = -1; node < l->num_layers; node++) {
        int stage = layout_stage_of(layout, node);
        l->chunk_of[1 + node] = layout_rank_of(layout, stage) == layout->index[AXIS_PIPELINE]
                                    ? layout_chunk_of(layout, stage)
                                    : -1;
    }
}

void locations_lay_out(struct locations *l, struct arena *arena) {
    long nodes = l->num_layers + 1, edges = l->edges->count, micro_batches = l->micro_batches;
    l->buffer = take(arena, l->blocks + l->narrow_blocks, sizeof *l->buffer);
    for (int c = 0; c < PAYLOADS; c++)
        l->where[c] = take(arena, micro_batches * places_of(l, (enum payload)c), sizeof *l->where[c]);
    l->chunk_of = take(arena, nodes, sizeof *l->chunk_of);
    l->activation_set_of = take(arena, micro_batches * l->layout->chunks, sizeof *l->activation_set_of);
    l->micro_batch_of = take(arena, activation_sets_before(l, l->layout->chunks), sizeof *l->micro_batch_of);
    l->source = take(arena, nodes, sizeof *l->source);
    l->source_gradient = take(arena, nodes, sizeof *l->source_gradient);
    l->projected = take(arena, edges, sizeof *l->projected);
    l->projected_gradient = take(arena, edges, sizeof *l->projected_gradient);
    if (arena->base) find_chunks(l);
}

static void clear(int *x, long count) {
    memset(x, 0, (size_t)count * sizeof *x);
}

void locations_forget(struct locations *l) {
    for (int c = 0; c < PAYLOADS; c++) clear(l->where[c], l->micro_batches * places_of(l, (enum payload)c));
    for (int i = 0; i < l->blocks + l->narrow_blocks; i++)
        l->buffer[i].posted = false, l->buffer[i].mentioned = NULL;
    clear(l->activation_set_of, (long)l->micro_batches * l->layout->chunks);
    clear(l->micro_batch_of, activation_sets_before(l, l->layout->chunks));
}

/* ------------------------------------------------------------------------------------------- actions */

int locations_owner(const struct locations *l, enum payload payload, int buffer) {
    return payload_is_narrow(payload) ? l->blocks + buffer : buffer;
}

int locations_activation_set_owner(const struct locations *l, int chunk, int activation_set) {
    return l->blocks + l->narrow_blocks + activation_sets_before(l, chunk) + activation_set;
}

static int *place_of(const struct locations *l, enum payload payload, int micro_batch, int index) {
    return &l->where[payload]
                    [micro_batch * places_of(l, payload) + (payload_is_narrow(payload) ? index : 1 + index)];
}

static int *activation_set_of(const struct locations *l, int micro_batch, int chunk) {
    return &l->activation_set_of[micro_batch * l->layout->chunks + chunk];
}

static void hold(struct locations *l, const struct action *a) {
    int *at = place_of(l, a->payload, a->micro_batch, a->index);
    *at = 1 + a->buffer;
    l->buffer[locations_owner(l, a->payload, a->buffer)].mentioned = at;
}

/* What the buffer holds may be another buffer's by now. */
static void let_go(struct locations *l, const struct action *a) {
    struct buffer *b = &l->buffer[locations_owner(l, a->payload, a->buffer)];
    if (b->mentioned && *b->mentioned == 1 + a->buffer) *b->mentioned = 0;
    b->mentioned = NULL;
}

static void take_activation_set(struct locations *l, const struct action *a) {
    int *before = &l->micro_batch_of[activation_sets_before(l, a->chunk) + a->activation_set];
    if (*before) *activation_set_of(l, *before - 1, a->chunk) = 0;
    *before = 1 + a->micro_batch;
    *activation_set_of(l, a->micro_batch, a->chunk) = 1 + a->activation_set;
}

static void release_activation_set(struct locations *l, const struct action *a) {
    int *activation_set = activation_set_of(l, a->micro_batch, a->chunk);
    l->micro_batch_of[activation_sets_before(l, a->chunk) + *activation_set - 1] = 0;
    *activation_set = 0;
}

/* The gradient of a stage whose stage before is on this rank too is that one's from now on. */
static void turn(struct locations *l, const struct action *a) {
    const struct layout *layout = l->layout;
    int stage = layout_stage(layout, layout->index[AXIS_PIPELINE], a->chunk);
    struct span span = layout_span(layout, a->chunk, l->num_layers);
    if (!stage || !layout_turns(layout, stage - 1)) return;
    int *from = place_of(l, PAYLOAD_STREAM_GRADIENT, a->micro_batch, span.end - 1),
        *to = place_of(l, PAYLOAD_STREAM_GRADIENT, a->micro_batch, span.first - 1);
    *to = *from;
    *from = 0;
    l->buffer[locations_owner(l, PAYLOAD_STREAM_GRADIENT, *to - 1)].mentioned = to;
}

bool locations_last_backward(const struct locations *l, const struct action *a) {
    if (a->act != ACT_BACKWARD) return false; /* others may have no chunk */
    struct span span = layout_span(l->layout, a->chunk, l->num_layers);
    return a->end == (span.first ? span.first : -1);
}

void locations_begin(struct locations *l, const struct action *a) {
    if (act_kinds[a->act].holds) hold(l, a);
    if (a->act == ACT_FORWARD) take_activation_set(l, a);
}

void locations_end(struct locations *l, const struct action *a) {
    /* Nodes that were received are read on when they have been sent on; gradients are handed over, and may
     * come back to another chunk as other sums. */
    bool handed_over = a->act == ACT_SEND && a->buffer >= 0 && payload_goes_down(a->payload);
    if (handed_over || a->act == ACT_FREE) let_go(l, a);
    if (locations_last_backward(l, a)) {
        turn(l, a);
        release_activation_set(l, a);
    }
}

/* ------------------------------------------------------------------------------------------- looking up */

int locations_activation_set(const struct locations *l, int micro_batch, int chunk) {
    return *activation_set_of(l, micro_batch, chunk) - 1;
}

int locations_chunk(const struct locations *l, int node) {
    return l->chunk_of[1 + node];
}

real *locations_held(const struct locations *l, enum payload payload, int micro_batch, int index) {
    int buffer = *place_of(l, payload, micro_batch, index) - 1;
    return buffer < 0 ? NULL : l->buffer[locations_owner(l, payload, buffer)].x;
}

real *locations_own_output(const struct locations *l, int micro_batch, int node) {
    int chunk = locations_chunk(l, node);
    if (chunk < 0) return NULL;
    int activation_set = locations_activation_set(l, micro_batch, chunk);
    return activation_set < 0 ? NULL : model_output(l->model, chunk, activation_set, node);
}

real *locations_source(const struct locations *l, int micro_batch, int node) {
    real *received = locations_held(l, PAYLOAD_SOURCE, micro_batch, node);
    return received ? received : locations_own_output(l, micro_batch, node);
}

/* The lowest node that a chunk's layers read, its stream included. */
static int lowest_source(const struct locations *l, struct span span) {
    int lowest = span.first - 1;
    for (int e = l->edges->first[span.first]; e < l->edges->first[span.end]; e++)
        if (l->edges->edge[e].source < lowest) lowest = l->edges->edge[e].source;
    return lowest;
}

void locations_of_pass(struct locations *l, const struct action *a, struct pass *pass) {
    struct span span = layout_span(l->layout, a->chunk, l->num_layers);
    for (int node = lowest_source(l, span); node < span.end; node++) {
        bool inside = locations_chunk(l, node) == a->chunk;
        l->source[1 + node] = inside ? NULL : locations_source(l, a->micro_batch, node);
        l->source_gradient[1 + node] = locations_held(l, PAYLOAD_SOURCE_GRADIENT, a->micro_batch, node);
    }
    for (int e = l->edges->first[span.first]; e < l->edges->first[span.end]; e++) {
        l->projected[e] = locations_held(l, PAYLOAD_PROJECTED, a->micro_batch, e);
        l->projected_gradient[e] = locations_held(l, PAYLOAD_PROJECTED_GRADIENT, a->micro_batch, e);
    }
    pass->chunk = a->chunk;
    pass->activation_set = locations_activation_set(l, a->micro_batch, a->chunk);
    pass->source = l->source;
    pass->projected = l->projected;
    pass->source_gradient = l->source_gradient;
    pass->projected_gradient = l->projected_gradient;
}
