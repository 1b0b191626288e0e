/* What a rank has to do for a store of differences, and the memory for it. */
#include "kernels/base/status.h"
#include "model/delta/gate.h"
#include "model/params/edges.h"
#include "train/config/rows.h"
#include "train/deltas/delta_store_private.h"

#include <stdio.h>
#include <stdlib.h>

/* Tokens of a watched micro-batch, at most. */
static long tokens(const struct delta_place *place) {
    return place->batch * place->config->train.sequence_length;
}

/* Of factors; with a tolerance any rank may be needed. */
static long max_rank(const struct delta_place *place) {
    const struct delta_store_config *config = &place->config->delta_store;
    return lowrank_of_ratio(tokens(place), place->config->model.hidden_size,
                            config->ratio > 0 ? config->ratio : 1);
}

static bool chosen(const struct delta_store_config *config, int layer) {
    for (int i = 0; i < config->num_layers; i++)
        if (config->layers[i] == layer) return true;
    return config->num_layers == 0;
}

/* This rank's layers with connections that are to be stored; `mark` [num_layers] takes them, or is NULL. */
static void find_layers(struct delta_store *s, bool *mark) {
    const struct delta_place *p = &s->place;
    s->layers = s->max = s->connections = 0;
    for (int c = 0; c < p->layout->chunks; c++) {
        struct span span = layout_span(p->layout, c, p->config->model.num_layers);
        for (int l = span.first; l < span.end; l++) {
            int connections = measured_into(p->edges, NULL, l);
            if (!connections || !chosen(&p->config->delta_store, l)) continue;
            if (mark) mark[l] = true;
            s->layers++;
            s->connections += connections;
            if (connections > s->max) s->max = connections;
        }
    }
}

static real *take(struct delta_store *s, long count) {
    return arena_take(&s->arena, (size_t)count * sizeof(real));
}

/* Called once to count and once to hand out. */
static void lay_out(struct delta_store *s) {
    long T = tokens(&s->place), D = s->place.config->model.hidden_size, rank = max_rank(&s->place);
    const int tensor = s->place.layout->size[AXIS_TENSOR], context = delta_store_context(s);
    s->layer = arena_take(&s->arena, (size_t)s->place.config->model.num_layers * sizeof *s->layer);
    s->part = arena_take(&s->arena, (size_t)(tensor > context ? tensor : context) * sizeof *s->part);
    if (context > 1) {
        const size_t bytes = (size_t)(config_row_length(s->place.config) * D) * sizeof(real);
        s->doubles = (long)((bytes + sizeof *s->mine - 1) / sizeof *s->mine);
        s->mine = arena_take(&s->arena, (size_t)s->doubles * sizeof *s->mine);
        s->pieces = arena_take(&s->arena, (size_t)(context * s->doubles) * sizeof *s->pieces);
        if (s->files) s->whole = take(s, T * D);
    }
    if (!s->files) return;
    lowrank_lay_out(&s->lowrank, &s->arena, s->place.ops, T, D, rank, false);
    s->record = arena_take(&s->arena, (size_t)s->max * sizeof *s->record);
    for (int i = 0; i < s->max; i++) {
        struct factors factors = {.u = take(s, T * rank), .sigma = take(s, rank), .vt = take(s, rank * D)};
        if (s->record) s->record[i].factors = factors;
    }
}

/* Everything but memory, which is counted. */
static void plan(struct delta_store *s, const struct delta_place *place, int batch_part, int context_index) {
    const struct layout *layout = place->layout;
    *s = (struct delta_store){.place = *place, .arena = {.name = "stored differences"}};
    s->all_replicated = gate_of(&place->config->model)->parts == PARTS_REPLICATED && layout->delta == DELTA_CHANNEL;
    find_layers(s, NULL);
    s->watches = batch_part == 0 && s->layers > 0;
    s->files = s->watches && layout->index[AXIS_TENSOR] == 0 && context_index == 0;
    if (s->watches) lay_out(s);
}

long delta_store_memory(const struct delta_place *place, int batch_part, int context_index) {
    if (!place->config->delta_store.interval) return 0;
    struct delta_store s;
    plan(&s, place, batch_part, context_index);
    if (!s.files) return (long)s.arena.used;
    long T = tokens(place), D = place->config->model.hidden_size, rank = max_rank(place);
    long records = delta_file_max(s.connections, T, D, rank),
         files = (s.layers - 1) * delta_file_max(0, T, D, rank);
    return (long)s.arena.used + records + files;
}

static int build(struct delta_store *s, const struct delta_place *place) {
    plan(s, place, place->mesh->batch.index, place->mesh->axis[AXIS_CONTEXT].index);
    if (!s->watches) return 0;
    TRY(arena_reserve(&s->arena));
    lay_out(s);
    find_layers(s, s->layer);
    s->watch = (struct delta_watch){.see = delta_store_see, .context = s, .layer = s->layer};
    if (!s->files) return 0;
    int length = snprintf(s->directory, sizeof s->directory, "%s/deltas", place->directory);
    if (length < 0 || length >= (int)sizeof s->directory)
        return gdn_fail(GDN_INPUT, "%s: the path is too long for stored differences", place->directory);
    return delta_writer_create(s->directory, s->layers, &s->writer);
}

int delta_store_create(const struct delta_place *place, struct delta_store **out) {
    *out = NULL;
    if (!place->config->delta_store.interval) return 0;
    struct delta_store *s = malloc(sizeof *s);
    if (!s) return gdn_fail(GDN_INTERNAL, "out of memory for a store of differences");
    int status = build(s, place);
    if (status)
        delta_store_free(s);
    else
        *out = s;
    return status;
}

void delta_store_free(struct delta_store *store) {
    if (!store) return;
    delta_writer_free(store->writer);
    arena_free(&store->arena);
    free(store);
}
