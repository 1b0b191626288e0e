/* The reference's dropout: its masks against the specification's, and how often they drop what together. */
#include "kernels/backends/backends.h"
#include "tests/kernels/reference/reference.h"

#include <math.h>

/* Masks as tests/golden/gdn_reference.py draws them: seed 1, step 3, site dropout.mixer of layer 2; a part of
 * a matrix has that part of its mask. */
static void dropout(void **state) {
    (void)state;
    static const char *const kept[2][3] = {{"0110000010110111", "1111011001001001", "0111110100101101"},
                                           {"1000111001011100", "1000000110101000", "0010001000000000"}};
    struct mask mask = {.site = 0xe51cdc337829fecf, .p = 0.5};
    real x[48], y[48];
    for (int i = 0; i < 48; i++) x[i] = (real)(i + 1);
    for (mask.head = 0; mask.head < 2; mask.head++) {
        ops->dropout(3, 16, &mask, x, 16, y, 16);
        for (int i = 0; i < 48; i++)
            assert_true(y[i] == (kept[mask.head][i / 16][i % 16] == '1' ? 2 * x[i] : 0));
        struct mask part = mask;
        part.row = 1, part.column = 5;
        ops->dropout(2, 11, &part, x + 21, 16, x + 21, 16); /* in place */
        for (int i = 0; i < 48; i++) assert_true(x[i] == (i / 16 >= 1 && i % 16 >= 5 ? y[i] : (real)(i + 1)));
        for (int i = 0; i < 48; i++) x[i] = (real)(i + 1);
    }
}

/* The part that is dropped, and how often an element and the next in its row, in its column or of another
 * step are dropped together: within five standard deviations. */
static void dropout_rates(void **state) {
    (void)state;
    enum { ROWS = 300, COLUMNS = 500 };
    for (double p = 0.1; p < 1; p += 0.4) {
        long count = 0, together[3] = {0};
        uint32_t limit = mask_limit(p);
        for (uint64_t r = 0; r < ROWS; r++)
            for (uint32_t c = 0; c < COLUMNS; c++) {
                if (mask_bits(mask_row(7, 0, r), c) >= limit) continue;
                count++;
                together[0] += mask_bits(mask_row(7, 0, r), c + 1) < limit;
                together[1] += mask_bits(mask_row(7, 0, r + 1), c) < limit;
                together[2] += mask_bits(mask_row(8, 0, r), c) < limit;
            }
        const double n = ROWS * COLUMNS, both = p * p;
        assert_true(fabs((double)count - n * p) < 5 * sqrt(n * p * (1 - p)));
        for (int i = 0; i < 3;
             i++) /* pairs that share an element vary together: twice the variance is enough */
            assert_true(fabs((double)together[i] - n * both) < 5 * sqrt(2 * n * both * (1 - both)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(dropout), cmocka_unit_test(dropout_rates)};
    ops = ops_find("reference");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
