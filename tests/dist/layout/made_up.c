#include "tests/dist/layout/made_up.h"

#include <stdio.h>
#include <stdlib.h>

#include "dist/layout/shard.h"
#include "kernels/base/random.h"

enum { LAYERS = 9, MAX_ROWS = 7, LONGEST = 6000, SMALL = 1500 };

/* 0 … below − 1, a function of the tensor. */
static long draw(int layer, int row, int what, long below) {
    return (long)(random_bits((uint64_t)what, (uint64_t)(layer + 2), (uint64_t)row) % (uint64_t)below);
}

static int stage_of(const struct made_up *rank, int layer) {
    if (layer < 0) return 0;
    return layer >= LAYERS ? rank->pipeline - 1 : layer * rank->pipeline / LAYERS;
}

static void add_row(const struct made_up *rank, struct table *table, int layer, int i) {
    struct row row = {.ndim = 1, .layer = layer, .counted = true, .decay = i % 2};
    int stage = stage_of(rank, layer);
    row.partial = draw(layer, i, 1, 3) == 0;
    row.count = 1 + draw(layer, i, 2, draw(layer, i, 3, 2) ? LONGEST : 40);
    bool large = row.count >= SMALL;
    if (!row.partial) row.count += 13 * rank->tensor_index;
    uint64_t owners = (uint64_t)1 << stage | (uint64_t)1 << draw(layer, i, 4, rank->pipeline);
    if (draw(layer, i, 5, 3) == 0) owners |= (uint64_t)1 << draw(layer, i, 6, rank->pipeline);
    if (draw(layer, i, 7, 4) || !(owners & (owners - 1))) owners = 0; /* of one stage alone */
    if (!(owners ? owners >> rank->pipeline_index & 1 : stage == rank->pipeline_index)) return;
    row.stages = owners;
    row.counted = !row.partial || rank->tensor_index == 0;
    if (owners) row.counted &= stage == rank->pipeline_index;
    row.zone = owners ? (large ? ZONE_SHARED_LARGE : ZONE_SHARED_SMALL) : (large ? ZONE_LARGE : ZONE_SMALL);
    row.shape[0] = row.local[0] = row.count, row.shape[1] = row.local[1] = 1;
    snprintf(row.name, sizeof row.name, "layers.%d.%d", layer, i);
    table->row[table->rows++] = row;
}

struct table made_up_table(struct made_up rank) {
    long unit = (long)rank.data * SHARD_GRAIN;
    struct table table = {.row = calloc((LAYERS + 2) * MAX_ROWS, sizeof *table.row)};
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
    *table = (struct table){0};
}
