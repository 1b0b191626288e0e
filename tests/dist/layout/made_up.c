#include "tests/dist/layout/made_up.h"

#include <stdio.h>
#include <stdlib.h>

#include "dist/layout/shard.h"
#include "kernels/base/random.h"

enum { LAYERS = 9, MAX_ROWS = 7, MAX_OWNERS = 3, LONGEST = 6000, SMALL = 1500 };

/* 0 … below − 1, a function of the tensor. */
static long draw(int layer, int row, int what, long below) {
    return (long)(random_bits((uint64_t)what, (uint64_t)(layer + 2), (uint64_t)row) % (uint64_t)below);
}

static int stage_of(const struct made_up *rank, int layer) {
    if (layer < 0) return 0;
    return layer >= LAYERS ? rank->pipeline - 1 : layer * rank->pipeline / LAYERS;
}

/* Adds a pipeline rank to a row's owners, which stay in order. */
static void add_owner(struct row *row, int *owner, int rank) {
    int at = row->owners;
    if (row_owned_by(row, rank)) return;
    for (; at > 0 && owner[at - 1] > rank; at--) owner[at] = owner[at - 1];
    owner[at] = rank;
    row->owners++;
}

/* Draws the pipeline ranks that share a row; none, where it is of one stage alone. */
static void draw_owners(const struct made_up *rank, int stage, int i, struct row *row, int *owner) {
    row->owner = owner;
    add_owner(row, owner, stage);
    add_owner(row, owner, (int)draw(row->layer, i, 4, rank->pipeline));
    if (draw(row->layer, i, 5, 3) == 0) add_owner(row, owner, (int)draw(row->layer, i, 6, rank->pipeline));
    if (draw(row->layer, i, 7, 4) || row->owners == 1) row->owners = 0;
}

static void add_row(const struct made_up *rank, struct table *table, int layer, int i) {
    struct row row = {.ndim = 1, .layer = layer, .counted = true, .decay = i % 2};
    int stage = stage_of(rank, layer);
    row.partial = draw(layer, i, 1, 3) == 0;
    row.count = 1 + draw(layer, i, 2, draw(layer, i, 3, 2) ? LONGEST : 40);
    bool large = row.count >= SMALL;
    if (!row.partial) row.count += 13 * rank->tensor_index;
    draw_owners(rank, stage, i, &row, table->owner + table->rows * MAX_OWNERS);
    if (row.owners ? !row_owned_by(&row, rank->pipeline_index) : stage != rank->pipeline_index) return;
    row.counted = !row.partial || rank->tensor_index == 0;
    if (row.owners) row.counted &= stage == rank->pipeline_index;
    row.zone = row.owners ? (large ? ZONE_SHARED_LARGE : ZONE_SHARED_SMALL) : (large ? ZONE_LARGE : ZONE_SMALL);
    row.shape[0] = row.local[0] = row.count, row.shape[1] = row.local[1] = 1;
    snprintf(row.name, sizeof row.name, "layers.%d.%d", layer, i);
    table->row[table->rows++] = row;
}

struct table made_up_table(struct made_up rank) {
    long unit = (long)rank.data * SHARD_GRAIN;
    struct table table = {.row = calloc((LAYERS + 2) * MAX_ROWS, sizeof *table.row),
                          .owner = calloc((LAYERS + 2) * MAX_ROWS * MAX_OWNERS, sizeof *table.owner)};
    for (int layer = -1; layer <= LAYERS; layer++)
        for (int i = 0; i < 1 + draw(layer, 0, 8, MAX_ROWS); i++) add_row(&rank, &table, layer, i);
    for (int zone = 0; zone < ZONES; zone++) {
        table.zone[zone] = table.total;
        for (int i = 0; i < table.rows; i++) {
            struct row *row = &table.row[i];
            if (row->zone != (enum zone)zone) continue;
            table.total += (8 - table.total % 8) % 8; /* gaps */
            row->offset = table.total;
            table.total += row->count;
        }
        table.total = (table.total + unit - 1) / unit * unit;
    }
    table.zone[ZONES] = table.total;
    return table;
}

void made_up_free(struct table *table) {
    free(table->row);
    free(table->owner);
    *table = (struct table){0};
}
