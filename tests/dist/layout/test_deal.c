/* Dealing whole matrices: every one has one owner, nobody has much more to do than others, and what is split
 * over the tensor axis has the same owner on all tensor ranks, whatever else their tables hold; rounds have
 * each of these once, one for each tensor rank at a time. */
#include <math.h>
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
        row[i].split = split ? SPLIT_ROWS : SPLIT_NONE;
        row[i].alone = alone;
        snprintf(row[i].name, sizeof row[i].name, alone ? "alone.%d.%d" : "shared.%d", which, tensor_index);
    }
}

/* What all tensor ranks have to do. */
static void check_even(const struct deal deal[TENSOR], int data) {
    double load[9 * TENSOR] = {0}, all = 0, most = 0, longest = 0;
    for (int t = 0; t < TENSOR; t++)
        for (int i = 0; i < deal[t].count; i++) {
            const struct dealt *item = &deal[t].item[i];
            if (item->tensor == ALL_TENSOR_RANKS || item->tensor == t)
                load[item->owner * TENSOR + t] += item->cost;
            if (item->cost > longest) longest = item->cost;
        }
    for (int rank = 0; rank < data * TENSOR; rank++) {
        all += load[rank];
        if (load[rank] > most) most = load[rank];
    }
    /* The bound for a list in any order; in falling order it is better. */
    assert_true(most <= all / (data * TENSOR) + longest + 1e-6 * all);
}

/* Those dealt over tensor ranks come in rounds, each once, longest first. */
static void check_rounds(struct deal *deal, int data) {
    int seen[ROWS] = {0}, shared = 0;
    for (int i = 0; i < deal->count; i++) {
        deal->item[i].active = i % 7 != 3;
        shared += deal->item[i].active && deal->item[i].tensor != ALL_TENSOR_RANKS;
    }
    for (int rank = 0; rank < data; rank++) {
        double last[TENSOR] = {INFINITY, INFINITY, INFINITY};
        deal_rewind(deal);
        while (deal_round(deal, rank))
            for (int t = 0; t < TENSOR; t++) {
                if (deal->turn[t] == deal->count) continue;
                const struct dealt *item = &deal->item[deal->turn[t]];
                assert_true(item->active && item->owner == rank && item->tensor == t);
                assert_true(item->cost <= last[t]);
                assert_int_equal(seen[deal->turn[t]]++, 0);
                last[t] = item->cost;
                shared--;
            }
    }
    assert_int_equal(shared, 0);
}

static void deals_evenly_and_alike(void **unused) {
    (void)unused;
    for (int data = 1; data <= 9; data += 2) {
        struct deal deal[TENSOR];
        struct row row[TENSOR][ROWS];
        for (int t = 0; t < TENSOR; t++) {
            make(t, row[t]);
            struct table table = {.rows = ROWS, .row = row[t]};
            const struct deal_ranks ranks = {data, TENSOR, t};
            assert_int_equal(deal_create(&table, &ranks, cost_of, NULL, &deal[t]), 0);
            assert_int_equal(deal[t].count, 2 * ROWS / 3);
        }
        for (int t = 0; t < TENSOR; t++)
            for (int i = 0; i < ROWS / 3; i++) { /* the split ones come first */
                const struct dealt *item = &deal[t].item[i], *first = &deal[0].item[i];
                const struct table table = {.rows = ROWS, .row = row[t]};
                assert_true(deal_shape(&table, item->row).split);
                assert_in_range(item->owner, 0, data - 1);
                assert_in_range(item->tensor, 0, TENSOR - 1);
                assert_string_equal(row[t][item->row].name, row[0][first->row].name);
                assert_true(item->owner == first->owner && item->tensor == first->tensor);
            }
        check_even(deal, data);
        for (int t = 0; t < TENSOR; t++) {
            for (int i = ROWS / 3; i < deal[t].count; i++)
                assert_int_equal(deal[t].item[i].tensor, ALL_TENSOR_RANKS);
            check_rounds(&deal[t], data);
            deal_free(&deal[t]);
        }
    }
}

/* A copy goes to one tensor rank where its arithmetic is worth a message. */
static void copies_are_dealt_where_it_pays(void **unused) {
    (void)unused;
    struct row row[] = {
        {.name = "large", .ndim = 2, .shape = {200, 300}, .local = {200, 300}},
        {.name = "small", .ndim = 2, .shape = {20, 30}, .local = {20, 30}},
        {.name = "alone", .ndim = 2, .shape = {200, 300}, .local = {200, 300}, .alone = true}};
    const struct table table = {.rows = 3, .row = row};
    const bool pays[] = {true, false, false};
    struct deal deal;
    for (int i = 0; i < 3; i++) row[i].treatment.whole = WHOLE_TENSOR;
    for (int tensor = 1; tensor <= 2; tensor++) {
        assert_int_equal(deal_create(&table, &(struct deal_ranks){1, tensor, 0}, cost_of, NULL, &deal), 0);
        for (int i = 0; i < deal.count; i++)
            assert_true((deal.item[i].tensor != ALL_TENSOR_RANKS) == (tensor > 1 && pays[deal.item[i].row]));
        deal_free(&deal);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(deals_evenly_and_alike),
                                       cmocka_unit_test(copies_are_dealt_where_it_pays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
