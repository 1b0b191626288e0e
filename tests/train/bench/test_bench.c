/* What gdn bench makes of times: calls that are queued on a device between two waits, calls on the host, and
 * the nominal peaks of GPUs. */
#include <math.h>
#include <time.h>

#include "tests/support/unit.h"
#include "train/bench/nominal.h"
#include "train/bench/time.h"

/* The clock, in nanoseconds, stands in for the system's: no time passes but what calls take. */
static int64_t now = 1000;

int clock_gettime(clockid_t clock, struct timespec *time) {
    (void)clock;
    *time = (struct timespec){.tv_sec = now / 1000000000, .tv_nsec = now % 1000000000};
    return 0;
}

/* A call takes 300 us, every third one twice as long; where it is queued, 10 us of the host. */
enum { EACH = 300000, QUEUE = 10000 };
static int queued, max, waits, calls;

static bool near(double seconds, double nanoseconds) {
    return fabs(seconds * 1e9 - nanoseconds) < 1;
}

/* A device that begins when the host waits. */
static void queue(const void *context) {
    assert_ptr_equal(context, &queued);
    now += QUEUE;
    if (++queued > max) max = queued;
}

static int wait_for_all(void) {
    now += (int64_t)queued * EACH * (waits++ % 3 == 2 ? 2 : 1);
    queued = 0;
    return 0;
}

static void test_queued_calls(void **state) {
    (void)state;
    const struct device device = {.name = "slow", .wait = wait_for_all};
    struct call_time t = bench_time(&device, queue, &queued, 0.05);
    assert_int_equal(queued, 0); /* what was queued has been waited for */
    assert_int_equal(max, 17);   /* 5 ms of calls of 310 us */
    /* How long one is; then 50 ms: two batches in three of 5.27 ms, one of 10.37. */
    assert_int_equal(waits, 3 + 8);
    assert_true(near(t.best, EACH + QUEUE) && near(t.seconds, EACH + QUEUE) && near(t.queued, QUEUE));
}

static void call_host(const void *context) {
    assert_null(context);
    now += calls++ % 3 == 2 ? 2 * EACH : EACH;
}

static void test_calls_on_the_host(void **state) {
    (void)state;
    struct call_time t = bench_time(&host_device, call_host, NULL, 0);
    assert_int_equal(calls, 1 + 7); /* the first call of all is not timed */
    assert_true(near(t.best, EACH) && near(t.seconds, EACH) && t.queued == 0);
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
