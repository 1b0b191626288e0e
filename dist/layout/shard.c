#include "dist/layout/shard.h"
#include "kernels/base/status.h"

#include <limits.h>
#include <stdlib.h>

static const long BUCKET_MAX = 1L << 30; /* elements: MPI counts in int */

struct cut {
    const struct table *table;
    int copies, part; /* the part that this copy owns */
    int *row;    /* [rows] the table's rows by offset */
    long size;   /* of a bucket */
    int highest; /* layer of the table */
    struct shards *out;
};

static int by_offset(const void *a, const void *b, void *context) {
    const struct table *table = context;
    long x = table->row[*(const int *)a].offset, y = table->row[*(const int *)b].offset;
    return (x > y) - (x < y);
}

/* As backward completes them: later layers first; what waits for other stages last. */
static int by_completion(const void *a, const void *b) {
    const struct bucket *x = a, *y = b;
    if (x->shared != y->shared) return x->shared ? 1 : -1;
    if (x->ready != y->ready) return x->ready > y->ready ? -1 : 1;
    if (x->sharded != y->sharded) return x->sharded ? -1 : 1;
    return x->first > y->first ? -1 : x->first < y->first;
}

static int by_moment(const void *a, const void *b) {
    long x = ((const struct piece *)a)->moment, y = ((const struct piece *)b)->moment;
    return (x > y) - (x < y);
}

/* Place in `row` of the first tensor that ends behind `address`. */
static int row_at(const struct cut *cut, long address) {
    int low = 0, high = cut->table->rows;
    while (low < high) {
        int middle = (low + high) / 2;
        const struct row *row = &cut->table->row[cut->row[middle]];
        if (row->offset + row->count > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The most moments of a tensor in [first, end). */
static int most_moments(const struct cut *cut, long first, long end) {
    int most = 0;
    for (int i = row_at(cut, first); i < cut->table->rows; i++) {
        const struct row *row = &cut->table->row[cut->row[i]];
        if (row->offset >= end) break;
        const struct moments *moments = row->treatment.moments;
        if (moments && moments->count > most) most = moments->count;
    }
    return most;
}

/* Lowest layer with a tensor in [first, end); the table's highest where there is only padding. */
static int lowest_layer(const struct cut *cut, long first, long end) {
    int lowest = cut->highest;
    for (int i = row_at(cut, first); i < cut->table->rows; i++) {
        const struct row *row = &cut->table->row[cut->row[i]];
        if (row->offset >= end) break;
        if (row->layer < lowest) lowest = row->layer;
    }
    return lowest;
}

/* Appends a zone's buckets by rising address: full ones end with the zone, the first may be shorter. */
static void cut_zone(struct cut *cut, int zone) {
    struct shards *out = cut->out;
    long first = cut->table->zone[zone], end = cut->table->zone[zone + 1];
    bool sharded = zone == ZONE_LARGE || zone == ZONE_SHARED_LARGE;
    bool shared = zone == ZONE_SHARED_LARGE || zone == ZONE_SHARED_SMALL;
    for (long next; first < end; first = next) {
        long count = (end - first) % cut->size ? (end - first) % cut->size : cut->size;
        next = first + count;
        struct bucket *b = &out->bucket[out->buckets++];
        *b = (struct bucket){.first = first,
                             .count = count,
                             .sharded = sharded,
                             .shared = shared,
                             .ready = lowest_layer(cut, first, next),
                             .own_first = first,
                             .own_count = count,
                             .moment = out->moments};
        if (sharded) {
            b->own_count = count / cut->copies;
            b->own_first = first + b->own_count * cut->part;
        }
        b->kept = most_moments(cut, first, next);
        for (int m = 0; m < MOMENTS; m++) {
            b->skipped[m] = out->moments - out->kept[m];
            if (m < b->kept) out->kept[m] += b->own_count;
        }
        out->moments += b->own_count;
    }
}

/* Appends the tensors' parts in one bucket's own part. */
static void add_pieces(struct cut *cut, int bucket) {
    struct shards *out = cut->out;
    const struct bucket *b = &out->bucket[bucket];
    long end = b->own_first + b->own_count;
    for (int i = row_at(cut, b->own_first); i < cut->table->rows; i++) {
        const struct row *row = &cut->table->row[cut->row[i]];
        if (row->offset >= end) break;
        long from = row->offset > b->own_first ? row->offset : b->own_first;
        long to = row->offset + row->count < end ? row->offset + row->count : end;
        if (to <= from) continue;
        out->piece[out->pieces++] = (struct piece){.row = cut->row[i],
                                                   .bucket = bucket,
                                                   .first = from - row->offset,
                                                   .count = to - from,
                                                   .moment = b->moment + from - b->own_first};
    }
}

static int cut_all(struct cut *cut) {
    const struct table *table = cut->table;
    struct shards *out = cut->out;
    long buckets = 0;
    for (int z = 0; z < ZONES; z++)
        buckets += (table->zone[z + 1] - table->zone[z] + cut->size - 1) / cut->size;
    size_t rows = (size_t)table->rows;
    if (buckets > INT_MAX - table->rows)
        return gdn_fail(
            GDN_INPUT, "%ld elements in buckets of mesh.bucket %ld are more buckets than %d; use larger ones",
            table->total, cut->size, INT_MAX);
    cut->row = malloc((rows + 1) * sizeof *cut->row);
    out->bucket = malloc((size_t)(buckets + 1) * sizeof *out->bucket);
    out->piece =
        malloc((rows + (size_t)buckets + 1) * sizeof *out->piece); /* a tensor or a bucket begins each */
    if (!cut->row || !out->bucket || !out->piece)
        return gdn_fail(GDN_INTERNAL, "out of memory for %ld gradient buckets of %d tensors", buckets,
                        table->rows);

    cut->highest = table->rows ? table->row[0].layer : 0;
    for (int i = 0; i < table->rows; i++) {
        cut->row[i] = i;
        if (table->row[i].layer > cut->highest) cut->highest = table->row[i].layer;
    }
    qsort_r(cut->row, rows, sizeof *cut->row, by_offset, (void *)table);
    for (int z = 0; z < ZONES; z++) cut_zone(cut, z);
    qsort(out->bucket, (size_t)out->buckets, sizeof *out->bucket, by_completion);
    for (int b = 0; b < out->buckets; b++) add_pieces(cut, b);
    qsort(out->piece, (size_t)out->pieces, sizeof *out->piece, by_moment); /* which rises with the address */
    return 0;
}

int shards_create(const struct table *table, int copies, int index, int group, long bucket,
                  struct shards *out) {
    *out = (struct shards){.copies = copies, .group = group};
    long unit = (long)copies * SHARD_GRAIN, max = BUCKET_MAX / unit * unit;
    for (int z = 0; z <= ZONES; z++)
        if (table->zone[z] % unit)
            return gdn_fail(GDN_INTERNAL,
                            "a zone of the parameter table starts at %ld, not a multiple of %ld",
                            table->zone[z], unit);
    if (bucket > max) bucket = max;
    struct cut cut = {
        .table = table, .copies = copies, .part = shards_part(copies, group, index), .out = out};
    cut.size = bucket > unit ? (bucket + unit - 1) / unit * unit : unit;
    int status = cut_all(&cut);
    free(cut.row);
    if (status) shards_free(out);
    return status;
}

void shards_free(struct shards *shards) {
    free(shards->bucket);
    free(shards->piece);
    *shards = (struct shards){0};
}
