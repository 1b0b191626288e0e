/* Gradient sync on every mesh of this many ranks: sums over tensor, pipeline and data axes equal plain sums
 * in rank order, or that of groups of copies, to the bit, whatever the buckets, with several under way at once or
 * one after the other;
 * gathered weights are those of their owners; bytes are those of the formulas. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dist/sync/sync.h"
#include "kernels/base/random.h"
#include "tests/dist/layout/made_up.h"
#include "tests/dist/comm/side.h"
#include "tests/support/rank_main.h"

enum order { ONE_BY_ONE, OVERLAPPED };

struct fixture {
    struct mesh mesh;
    int group; /* copies that add up first */
    struct table table;
    struct shards shards;
    struct sync *sync;
    real *gradient, *weight; /* buffers of the device */
    real *host;              /* what goes there or comes from there */
    real *sum;               /* what is expected */
};

/* What rank (t, d, p) gives for element i of a tensor: of very different sizes, so that the order of addition
 * shows. */
static real term(const struct row *row, long i, int t, int d, int p, int step) {
    uint64_t what = random_name(row->name) + (uint64_t)step, rank = (uint64_t)(t + 8 * (d + 8 * p)) << 32;
    uint64_t bits = random_bits(3, what, rank + (uint64_t)i);
    double x = (double)(bits >> 11) * 0x1p-53 - 0.5;
    return (real)(bits % 2 ? x * 1e5 : x);
}

/* Over the pipeline ranks that hold it, or this one alone. */
static real over_pipeline(const struct fixture *f, const struct row *row, long i, int t, int d, int step) {
    if (!row->owners) return term(row, i, t, d, f->mesh.axis[AXIS_PIPELINE].index, step);
    real sum = 0;
    bool begun = false;
    for (int p = 0; p < f->mesh.axis[AXIS_PIPELINE].size; p++) {
        if (!row_owned_by(row, p)) continue;
        sum = begun ? sum + term(row, i, t, d, p, step) : term(row, i, t, d, p, step);
        begun = true;
    }
    return sum;
}

static real over_tensor(const struct fixture *f, const struct row *row, long i, int d, int step) {
    if (!row->partial) return over_pipeline(f, row, i, f->mesh.axis[AXIS_TENSOR].index, d, step);
    real sum = over_pipeline(f, row, i, 0, d, step);
    for (int t = 1; t < f->mesh.axis[AXIS_TENSOR].size; t++) sum += over_pipeline(f, row, i, t, d, step);
    return sum;
}

/* Groups of copies one after the other, and in each of them its members. */
static real over_copies(const struct fixture *f, const struct row *row, long i, int step) {
    real sum = 0;
    for (int first = 0; first < f->mesh.axis[AXIS_DATA].size; first += f->group) {
        real of_group = over_tensor(f, row, i, first, step);
        for (int d = first + 1; d < first + f->group; d++) of_group += over_tensor(f, row, i, d, step);
        sum = first ? sum + of_group : of_group;
    }
    return sum;
}

static void draw(struct fixture *f, int step) {
    const struct axis *tensor = &f->mesh.axis[AXIS_TENSOR], *data = &f->mesh.axis[AXIS_DATA],
                      *pipeline = &f->mesh.axis[AXIS_PIPELINE];
    memset(f->host, 0, (size_t)f->table.total * sizeof(real));
    memset(f->sum, 0, (size_t)f->table.total * sizeof(real));
    for (int r = 0; r < f->table.rows; r++) {
        const struct row *row = &f->table.row[r];
        for (long i = 0; i < row->count; i++) {
            f->host[row->offset + i] = term(row, i, tensor->index, data->index, pipeline->index, step);
            f->sum[row->offset + i] = over_copies(f, row, i, step);
        }
    }
    side_put(f->gradient, f->host, f->table.total);
}

static void make_buffers(struct fixture *f) {
    size_t n = (size_t)f->table.total;
    f->gradient = side_make(NULL, f->table.total), f->weight = side_make(NULL, f->table.total);
    f->host = calloc(n, sizeof(real)), f->sum = calloc(n, sizeof(real));
}

static void set_up(struct fixture *f, int data, int group, int tensor, long bucket) {
    int pipeline = test_ranks / data / tensor;
    *f = (struct fixture){.group = group};
    assert_int_equal(side_mesh(data, tensor, pipeline, &f->mesh), 0);
    f->table = made_up_table((struct made_up){data, tensor, f->mesh.axis[AXIS_TENSOR].index, pipeline,
                                              f->mesh.axis[AXIS_PIPELINE].index});
    assert_int_equal(shards_create(&f->table, data, f->mesh.axis[AXIS_DATA].index, group, bucket, &f->shards), 0);
    make_buffers(f);
    int64_t bytes;
    assert_int_equal(sync_create(&f->mesh, &f->table, &f->shards, &f->sync, &bytes), 0);
    assert_int_equal(bytes, sync_formula_scratch(&f->table, &f->shards, data, tensor));
}

static void tear_down(struct fixture *f) {
    sync_free(f->sync);
    shards_free(&f->shards);
    made_up_free(&f->table);
    mesh_free(&f->mesh);
    side_drop(f->gradient), side_drop(f->weight);
    free(f->host), free(f->sum);
}

/* ACT_REDUCE and ACT_FINISH of all buckets, as a backward pass with overlap makes them: as each layer is
 * complete, with SYNC_IN_FLIGHT under way. */
static void reduce_overlapped(struct fixture *f) {
    int next = 0, finished = 0;
    for (int layer = f->table.row[f->table.rows - 1].layer; layer >= -1; layer--) {
        assert_int_equal(sync_partial(f->sync, layer, f->gradient), 0);
        for (; next < f->shards.buckets; next++) {
            const struct bucket *b = &f->shards.bucket[next];
            if (b->shared || b->ready < layer) break;
            if (next - finished == SYNC_IN_FLIGHT)
                assert_int_equal(sync_finish(f->sync, finished++, f->gradient), 0);
            assert_int_equal(sync_reduce(f->sync, next, f->gradient), 0);
            assert_int_equal(sync_progress(f->sync), 0);
        }
    }
    assert_int_equal(sync_share(f->sync, f->gradient), 0); /* while buckets are under way */
    for (; next < f->shards.buckets; next++) {
        assert_true(f->shards.bucket[next].shared);
        if (next - finished == SYNC_IN_FLIGHT)
            assert_int_equal(sync_finish(f->sync, finished++, f->gradient), 0);
        assert_int_equal(sync_reduce(f->sync, next, f->gradient), 0);
    }
    while (finished < next) assert_int_equal(sync_finish(f->sync, finished++, f->gradient), 0);
}

static void reduce_one_by_one(struct fixture *f) {
    assert_int_equal(sync_share(f->sync, f->gradient), 0);
    for (int b = 0; b < f->shards.buckets; b++) {
        assert_int_equal(sync_reduce(f->sync, b, f->gradient), 0);
        assert_int_equal(sync_finish(f->sync, b, f->gradient), 0);
    }
}

static void gather(struct fixture *f, enum order order) {
    for (int b = 0; b < f->shards.buckets; b++) {
        assert_int_equal(sync_gather(f->sync, b, f->weight), 0);
        if (order == ONE_BY_ONE) assert_int_equal(sync_gathered(f->sync, b), 0);
    }
    assert_int_equal(sync_progress(f->sync), 0);
    for (int b = f->shards.buckets - 1; order == OVERLAPPED && b >= 0; b--)
        assert_int_equal(sync_gathered(f->sync, b), 0);
}

static void check_same(const struct row *row, const real *given, const real *right, long count) {
    for (long i = 0; i < count; i++)
        if (memcmp(&given[i], &right[i], sizeof *given))
            fail_msg("%s, %ld of %ld elements: %.17g, not %.17g", row->name, i, count, (double)given[i],
                     (double)right[i]);
}

/* One step; own parts, then all weights. */
static void check_step(struct fixture *f, enum order order, int step) {
    draw(f, step);
    if (order == OVERLAPPED)
        reduce_overlapped(f);
    else
        reduce_one_by_one(f);
    real *weight = malloc((size_t)f->table.total * sizeof *weight);
    for (long i = 0; i < f->table.total; i++) weight[i] = NAN;
    side_get(f->host, f->gradient, f->table.total);
    for (int i = 0; i < f->shards.pieces; i++) {
        const struct piece *piece = &f->shards.piece[i];
        const struct row *row = &f->table.row[piece->row];
        long at = row->offset + piece->first;
        check_same(row, f->host + at, f->sum + at, piece->count);
        memcpy(weight + at, f->host + at, (size_t)piece->count * sizeof(real)); /* "updated" */
    }
    side_put(f->weight, weight, f->table.total);
    gather(f, order);
    side_get(weight, f->weight, f->table.total);
    for (int r = 0; r < f->table.rows; r++) {
        const struct row *row = &f->table.row[r];
        check_same(row, weight + row->offset, f->sum + row->offset, row->count);
    }
    free(weight);
}

static void check_mesh(int data, int group, int tensor, long bucket, enum order order) {
    enum { STEPS = 2 };
    struct fixture f;
    set_up(&f, data, group, tensor, bucket);
    for (int step = 0; step < STEPS; step++) check_step(&f, order, step);
    int64_t buckets = 0;
    for (int b = 0; b < f.shards.buckets; b++)
        buckets += sync_formula_bucket(&f.shards.bucket[b], data, f.mesh.axis[AXIS_DATA].index);
    assert_int_equal(f.mesh.axis[AXIS_DATA].bytes, STEPS * buckets);
    assert_int_equal(f.mesh.axis[AXIS_TENSOR].bytes,
                     STEPS * sync_formula_partial(&f.table, tensor, f.mesh.axis[AXIS_TENSOR].index));
    assert_int_equal(f.mesh.axis[AXIS_PIPELINE].bytes,
                     STEPS * sync_formula_shared(&f.table, f.mesh.axis[AXIS_PIPELINE].index));
    assert_true((f.mesh.axis[AXIS_DATA].bytes > 0) == (data > 1) &&
                (f.mesh.axis[AXIS_TENSOR].bytes > 0) == (tensor > 1));
    assert_true((f.mesh.axis[AXIS_PIPELINE].bytes > 0) == (f.mesh.axis[AXIS_PIPELINE].size > 1));
    assert_true((f.mesh.axis[AXIS_DATA].seconds > 0) == (data > 1));
    tear_down(&f);
}

static void check_meshes(long bucket, enum order order) {
    if (side_slow() && bucket != 9000) return;
    for (int data = 1; data <= test_ranks; data++)
        for (int tensor = 1; tensor <= test_ranks; tensor++)
            for (int group = 1; group <= data && test_ranks % (data * tensor) == 0; group++)
                if (data % group == 0) check_mesh(data, group, tensor, bucket, order);
}

static void one_by_one(void **state) {
    (void)state;
    check_meshes(1, ONE_BY_ONE);
    check_meshes(9000, ONE_BY_ONE);
    check_meshes(1 << 24, ONE_BY_ONE);
}

static void overlapped(void **state) {
    (void)state;
    check_meshes(1, OVERLAPPED);
    check_meshes(9000, OVERLAPPED);
    check_meshes(1 << 24, OVERLAPPED);
}

/* A row longer than what is exchanged in one go. */
static void long_shared_row(void **state) {
    (void)state;
    if (side_slow()) return;
    int owner[8];
    for (int p = 0; p < test_ranks; p++) owner[p] = p;
    struct row row = {.name = "embed_tokens.weight",
                      .layer = -1,
                      .count = 2 * AXIS_BLOCK / test_ranks + 4321,
                      .zone = ZONE_SHARED_LARGE,
                      .owners = test_ranks,
                      .owner = owner};
    long total = (row.count + SHARD_GRAIN - 1) / SHARD_GRAIN * SHARD_GRAIN;
    struct fixture f = {.group = 1, .table = {.rows = 1, .row = &row, .total = total, .zone = {0, 0, 0, total, total}}};
    assert_int_equal(side_mesh(1, 1, test_ranks, &f.mesh), 0);
    assert_int_equal(shards_create(&f.table, 1, 0, 1, 1 << 20, &f.shards), 0);
    assert_int_equal(sync_create(&f.mesh, &f.table, &f.shards, &f.sync, NULL), 0);
    make_buffers(&f);
    draw(&f, 0);
    assert_int_equal(sync_share(f.sync, f.gradient), 0);
    side_get(f.host, f.gradient, row.count);
    check_same(&row, f.host, f.sum, row.count);
    assert_int_equal(f.mesh.axis[AXIS_PIPELINE].bytes,
                     sync_formula_shared(&f.table, f.mesh.axis[AXIS_PIPELINE].index));
    f.table.row = NULL;
    tear_down(&f);
}

/* Tables of a pipeline that no test has ranks for: every owner hands its version to every other one. */
static void planned_many_stages(void **state) {
    (void)state;
    enum { STAGES = 100 };
    int64_t given = 0, expected = 0;
    bool far = false;
    for (int p = 0; p < STAGES; p++) {
        struct table table = made_up_table((struct made_up){1, 1, 0, STAGES, p});
        struct shards shards;
        long longest = 0;
        assert_int_equal(shards_create(&table, 1, 0, 1, 9000, &shards), 0);
        for (int i = 0; i < table.rows; i++) {
            const struct row *row = &table.row[i];
            if (!row->owners) continue;
            assert_true(row_owned_by(row, p));
            expected += (row->owners - 1) * row->count * (int64_t)sizeof(real);
            far |= row->owner[row->owners - 1] >= 64;
            if (row->owners * row->count > longest) longest = row->owners * row->count;
        }
        given += sync_formula_shared(&table, p);
        assert_int_equal(sync_formula_scratch(&table, &shards, 1, 1), longest * (long)sizeof(real));
        shards_free(&shards);
        made_up_free(&table);
    }
    assert_true(far && given > 0);
    assert_int_equal(given, expected);
}

/* Calls out of turn are errors, the same on all ranks, and leave what is under way as it was. */
static void turn_with(int group) {
    struct fixture f;
    set_up(&f, test_ranks, group, 1, 1);
    draw(&f, 0);
    assert_true(f.shards.buckets > SYNC_IN_FLIGHT);
    assert_int_equal(sync_finish(f.sync, 0, f.gradient), GDN_INTERNAL);
    assert_non_null(strstr(gdn_failure(), "bucket 0 at the wrong time"));
    gdn_failure_clear();
    for (int b = 0; b < SYNC_IN_FLIGHT; b++) assert_int_equal(sync_reduce(f.sync, b, f.gradient), 0);
    assert_int_equal(sync_reduce(f.sync, SYNC_IN_FLIGHT, f.gradient), GDN_INTERNAL);
    assert_non_null(strstr(gdn_failure(), "in flight"));
    gdn_failure_clear();
    for (int b = 0; b < SYNC_IN_FLIGHT; b++) {
        const struct bucket *bucket = &f.shards.bucket[b];
        assert_int_equal(sync_finish(f.sync, b, f.gradient), 0);
        side_get(f.host, f.gradient, f.table.total);
        assert_memory_equal(f.host + bucket->own_first, f.sum + bucket->own_first,
                            (size_t)bucket->own_count * sizeof(real));
    }
    tear_down(&f);
}

static void out_of_turn(void **state) {
    (void)state;
    for (int group = 1; group <= test_ranks && test_ranks > 1; group++)
        if (test_ranks % group == 0) turn_with(group);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_by_one),
        cmocka_unit_test(overlapped),
        cmocka_unit_test(long_shared_row),
        cmocka_unit_test(planned_many_stages),
        cmocka_unit_test(out_of_turn),
    };
    return run_on_ranks(tests, NULL, NULL);
}
