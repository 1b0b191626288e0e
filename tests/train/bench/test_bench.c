/* What gdn bench makes of times: calls that are queued on a device between two waits, calls on the host, and
 * the nominal peaks of GPUs. */
#include <time.h>

#include "tests/support/unit.h"
#include "train/bench/nominal.h"
#include "train/bench/time.h"

/* A call takes 300 us, or what a busy machine makes of that: `min` is the shortest that it has been. */
static const double each = 300e-6;
static double min;
static int queued, max, waits;

static void rest(int times) {
    double start = bench_now();
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * each * times)}, NULL);
    double one = (bench_now() - start) / times;
    if (one < min) min = one;
}

/* A device that works while the host waits. */
static void queue(const void *context) {
    assert_ptr_equal(context, &queued);
    if (++queued > max) max = queued;
}

static int wait_for_all(void) {
    rest(queued);
    queued = 0;
    waits++;
    return 0;
}

static void test_queued_calls(void **state) {
    (void)state;
    const struct device device = {.name = "slow", .wait = wait_for_all};
    min = 1;
    struct call_time t = bench_time(&device, queue, &queued, 0.05);
    assert_int_equal(queued, 0); /* what was queued has been waited for */
    assert_true(waits >= 10 && max <= 200);
    assert_true(max >= 2 || min > each * 10); /* a machine so busy that one call is long enough */
    assert_true(t.best >= min && t.best < 2 * min && t.seconds >= t.best);
    assert_true(t.queued > 0 && t.queued < each / 4);
}

static void sleep_once(const void *context) {
    (void)context;
    rest(1);
}

static void test_calls_on_the_host(void **state) {
    (void)state;
    min = 1;
    struct call_time t = bench_time(&host_device, sleep_once, NULL, 0);
    assert_true(t.best >= min && t.best < 2 * min && t.seconds >= t.best);
    assert_true(t.queued == 0);
}

static void test_median(void **state) {
    (void)state;
    double odd[] = {5, 1, 3};
    assert_true(bench_median(odd, 3) == 3);
}

static void test_nominal(void **state) {
    (void)state;
    const char *h200 = "NVIDIA H200, 139.8 GiB, sm_90, driver 580.1";
    assert_true(nominal_flops(h200, PRECISION_BF16) == 989.5e12 && nominal_copy(h200) == 4.8e12);
    assert_true(nominal_flops(h200, PRECISION_FP8) == 1979e12 &&
                nominal_flops(h200, PRECISION_FP32) == 67e12);
    assert_true(nominal_flops("NVIDIA H200 NVL, 140 GiB", PRECISION_BF16) == 835.5e12);
    assert_true(nominal_flops("NVIDIA H200 MIG 1g.18gb, 16 GiB", PRECISION_BF16) == 0);
    assert_true(nominal_flops("NVIDIA A100-SXM4-80GB, 79.2 GiB", PRECISION_FP8) == 0);
    assert_true(nominal_copy("emulated device, 8.0 GiB") == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queued_calls),
        cmocka_unit_test(test_calls_on_the_host),
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_nominal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
