/* The rows of a rank's parameter table, and where they lie. */
#include "model/table/builder.h"
#include "dist/layout/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every group of tensors that one GEMM reads starts on a cache line; within a group they are neighbours. */
enum { GROUP_ALIGNMENT = 16 };

static bool grow_owners(struct builder *b) {
    int capacity = b->owner_capacity ? 2 * b->owner_capacity : 64;
    int *grown = realloc(b->owner, (size_t)capacity * sizeof *grown);
    if (!grown) return false;
    b->owner = grown;
    b->owner_capacity = capacity;
    return true;
}

void builder_own(struct builder *b, struct place *place, int stage) {
    int rank = layout_rank_of(b->layout, stage), at = b->owners;
    for (int i = place->first_owner; i < b->owners; i++)
        if (b->owner[i] == rank) return;
    if (b->owners == b->owner_capacity && !grow_owners(b)) {
        b->failed = true;
        return;
    }
    for (; at > place->first_owner && b->owner[at - 1] > rank; at--) b->owner[at] = b->owner[at - 1];
    b->owner[at] = rank;
    b->owners++;
    place->owners++;
}

struct place builder_place(struct builder *b, int layer) {
    struct place place = {.layer = layer, .first_owner = b->owners};
    builder_own(b, &place, layout_stage_of(b->layout, layer));
    return place;
}

static bool held(const struct builder *b, const struct place *place) {
    for (int i = 0; i < place->owners; i++)
        if (b->owner[place->first_owner + i] == b->layout->index[AXIS_PIPELINE]) return true;
    return false;
}

/* Closes the open group and settles its zone: by its largest tensor, and shared where any tensor is. */
void builder_group(struct builder *b) {
    long largest = 0;
    bool shared = false;
    for (int i = b->group_first; i < b->count; i++) {
        const struct row *row = &b->pending[i].row;
        if (row->count > largest) largest = row->count;
        if (row->owners > 1) shared = true;
    }
    bool small = largest < b->layout->small;
    for (int i = b->group_first; i < b->count; i++) {
        struct row *row = &b->pending[i].row;
        if (shared)
            row->zone = small ? ZONE_SHARED_SMALL : ZONE_SHARED_LARGE;
        else
            row->zone = small ? ZONE_SMALL : ZONE_LARGE, row->owners = 0;
    }
    b->group++;
    b->group_first = b->count;
}

static bool grow(struct builder *b) {
    int capacity = b->capacity ? 2 * b->capacity : 64;
    struct pending *grown = realloc(b->pending, (size_t)capacity * sizeof *grown);
    if (!grown) return false;
    b->pending = grown;
    b->capacity = capacity;
    return true;
}

/* The rank's part of a tensor: rows or columns. */
static void take_part(const struct layout *l, struct row *row) {
    row->local[0] = row->shape[0], row->local[1] = row->shape[1];
    if (row->split != SPLIT_NONE) {
        int side = row->split == SPLIT_ROWS ? 0 : 1;
        int ranks = l->size[AXIS_TENSOR], index = l->index[AXIS_TENSOR];
        row->start[side] = split_first(row->shape[side], ranks, index);
        row->local[side] = split_first(row->shape[side], ranks, index + 1) - row->start[side];
    }
    row->count = row->local[0] * row->local[1];
}

/* Connections leave parts of a sum in what all tensor ranks hold, and so do leaves that say it; the trunk's
 * others where each rank has tokens of its own. */
static bool is_partial(const struct layout *l, const struct place *place, const struct leaf *leaf,
                       const struct row *row) {
    if (l->size[AXIS_TENSOR] == 1 || row->split != SPLIT_NONE) return false;
    if (row->select || leaf->partial) return true;
    if (row->distance) return !place->whole;
    return l->sequence_parallel;
}

static bool is_counted(const struct builder *b, const struct place *place, const struct row *row) {
    const struct layout *l = b->layout;
    bool lowest_stage = b->owner[place->first_owner] == l->index[AXIS_PIPELINE];
    bool own = row->split != SPLIT_NONE || place->whole;
    return lowest_stage && (own || l->index[AXIS_TENSOR] == 0);
}

/* In one go: plans of many ranks have thousands of tables. */
static void name_row(const struct builder *b, const struct place *place, const char *leaf, struct row *row) {
    char *name = row->name, rule[RULE_NAME];
    const size_t size = sizeof row->name;
    if (place->rule) rule_name(place->rule, rule);
    if (place->rule && place->distance)
        snprintf(name, size, "layers.%d.%s.%d.%s", place->layer, rule, place->distance, leaf);
    else if (place->rule)
        snprintf(name, size, "layers.%d.%s.%s", place->layer, rule, leaf);
    else if (place->layer >= 0 && place->layer < b->num_layers && !place->head)
        snprintf(name, size, "layers.%d.%s", place->layer, leaf);
    else
        snprintf(name, size, "%s", leaf);
}

void builder_add(struct builder *b, struct place place, const struct leaf *leaf) {
    if (!leaf->joined && !place.distance) builder_group(b);
    if (!held(b, &place)) return;
    if (b->count == b->capacity && !grow(b)) {
        b->failed = true;
        return;
    }
    struct row row = {.ndim = leaf->in ? 2 : 1,
                      .shape = {leaf->out, leaf->in ? leaf->in : 1},
                      .split = place.whole ? SPLIT_NONE : leaf->split,
                      .transposed = leaf->transposed,
                      .decay = leaf->decays,
                      .own_lr_scale = leaf->lr_scale,
                      .own_weight_decay = leaf->weight_decay,
                      .heads = leaf->heads,
                      .elementwise = leaf->elementwise,
                      .joined = leaf->joined,
                      .start_width = leaf->width,
                      .start_value = leaf->value,
                      .layer = place.layer,
                      .rule = place.rule ? place.number : -1,
                      .distance = place.distance,
                      .edge = place.edge,
                      .edges = place.edges,
                      .select = place.select,
                      .owners = place.owners};
    take_part(b->layout, &row);
    row.alone = place.whole;
    row.partial = is_partial(b->layout, &place, leaf, &row);
    row.counted = is_counted(b, &place, &row);
    name_row(b, &place, leaf->name, &row);
    b->pending[b->count++] = (struct pending){row, place.first_owner, b->group};
}

static long round_up(long n, long grain) {
    return (n + grain - 1) / grain * grain;
}

static int by_name(const void *a, const void *b, void *context) {
    const struct row *row = context;
    return strcmp(row[*(const int *)a].name, row[*(const int *)b].name);
}

static int index_names(struct table *table) {
    size_t rows = (size_t)table->rows;
    table->by_name = malloc((rows + 1) * sizeof *table->by_name);
    if (!table->by_name) return 1;
    for (int i = 0; i < table->rows; i++) table->by_name[i] = i;
    qsort_r(table->by_name, rows, sizeof *table->by_name, by_name, table->row);
    return 0;
}

/* Gives every row its place: zone by zone, each in the order of the model. */
int builder_finish(struct builder *b, struct table *out) {
    struct row *row = malloc((size_t)(b->count ? b->count : 1) * sizeof *row);
    if (!row) return 1;
    *out = (struct table){.row = row};
    for (int zone = 0; zone < ZONES; zone++) {
        int group = -1;
        out->zone[zone] = out->total;
        for (int i = 0; i < b->count; i++) {
            const struct pending *pending = &b->pending[i];
            if ((int)pending->row.zone != zone) continue;
            if (pending->group != group) out->total = round_up(out->total, GROUP_ALIGNMENT);
            group = pending->group;
            row[out->rows] = pending->row;
            row[out->rows].owner = b->owner + pending->first_owner;
            row[out->rows++].offset = out->total;
            out->total += pending->row.count;
        }
        out->total = round_up(out->total, (long)b->layout->size[AXIS_COPIES] * SHARD_GRAIN);
    }
    out->zone[ZONES] = out->total;
    out->owner = b->owner;
    b->owner = NULL;
    return index_names(out);
}
