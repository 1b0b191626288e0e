/* Cutting flat buffers: buckets tile the zones, every element of every tensor is owned by one data rank where
 * its zone is sharded and by all where it is not, and moments are as many as promised. */
#include <stdlib.h>
#include <string.h>

#include "dist/layout/shard.h"
#include "kernels/base/status.h"
#include "tests/dist/layout/made_up.h"
#include "tests/support/unit.h"

static const long sizes[] = {0, 1, 1024, 5000, 20000, 1L << 40};
enum { SIZES = sizeof sizes / sizeof *sizes, MAX_DATA = 5 };

static int zone_of(const struct table *table, long address) {
    int zone = 0;
    while (address >= table->zone[zone + 1]) zone++;
    return zone;
}

/* Buckets: what each says of itself, and that they tile. */
static void check_buckets(const struct table *table, const struct shards *shards, int data, int index,
                          long size) {
    long unit = (long)data * SHARD_GRAIN, covered = 0,
         max = size > unit ? (size + unit - 1) / unit * unit : unit;
    for (int i = 0; i < shards->buckets; i++) {
        const struct bucket *b = &shards->bucket[i];
        int zone = zone_of(table, b->first), ready = table->row[table->rows - 1].layer;
        assert_true(b->count > 0 && b->count % unit == 0 && b->first % unit == 0 && b->count <= max);
        assert_int_equal(zone_of(table, b->first + b->count - 1), zone);
        assert_int_equal(b->sharded, zone == ZONE_LARGE || zone == ZONE_SHARED_LARGE);
        assert_int_equal(b->shared, zone == ZONE_SHARED_LARGE || zone == ZONE_SHARED_SMALL);
        for (int r = 0; r < table->rows; r++) {
            const struct row *row = &table->row[r];
            bool inside = row->offset < b->first + b->count && row->offset + row->count > b->first;
            if (inside && row->layer < ready) ready = row->layer;
        }
        assert_int_equal(b->ready, ready);
        assert_int_equal(b->own_count, b->sharded ? b->count / data : b->count);
        assert_int_equal(b->own_first, b->first + (b->sharded ? index * b->own_count : 0));
        covered += b->count;

        for (int j = 0; j < i; j++) { /* no overlap, and in order of completion */
            const struct bucket *a = &shards->bucket[j];
            assert_true(a->first + a->count <= b->first || b->first + b->count <= a->first);
            assert_true(a->shared < b->shared || (a->shared == b->shared && a->ready >= b->ready));
            if (zone_of(table, a->first) == zone) assert_true(a->first > b->first);
        }
    }
    assert_int_equal(covered, table->total);
}

/* Counts each element's owners; checks that pieces and moments lie as buckets say. */
static void count_owners(const struct table *table, const struct shards *shards, int *owners) {
    long flat = -1, moment = -1;
    for (int i = 0; i < shards->pieces; i++) {
        const struct piece *p = &shards->piece[i];
        const struct row *row = &table->row[p->row];
        const struct bucket *b = &shards->bucket[p->bucket];
        long at = row->offset + p->first;
        assert_true(p->count > 0 && p->first >= 0 && p->first + p->count <= row->count);
        assert_true(at >= b->own_first && at + p->count <= b->own_first + b->own_count);
        assert_int_equal(p->moment - b->moment, at - b->own_first);
        assert_true(at > flat && p->moment > moment && p->moment + p->count <= shards->moments);
        for (long e = 0; e < p->count; e++) owners[at + e]++;
        flat = at + p->count - 1;
        moment = p->moment + p->count - 1;
    }
}

static void check_table(struct made_up rank, long size) {
    struct table table = made_up_table(rank);
    int *owners = calloc((size_t)table.total + 1, sizeof *owners);
    long large = 0, small = 0, unit = (long)rank.data * SHARD_GRAIN;
    for (int r = 0; r < table.rows; r++) {
        bool sharded = table.row[r].zone == ZONE_LARGE || table.row[r].zone == ZONE_SHARED_LARGE;
        *(sharded ? &large : &small) += table.row[r].count + 8; /* and a gap before it */
    }
    const int group = rank.data % 2 ? 1 : rank.data / 2;
    for (int index = 0; index < rank.data; index++) {
        struct shards shards;
        assert_int_equal(shards_create(&table, rank.data, index, group, size, &shards), 0);
        check_buckets(&table, &shards, rank.data, shards_part(rank.data, group, index), size);
        count_owners(&table, &shards, owners);
        assert_true(shards.moments <=
                    large / rank.data + small + 2 * SHARD_GRAIN + 2 * unit); /* 4 zones' ends */
        if (rank.data == 1) assert_int_equal(shards.moments, table.total);
        for (int i = 0; rank.data == 1 && i < shards.pieces; i++)
            assert_int_equal(shards.piece[i].moment,
                             table.row[shards.piece[i].row].offset + shards.piece[i].first);
        shards_free(&shards);
    }
    for (int r = 0; r < table.rows; r++) {
        const struct row *row = &table.row[r];
        int right = row->zone == ZONE_LARGE || row->zone == ZONE_SHARED_LARGE ? 1 : rank.data;
        for (long e = row->offset; e < row->offset + row->count; e++)
            assert_int_equal(owners[e], right), owners[e] = 0;
    }
    for (long e = 0; e < table.total; e++) assert_int_equal(owners[e], 0); /* padding is nobody's */
    free(owners);
    made_up_free(&table);
}

static void every_element_has_its_owner(void **state) {
    (void)state;
    for (int data = 1; data <= MAX_DATA; data++)
        for (int pipeline = 1; pipeline <= 3; pipeline++)
            for (int p = 0; p < pipeline; p++)
                for (int s = 0; s < SIZES; s++)
                    check_table((struct made_up){data, 2, data % 2, pipeline, p}, sizes[s]);
}

static void empty_table(void **state) {
    (void)state;
    struct table table = {0};
    struct shards shards;
    assert_int_equal(shards_create(&table, 3, 1, 1, 100, &shards), 0);
    assert_int_equal(shards.buckets + shards.pieces + shards.moments, 0);
    shards_free(&shards);
}

static void crooked_zone(void **state) {
    (void)state;
    struct table table = {.zone = {0, 1024, 2048, 2048, 2048}};
    struct shards shards;
    assert_int_equal(shards_create(&table, 2, 0, 1, 100, &shards), GDN_INTERNAL);
    assert_non_null(strstr(gdn_failure(), "1024, not a multiple of 2048"));
    gdn_failure_clear();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_has_its_owner),
        cmocka_unit_test(empty_table),
        cmocka_unit_test(crooked_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
