/* The reference's weighted sums of sources, and their backward pass, against numbers written here. */
#include "kernels/backends/backends.h"
#include "tests/kernels/reference/reference.h"

#include <string.h>

/* Two sums of two sources [2, 3]. */
static void weighted_sums(void **state) {
    (void)state;
    real x[] = {1, 2, 3, 4, 5, 6}, s[] = {1, 1, 1, 2, 2, 2}, base[] = {100, 0, 0, 0, 0, 200};
    real a[] = {2, 3, -1, 5}, b[] = {1, 1, 7, 7}, y[2][6], dx[6] = {1, 0, 0, 0, 0, 7}, ds[6] = {0}, da[2][6];
    const real *source[] = {x, s}, *weight[] = {a, b}, *from[] = {base, y[1]}, *dy[] = {s, x};
    real *to[] = {y[0], y[1]}, *left[] = {dx, ds}, *dweight[] = {da[0], da[1]};
    memcpy(y[1], base, sizeof base);
    ops->add_sources(2, 3, 2, 2, weight, 2, source, from, to); /* weights [token, source] */
    check_near("add_sources", y[0][0], 105);
    check_near("add_sources", y[0][5], 204);
    check_near("add_sources", y[1][0], 102);
    check_near("add_sources", y[1][5], 256);
    ops->add_sources(2, 3, 2, 1, weight, 0, source, from, to); /* one for all tokens */
    check_near("add_sources", y[0][5], 218);
    ops->sources_back(2, 3, 2, 2, weight, 2, source, dy, left, dweight, 3); /* tokens' gradients 3 apart */
    check_near("sources_back", dx[0], 1 + 2 * 1 + 1 * 1);
    check_near("sources_back", dx[5], 7 - 1 * 2 + 7 * 6);
    check_near("sources_back", ds[5], 5 * 2 + 7 * 6);
    check_near("sources_back", da[0][0], 6);
    check_near("sources_back", da[0][3], 30);
    check_near("sources_back", da[1][4], 30);
    ops->sources_back(2, 3, 1, 1, weight, 0, source, dy, NULL, dweight, 1);
    check_near("sources_back", da[0][1], 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(weighted_sums)};
    ops = ops_find("reference");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
