/* The mean of residual streams that are the same is each of them, to the bit, on every backend: so a rule that has
 * several streams begins as the model that has one (model.md 12). */
#include <string.h>

#include "kernels/base/streams.h"
#include "tests/support/backend.h"
#include "tests/support/unit.h"

enum { T = 5, D = 77 }; /* no multiple of a vector */

/* Many digits, of either sign. */
static void fill(real x[T * D]) {
    uint32_t state = 1;
    for (long i = 0; i < T * D; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (real)((double)state / 0x1p31 - 1) * (real)1.1;
    }
}

static void mean_of(const struct ops *ops, long n) {
    real x[T * D], y[T * D];
    const struct device *device = ops->device;
    fill(x);
    real *one = device->reserve(sizeof x), *all = device->reserve(STREAMS_MAX * sizeof x),
         *mean = device->reserve(sizeof y);
    assert_true(one && all && mean);
    device->upload(one, x, sizeof x);
    ops->streams_spread(T, n, D, 1, one, all);
    ops->streams_sum(T, n, D, (real)1 / (real)n, all, mean);
    device->download(y, mean, sizeof y);
    device->release(one);
    device->release(all);
    device->release(mean);
    for (long i = 0; i < T * D; i++)
        if (x[i] != y[i])
            fail_msg("%s, %ld streams: the mean of %a is %a", ops->name, n, (double)x[i], (double)y[i]);
}

static void mean(void **state) {
    (void)state;
    for (const struct ops *const *each = test_backends(); *each; each++)
        for (long n = 2; n <= STREAMS_MAX; n *= 2) mean_of(*each, n);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(mean)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
