/* An axis and messages whose wire type is bf16: every term is rounded once and added in rank order, what all
 * get is the same rounded number everywhere, and half the bytes are handed over; what is asked for exactly is
 * exact. Runs on any number of ranks, and on any device and transport (side.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dist/comm/transport.h"
#include "dist/mpi/mpi_pieces.h"
#include "kernels/base/bf16.h"
#include "kernels/base/random.h"
#include "tests/dist/comm/side.h"
#include "tests/support/rank_main.h"

static struct mesh mesh;
static struct axis *axis;

/* Odd ones, and of several blocks: rows, width. */
static const long shapes[][2] = {{0, 3},   {1, 8},    {2, 1},         {3, 7},
                                 {12, 33}, {1009, 1}, {7, 70001 / 7}, {AXIS_BLOCK / 512 + 3, 513}};
enum { SHAPES = sizeof shapes / sizeof *shapes, PERIOD = 4099 };

static real rounded(double x) {
    return from_bf16(bf16_of((real)x)); /* which tests/kernels/ops/test_bf16.c checks */
}

/* Rank r's i-th term; of very different sizes, so that the order of addition shows in the bits. */
static real draw_term(int rank, int i) {
    double x = random_normal(7, (uint64_t)rank, (uint64_t)i),
           far = sizeof(real) == sizeof(float) ? 0x1p30 : 0x1p60;
    return (real)(random_bits(8, (uint64_t)rank, (uint64_t)i) % 2 ? x * far : x);
}

static real *terms;                      /* [ranks, PERIOD] */
static real right[PERIOD], sums[PERIOD]; /* of terms that were rounded, and of terms */

static real term(int rank, long i) {
    return terms[rank * PERIOD + i % PERIOD];
}

static void draw(void) {
    long order = 0, rounding = 0;
    terms = malloc((size_t)mesh.size * PERIOD * sizeof *terms);
    for (int i = 0; i < PERIOD; i++) {
        for (int r = 0; r < mesh.size; r++) terms[r * PERIOD + i] = draw_term(r, i);
        real backwards = rounded(term(mesh.size - 1, i));
        right[i] = rounded(term(0, i));
        sums[i] = term(0, i);
        for (int r = 1; r < mesh.size; r++) right[i] += rounded(term(r, i)), sums[i] += term(r, i);
        for (int r = mesh.size - 2; r >= 0; r--) backwards += rounded(term(r, i));
        order += backwards != right[i];
        rounding += right[i] != sums[i];
    }
    if (mesh.size > 2) assert_true(order > 0); /* else these tests could not tell */
    assert_true(rounding > PERIOD / 2);
}

struct buffer {
    real *host, *x; /* [count + 1]: nothing may be written behind the end */
    long count;
};

static struct buffer mine(long count) {
    struct buffer b = {.host = malloc((size_t)(count + 1) * sizeof *b.host), .count = count};
    for (long i = 0; i < count; i++) b.host[i] = term(mesh.rank, i);
    b.host[count] = 12345;
    b.x = side_make(b.host, count + 1);
    return b;
}

static void get(const struct buffer *b) {
    side_get(b->host, b->x, b->count + 1);
    assert_true(b->host[b->count] == 12345);
    assert_int_equal(axis->status, 0);
}

static void drop(struct buffer *b) {
    side_drop(b->x);
    free(b->host);
}

static bool leave_out(long count) {
    return count > 100000 && (side_slow() || mpi_piece_max < 100000);
}

static void check_bytes(int64_t before, int64_t stored) {
    assert_int_equal(axis->bytes - before, mesh.size > 1 ? stored / (int64_t)sizeof(real) * 2 : 0);
}

static void check(real have, real want, long i) {
    if (memcmp(&have, &want, sizeof have) != 0)
        fail_msg("element %ld: %.9g instead of %.9g", i, (double)have, (double)want);
}

static void all_of_them(void **state) {
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        long rows = shapes[s][0], width = shapes[s][1], n = rows * width;
        long first = axis_first_row(axis, rows, mesh.rank) * width,
             end = axis_first_row(axis, rows, mesh.rank + 1) * width;
        if (leave_out(n)) continue;
        bool alone = mesh.size == 1;
        struct buffer b = mine(n), exact = mine(n), whole = mine(n);
        assert_int_equal(axis_reserve(axis, n), 0);
        int64_t before = axis->bytes;
        axis_sum_rows(axis, b.x, rows, width);
        check_bytes(before, axis_formula_sum_rows(mesh.size, mesh.rank, rows, width));
        get(&b);
        for (long i = first; i < end; i++) check(b.host[i], alone ? term(0, i) : right[i % PERIOD], i);
        for (long i = 0; i < n; i++)
            if (i < first || i >= end) b.host[i] = NAN; /* undefined: must come from others */
        side_put(b.x, b.host, n + 1);
        before = axis->bytes;
        axis_gather_rows(axis, b.x, rows, width);
        check_bytes(before, axis_formula_gather_rows(mesh.size, mesh.rank, rows, width));
        get(&b);
        before = axis->bytes;
        axis_sum(axis, whole.x, n);
        check_bytes(before, axis_formula_sum(mesh.size, mesh.rank, n));
        get(&whole);
        for (long i = 0; i < n; i++) { /* a rank's own rows are rounded as well: all have the same */
            check(b.host[i], alone ? term(0, i) : rounded(right[i % PERIOD]), i);
            check(whole.host[i], b.host[i], i);
        }
        before = axis->bytes;
        axis_sum_exact(axis, exact.x, n);
        assert_int_equal(axis->bytes - before, axis_formula_sum(mesh.size, mesh.rank, n));
        get(&exact);
        for (long i = 0; i < n; i++) check(exact.host[i], sums[i % PERIOD], i);
        drop(&exact);
        drop(&whole);
        drop(&b);
    }
}

static void columns(void **state) {
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        long rows = shapes[s][0], width = shapes[s][1], n = rows * width, line = width * mesh.size;
        if (leave_out(n)) continue;
        assert_int_equal(axis_reserve(axis, line), 0); /* a row */
        struct buffer b = mine(n), all = mine(rows * line);
        int64_t before = axis->bytes;
        axis_gather_columns(axis, b.x, rows, width, all.x);
        check_bytes(before, axis_formula_gather_columns(mesh.size, rows, width));
        get(&all);
        for (long i = 0; i < rows * line; i++) {
            real t = term((int)(i % line / width), i / line * width + i % line % width);
            check(all.host[i], mesh.size == 1 ? t : rounded(t), i);
        }
        drop(&all);
        drop(&b);
    }
}

/* Where MPI is given little at a time. */
static void in_pieces(void **state) {
    const long max = mpi_piece_max;
    mpi_piece_max = 211;
    all_of_them(state);
    columns(state);
    mpi_piece_max = max;
}

/* A planned axis counts as the real one does. */
static void planned(void **state) {
    (void)state;
    for (int size = 2; size <= 5; size++)
        for (int r = 0; r < size; r++) {
            struct axis p = axis_planned("tensor", size, r);
            p.wire = WIRE_BF16;
            axis_sum(&p, NULL, 1009);
            axis_gather_columns(&p, NULL, 7, 5, NULL);
            assert_int_equal(p.bytes,
                             (axis_formula_sum(size, r, 1009) + axis_formula_gather_columns(size, 7, 5)) /
                                 (int64_t)sizeof(real) * 2);
            int64_t before = p.bytes;
            axis_sum_exact(&p, NULL, 1009);
            assert_int_equal(p.bytes - before, axis_formula_sum(size, r, 1009));
            assert_int_equal(p.status, 0);
        }
}

/* Messages of codes, in rooms of an odd number of them. */
static void messages(void **state) {
    enum { N = 40001 };
    struct mesh pipeline;
    struct transport *t;
    static uint16_t out[N + 1], in[N + 1];
    (void)state;
    assert_int_equal(side_mesh(1, 1, mesh.size, &pipeline), 0);
    struct axis *ring = &pipeline.axis[AXIS_PIPELINE];
    int next = (ring->index + 1) % ring->size, before = (ring->index + ring->size - 1) % ring->size;
    const struct device *device = side_ops()->device;
    uint16_t *from = device->reserve(sizeof out), *to = device->reserve(sizeof in);
    for (int i = 0; i <= N; i++) out[i] = (uint16_t)(i * 7 + ring->index), in[i] = 0xabab;
    device->upload(from, out, sizeof out);
    device->upload(to, in, sizeof in);
    assert_int_equal(transport_create(ring, WIRE_BF16, 2, 1, &t), 0);
    transport_expect(t, 1, (int[]){before}, (int[]){0});
    transport_receive(t, 0, to, N, before, 0, false);
    transport_send(t, 1, from, N, next, 0, false);
    transport_finish(t);
    assert_int_equal(ring->status, 0);
    assert_int_equal(ring->bytes, 2 * N);
    device->download(in, to, sizeof in);
    for (int i = 0; i < N; i++) assert_int_equal(in[i], (uint16_t)(i * 7 + before));
    assert_int_equal(in[N], 0xabab);
    transport_free(t);
    device->release(from);
    device->release(to);
    mesh_free(&pipeline);
}

static int set_up(void) {
    TRY(side_mesh(0, 1, 1, &mesh));
    axis = &mesh.axis[AXIS_DATA];
    axis->wire = WIRE_BF16;
    draw();
    return 0;
}

static void tear_down(void) {
    mesh_free(&mesh);
    free(terms);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_them), cmocka_unit_test(columns),
                                       cmocka_unit_test(in_pieces), cmocka_unit_test(planned),
                                       cmocka_unit_test(messages)};
    return run_on_ranks(tests, set_up, tear_down);
}
