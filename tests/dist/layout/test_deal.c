/* Dealing whole matrices: every one has one owner, nobody has much more to do than others, and what is split
 * over the tensor axis has the same owner on all tensor ranks, whatever else their tables hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/layout/deal.h"
#include "kernels/base/random.h"
#include "tests/support/unit.h"

enum { ROWS = 60, TENSOR = 3 };

static double cost_of(const void *unused, long rows, long columns) {
    (void)unused;
    return (double)rows * (double)rows * (double)columns;
}

/* A rank's table, in an order of its own: matrices that all tensor ranks have a part of, some that it has
 * alone, vectors. */
static void make(int tensor_index, struct row *row) {
    for (int i = 0; i < ROWS; i++) {
        int which = tensor_index % 2 ? ROWS - 1 - i : i;
        bool split = which % 3 == 0, alone = which % 3 == 1;
        row[i] = (struct row){.ndim = 2, .treatment.whole = which % 3 != 2 ? WHOLE_TENSOR : WHOLE_NONE};
        row[i].shape[0] = TENSOR * (long)(1 + random_bits(1, 2, (uint64_t)which) % 90);
        row[i].shape[1] = (long)(1 + random_bits(1, 3, (uint64_t)which) % 50);
        memcpy(row[i].local, row[i].shape, sizeof row[i].shape);
        if (split) row[i].local[0] /= TENSOR;
        snprintf(row[i].name, sizeof row[i].name, alone ? "alone.%d.%d" : "shared.%d", which, tensor_index);
    }
}

static void check_even(const struct deal *deal, int data) {
    double all = 0, most = 0, longest = 0;
    for (int rank = 0; rank < data; rank++) {
        double load = 0;
        for (int i = 0; i < deal->count; i++)
            if (deal->item[i].owner == rank) load += deal->item[i].cost;
        all += load;
        if (load > most) most = load;
    }
    for (int i = 0; i < deal->count; i++)
        if (deal->item[i].cost > longest) longest = deal->item[i].cost;
    /* The bound for a list in any order; in falling order it is better. */
    assert_true(most <= all / data + longest * (data - 1) / data + 1e-6 * all);
}

static void deals_evenly_and_alike(void **unused) {
    (void)unused;
    for (int data = 1; data <= 9; data += 2) {
        struct deal deal[TENSOR];
        struct row row[TENSOR][ROWS];
        int owner[ROWS], seen = 0;
        for (int t = 0; t < TENSOR; t++) {
            make(t, row[t]);
            struct table table = {.rows = ROWS, .row = row[t]};
            assert_int_equal(deal_create(&table, data, cost_of, NULL, &deal[t]), 0);
            assert_int_equal(deal[t].count, 2 * ROWS / 3);
            check_even(&deal[t], data);
        }
        for (int t = 0; t < TENSOR; t++)
            for (int i = 0; i < ROWS / 3; i++) { /* the split ones come first */
                const struct dealt *item = &deal[t].item[i];
                const struct table table = {.rows = ROWS, .row = row[t]};
                assert_true(deal_shape(&table, item->row).split);
                assert_in_range(item->owner, 0, data - 1);
                assert_string_equal(row[t][item->row].name, row[0][deal[0].item[i].row].name);
                if (t == 0) owner[i] = item->owner;
                assert_int_equal(item->owner, owner[i]);
                seen++;
            }
        assert_int_equal(seen, TENSOR * ROWS / 3);
        for (int t = 0; t < TENSOR; t++) deal_free(&deal[t]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(deals_evenly_and_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
