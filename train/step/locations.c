#include "train/step/locations.h"

/* ------------------------------------------------------------------------------------------- creation */

static long entries(const struct locations *l, enum cargo cargo) {
    return cargo_is_strip(cargo) ? l->edges->count : l->num_layers + 1;
}

/* Slots of the chunks before `chunk`. */
static int slots_before(const struct locations *l, int chunk) {
    int at = 0;
    for (int c = 0; c < chunk; c++) at += l->slots[c];
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
        l->chunk_of[1 + node] =
            stage % layout->pipeline == layout->pipeline_index ? stage / layout->pipeline : -1;
    }
}

void locations_lay_out(struct locations *l, struct arena *arena) {
    long nodes = l->num_layers + 1, edges = l->edges->count, micros = l->micro_batches;
    l->buffer = take(arena, l->blocks + l->strips, sizeof *l->buffer);
    for (int c = 0; c < CARGOS; c++)
        l->where[c] = take(arena, micros * entries(l, (enum cargo)c), sizeof *l->where[c]);
    l->chunk_of = take(arena, nodes, sizeof *l->chunk_of);
    l->slot_of = take(arena, micros * l->layout->chunks, sizeof *l->slot_of);
    l->micro_of = take(arena, slots_before(l, l->layout->chunks), sizeof *l->micro_of);
    l->node = take(arena, nodes, sizeof *l->node);
    l->deposit = take(arena, nodes, sizeof *l->deposit);
    l->strip = take(arena, edges, sizeof *l->strip);
    l->strip_gradient = take(arena, edges, sizeof *l->strip_gradient);
    if (arena->base) find_chunks(l);
}

void locations_forget(struct locations *l) {
    for (int c = 0; c < CARGOS; c++)
        for (long i = 0; i < l->micro_batches * entries(l, (enum cargo)c); i++) l->where[c][i] = -1;
    for (int i = 0; i < l->blocks + l->strips; i++)
        l->buffer[i].posted = false, l->buffer[i].mentioned = NULL;
    for (int i = 0; i < l->micro_batches * l->layout->chunks; i++) l->slot_of[i] = -1;
    for (int i = 0; i < slots_before(l, l->layout->chunks); i++) l->micro_of[i] = -1;
}

/* ------------------------------------------------------------------------------------------- actions */

int locations_holder(const struct locations *l, enum cargo cargo, int buffer) {
    return cargo_is_strip(cargo) ? l->blocks + buffer : buffer;
}

int locations_slot_holder(const struct locations *l, int chunk, int slot) {
    return l->blocks + l->strips + slots_before(l, chunk) + slot;
}

static int *entry(const struct locations *l, enum cargo cargo, int micro, int index) {
    return &l->where[cargo][micro * entries(l, cargo) + (cargo_is_strip(cargo) ? index : 1 + index)];
}

static int *slot_of(const struct locations *l, int micro, int chunk) {
    return &l->slot_of[micro * l->layout->chunks + chunk];
}

static void hold(struct locations *l, const struct action *a) {
    int *at = entry(l, a->cargo, a->micro, a->index);
    *at = a->buffer;
    l->buffer[locations_holder(l, a->cargo, a->buffer)].mentioned = at;
}

/* What the buffer holds may be another buffer's by now. */
static void let_go(struct locations *l, const struct action *a) {
    struct buffer *b = &l->buffer[locations_holder(l, a->cargo, a->buffer)];
    if (b->mentioned && *b->mentioned == a->buffer) *b->mentioned = -1;
    b->mentioned = NULL;
}

static void take_slot(struct locations *l, const struct action *a) {
    int *before = &l->micro_of[slots_before(l, a->chunk) + a->slot];
    if (*before >= 0) *slot_of(l, *before, a->chunk) = -1;
    *before = a->micro;
    *slot_of(l, a->micro, a->chunk) = a->slot;
}

static void give_slot_back(struct locations *l, const struct action *a) {
    int *slot = slot_of(l, a->micro, a->chunk);
    l->micro_of[slots_before(l, a->chunk) + *slot] = -1;
    *slot = -1;
}

bool locations_last_backward(const struct locations *l, const struct action *a) {
    struct span span = layout_span(l->layout, a->chunk, l->num_layers);
    return a->act == ACT_BACKWARD && a->end == (span.first ? span.first : -1);
}

void locations_begin(struct locations *l, const struct action *a) {
    if (a->act == ACT_RECEIVE || a->act == ACT_TAKE || a->act == ACT_PROJECT) hold(l, a);
    if (a->act == ACT_FORWARD) take_slot(l, a);
}

void locations_end(struct locations *l, const struct action *a) {
    /* Nodes that were received are read on when they have been sent on; gradients are handed over, and may
     * come back to another chunk as other sums. */
    bool handed_over = a->act == ACT_SEND && a->buffer >= 0 && cargo_goes_down(a->cargo);
    if (handed_over || a->act == ACT_FREE) let_go(l, a);
    if (locations_last_backward(l, a)) give_slot_back(l, a);
}

/* ------------------------------------------------------------------------------------------- looking up */

int locations_slot(const struct locations *l, int micro, int chunk) {
    return *slot_of(l, micro, chunk);
}

int locations_chunk(const struct locations *l, int node) {
    return l->chunk_of[1 + node];
}

real *locations_held(const struct locations *l, enum cargo cargo, int micro, int index) {
    int buffer = *entry(l, cargo, micro, index);
    return buffer < 0 ? NULL : l->buffer[locations_holder(l, cargo, buffer)].x;
}

real *locations_own_output(const struct locations *l, int micro, int node) {
    int chunk = locations_chunk(l, node);
    if (chunk < 0 || *slot_of(l, micro, chunk) < 0) return NULL;
    return model_output(l->model, chunk, *slot_of(l, micro, chunk), node);
}

real *locations_node(const struct locations *l, int micro, int node) {
    real *received = locations_held(l, CARGO_NODE, micro, node);
    return received ? received : locations_own_output(l, micro, node);
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
        l->node[1 + node] = inside ? NULL : locations_node(l, a->micro, node);
        l->deposit[1 + node] = locations_held(l, CARGO_DEPOSIT, a->micro, node);
    }
    for (int e = l->edges->first[span.first]; e < l->edges->first[span.end]; e++) {
        l->strip[e] = locations_held(l, CARGO_EDGE, a->micro, e);
        l->strip_gradient[e] = locations_held(l, CARGO_EDGE_GRADIENT, a->micro, e);
    }
    pass->chunk = a->chunk;
    pass->slot = locations_slot(l, a->micro, a->chunk);
    pass->node = l->node;
    pass->strip = l->strip;
    pass->deposit = l->deposit;
    pass->strip_gradient = l->strip_gradient;
}
