/* How much is summed: elements and bytes, from tables and shards alone. */
#include "dist/sync/private.h"

/* Elements of a layer's partial rows, of those in shared zones or of the others, of one layer after another
 * from the lowest up: `at` [ZONES], which begins with zeros, is how far each zone has been looked through. */
static long next_partial_count(const struct table *table, int layer, bool shared, int at[ZONES]) {
    long count = 0;
    for (int zone = 0; zone < ZONES; zone++) {
        if ((zone == ZONE_SHARED_LARGE || zone == ZONE_SHARED_SMALL) != shared) continue;
        for (; at[zone] < table->rows; at[zone]++) {
            const struct row *row = &table->row[at[zone]];
            if ((int)row->zone != zone || row->layer < layer) continue;
            if (row->layer > layer) break;
            if (row->partial) count += row->count;
        }
    }
    return count;
}

void sync_find_layers(const struct table *table, int *lowest, int *highest) {
    *lowest = *highest = table->rows ? table->row[0].layer : 0;
    for (int i = 1; i < table->rows; i++) {
        int layer = table->row[i].layer;
        if (layer < *lowest) *lowest = layer;
        if (layer > *highest) *highest = layer;
    }
}

long sync_shared_piece(const struct row *row) {
    long max = AXIS_BLOCK / row->owners;
    return row->count < max ? row->count : max;
}

int sync_most_owners(const struct table *table) {
    int most = 0;
    for (int i = 0; i < table->rows; i++)
        if (table->row[i].owners > most) most = table->row[i].owners;
    return most;
}

long sync_longest_bucket(const struct shards *shards) {
    long longest = 0;
    for (int b = 0; b < shards->buckets; b++)
        if (shards->bucket[b].count > longest) longest = shards->bucket[b].count;
    return longest;
}

long sync_longest_partial(const struct table *table) {
    int lowest, highest, at[ZONES] = {0};
    long longest = 0;
    sync_find_layers(table, &lowest, &highest);
    for (int layer = lowest; layer <= highest; layer++)
        for (int shared = 0; shared < 2; shared++) {
            long count = next_partial_count(table, layer, shared, at);
            if (count > longest) longest = count;
        }
    return longest;
}

long sync_longest_versions(const struct table *table) {
    long longest = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (!is_shared(row)) continue;
        long count = sync_shared_piece(row) * row->owners;
        if (count > longest) longest = count;
    }
    return longest;
}

int64_t sync_formula_bucket(const struct bucket *bucket, int copies, int index) {
    return axis_formula_sum(copies, index, bucket->count); /* whether sums or updated weights are gathered */
}

int64_t sync_formula_within(const struct bucket *bucket, int group) {
    return (group - 1) * (bucket->count / group) * REAL_BYTES;
}

int64_t sync_formula_partial(const struct table *table, int tensor, int index) {
    int lowest, highest, at[ZONES] = {0};
    int64_t bytes = 0;
    sync_find_layers(table, &lowest, &highest);
    for (int layer = lowest; layer <= highest; layer++)
        for (int shared = 0; shared < 2; shared++)
            bytes += axis_formula_sum(tensor, index, next_partial_count(table, layer, shared, at));
    return bytes;
}

int64_t sync_formula_shared(const struct table *table, int pipeline_index) {
    int64_t bytes = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (is_shared(row) && row_owned_by(row, pipeline_index))
            bytes += (row->owners - 1) * row->count * REAL_BYTES;
    }
    return bytes;
}

int64_t sync_formula_scratch(const struct table *table, const struct shards *shards, int copies, int tensor) {
    int64_t count = sync_longest_versions(table);
    if (copies > 1) count += SYNC_IN_FLIGHT * sync_longest_bucket(shards);
    if (tensor > 1) count += sync_longest_partial(table);
    return count * REAL_BYTES;
}
