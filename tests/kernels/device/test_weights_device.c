/* Products of weights that are held (ops.h): the bits of those that convert their operands themselves,
 * however a part of the weights is read; and of which weights. */
#include "tests/kernels/device/device_product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

enum { COUNT_OF_WEIGHTS = 128 * 64, TOKENS = 40 };

/* A part [rows, columns] of the weights, and a product that reads it: x·Wᵀ or x·W. */
struct reading {
    long first, rows, columns, ld;
    char transposed;
};
static const struct reading readings[] = {
    {0, 64, 96, 96, 'T'},  {0, 64, 96, 96, 'N'},    {256, 16, 16, 16, 'T'},  {256, 16, 16, 16, 'N'},
    {64, 32, 48, 96, 'T'}, {64, 32, 48, 96, 'N'},   {8, 33, 20, 24, 'T'},    {8, 33, 20, 24, 'N'},
    {3, 32, 32, 32, 'T'},  {3, 32, 32, 32, 'N'},    {16, 24, 17, 17, 'T'},   {16, 24, 17, 17, 'N'},
    {8190, 1, 2, 8, 'T'},  {5120, 48, 64, 64, 'T'}, {5120, 48, 64, 64, 'N'},
};

enum { READINGS = sizeof readings / sizeof *readings };

static struct matrix weights, x, c;
static void *copy;

static int begin(void **state) {
    int status = device_begin(state);
    weights = random_matrix(1, COUNT_OF_WEIGHTS, 0, 0, 1);
    x = random_matrix(TOKENS, 128, 0, 0, 1);
    c = make_matrix(TOKENS, 128, 0, 0, 0);
    copy = device->reserve(COUNT_OF_WEIGHTS * 2);
    return copy ? status : -1;
}

/* By the operation linear of a weight id, or by gemm; out [TOKENS, 128]. */
static void multiply(const struct ops *ops, int weight_id, const struct reading *of, float *out) {
    const bool forward = of->transposed == 'T';
    const long n = forward ? of->rows : of->columns, k = forward ? of->columns : of->rows;
    const float *w = on_device(&weights) + of->first;
    device->clear(c.reserved, matrix_bytes(&c));
    if (weight_id == GEMM)
        ops->gemm('N', of->transposed, TOKENS, n, k, 1, on_device(&x), 128, w, of->ld, 0, on_device(&c), 128);
    else
        ops->linear(weight_id, 'N', of->transposed, TOKENS, n, k, 1, on_device(&x), 128, w, of->ld, 0,
                    on_device(&c), 128);
    download(&c);
    if (device->wait()) fail_msg("%s", gdn_failure());
    memcpy(out, c.host, matrix_bytes(&c));
}

static void hold(const struct ops *ops) {
    ops->hold(on_device(&weights), COUNT_OF_WEIGHTS, copy);
}

static void check_same(const struct ops *ops, int reading, const float *found, const float *expected) {
    if (memcmp(found, expected, matrix_bytes(&c)) != 0)
        fail_msg("%s, reading %d: other bits of weights that are held", precision_names[ops->precision],
                 reading);
}

static bool has_copies(const struct ops *ops) {
    assert_int_equal(ops->hold != NULL, weight_copy_bytes(false, ops->precision) > 0);
    return ops->hold;
}

static void same_bits(void **state) {
    (void)state;
    float *alone = malloc(matrix_bytes(&c)), *kept = malloc(matrix_bytes(&c));
    EACH_PRECISION(ops)
    for (int linear = 0; linear < 2 && has_copies(ops); linear++)
        for (int r = 0; r < READINGS; r++) {
            hold(ops);
            multiply(ops, linear ? new_weight_id() : GEMM, &readings[r], kept);
            ops->release();
            multiply(ops, linear ? new_weight_id() : GEMM, &readings[r], alone);
            check_same(ops, r, kept, alone);
        }
    free(alone);
    free(kept);
}

/* One hold serves all: x·Wᵀ and x·W of the same weight ids, gemm in between, of parts that overlap. */
static void one_hold(void **state) {
    (void)state;
    float *expected = malloc(2 * READINGS * matrix_bytes(&c)), *found = malloc(matrix_bytes(&c));
    const size_t each = matrix_bytes(&c) / sizeof *expected;
    EACH_PRECISION(ops) {
        if (!has_copies(ops)) continue;
        int weight_id[READINGS];
        for (int r = 0; r < READINGS; r++) {
            multiply(ops, GEMM, &readings[r], expected + 2 * r * each);
            multiply(ops, new_weight_id(), &readings[r], expected + (2 * r + 1) * each);
        }
        hold(ops);
        for (int r = 0; r < READINGS; r++) { /* the same weight, read the other way round */
            const bool again = r && readings[r].first == readings[r - 1].first;
            weight_id[r] = again ? weight_id[r - 1] : new_weight_id();
        }
        for (int round = 0; round < 3; round++)
            for (int r = 0; r < READINGS; r++) {
                multiply(ops, GEMM, &readings[r], found);
                check_same(ops, r, found, expected + 2 * r * each);
                multiply(ops, weight_id[r], &readings[r], found);
                check_same(ops, r, found, expected + (2 * r + 1) * each);
            }
        ops->release();
    }
    free(expected);
    free(found);
}

/* Weights that change are read as they were held, after another hold or a release as they are. */
static void changes(void **state) {
    (void)state;
    float *before = malloc(matrix_bytes(&c)), *after = malloc(matrix_bytes(&c)),
          *found = malloc(matrix_bytes(&c));
    EACH_PRECISION(ops)
    for (int linear = 0; linear < 2 && has_copies(ops); linear++)
        for (int r = 0; r < 2; r++) {
            const int id = linear ? new_weight_id() : GEMM;
            hold(ops);
            multiply(ops, id, &readings[r], before);
            for (long i = 0; i < COUNT_OF_WEIGHTS; i++) weights.host[i] = -weights.host[i];
            upload(&weights);
            multiply(ops, id, &readings[r], found);
            check_same(ops, r, found, before);
            ops->release();
            multiply(ops, id, &readings[r], after);
            assert_memory_not_equal(after, before, matrix_bytes(&c));
            hold(ops);
            multiply(ops, id, &readings[r], found);
            check_same(ops, r, found, after);
            ops->release();
        }
    free(before);
    free(after);
    free(found);
}

/* fp8: a hold is a call of a weight's scale, however many products there are; x counts each. */
static void scales(void **state) {
    const struct ops *ops = ops_of(PRECISION_FP8);
    const struct reading *of = &readings[2];
    (void)state;
    if (!ops) return;
    const int id = new_weight_id();
    float *found = malloc(matrix_bytes(&c)), *w = weights.host + of->first;
    for (long t = 0; t < TOKENS; t++)
        for (long i = 0; i < 128; i++) row(&x, t)[i] = i == 0;
    upload(&x);
    const struct {
        float weight, product;
    } holds[] = {
        {1, 1},
        {4096, 1.75f}, /* it saturates once, in all products */
        {4096, 4096},
        {0x1p-7f, 0}, /* lost beside what has been within HISTORY holds */
    };
    for (size_t h = 0; h < COUNT(holds); h++) {
        for (long i = 0; i < of->rows * of->columns; i++) w[i] = holds[h].weight;
        upload(&weights);
        hold(ops);
        for (int again = 0; again < 2 * HISTORY; again++) {
            multiply(ops, id, of, found);
            assert_true(found[0] == holds[h].product);
        }
        ops->release();
    }
    const int resumed = resumed_weight_id(id); /* has the scales of the holds before */
    hold(ops);
    multiply(ops, resumed, of, found);
    ops->release();
    assert_true(found[0] == 0);
    for (int h = 2; h <= HISTORY; h++) {
        hold(ops);
        multiply(ops, id, of, found);
        assert_true(found[0] == 0);
    }
    hold(ops);
    multiply(ops, id, of, found);
    assert_true(found[0] == 0x1p-7f);
    ops->release();
    free(found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(one_hold),
        cmocka_unit_test(changes),
        cmocka_unit_test(scales),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
