/* Learning rates against values worked out by hand from the formulas in train/optimizer/lr_schedule.h. */
#include <math.h>

#include "tests/support/unit.h"
#include "train/optimizer/lr_schedule.h"

/* Rounding of a handful of double operations. */
static const double close_enough = 1e-15;

static struct train_config with(int schedule) {
    return (struct train_config){.steps = 110,
                                 .warmup_steps = 10,
                                 .lr = 2e-3,
                                 .min_lr_ratio = 0.1,
                                 .schedule = schedule,
                                 .decay_fraction = 0.2};
}

static void check(const struct train_config *train, long step, double expected) {
    assert_true(fabs(learning_rate(train, step, 0) - expected) <= close_enough);
}

static void every_schedule_warms_up(void **state) {
    (void)state;
    for (int schedule = LR_COSINE; schedule <= LR_WSD; schedule++) {
        struct train_config train = with(schedule);
        check(&train, 0, 2e-4);
        check(&train, 4, 1e-3);
        check(&train, 9, 2e-3);
        check(&train, 10, 2e-3);
    }
}

static void cosine(void **state) {
    (void)state;
    struct train_config train = with(LR_COSINE);
    check(&train, 35, 2e-3 * (0.1 + 0.9 * 0.853553390593273762)); /* a quarter: (1 + √½)/2 */
    check(&train, 60, 2e-3 * 0.55);
    check(&train, 110, 2e-4);
    check(&train, 500, 2e-4); /* past the end: stays */
}

static void linear(void **state) {
    (void)state;
    struct train_config train = with(LR_LINEAR);
    check(&train, 60, 2e-3 * 0.55);
    check(&train, 109, 2e-3 * 0.109);
    check(&train, 110, 2e-4);
    check(&train, 500, 2e-4);
}

static void constant(void **state) {
    (void)state;
    struct train_config train = with(LR_CONSTANT);
    check(&train, 109, 2e-3);
}

static void wsd(void **state) {
    (void)state;
    struct train_config train = with(LR_WSD); /* the last fifth: steps 88 to 109 */
    check(&train, 88, 2e-3);
    check(&train, 99, 2e-3 * 0.55);
    check(&train, 110, 2e-4);
    train.warmup_steps = 100; /* longer than what comes before the decay: that starts after it */
    check(&train, 100, 2e-3);
    check(&train, 105, 2e-3 * 0.55);
}

static void wsd_of_another_length_and_shape(void **state) {
    (void)state;
    struct train_config train = with(LR_WSD);
    train.decay_fraction = 0.4; /* steps 66 to 109 */
    check(&train, 66, 2e-3);
    check(&train, 88, 2e-3 * 0.55);
    train.decay_shape = WSD_SQRT;
    check(&train, 66, 2e-3);
    check(&train, 77, 2e-3 * 0.55); /* the root of a quarter */
    check(&train, 110, 2e-4);
    check(&train, 500, 2e-4);
    train.decay_fraction = 0;
    check(&train, 109, 2e-3);
    train.decay_fraction = 1; /* from the end of the warm-up */
    check(&train, 35, 2e-3 * 0.55);
}

/* As it was before the fraction was a key: ⌈N/5⌉ steps, whatever 0.2 rounds to. */
static void a_fifth_of_the_steps_decays(void **state) {
    (void)state;
    for (long steps = 1; steps < 100000; steps++) {
        struct train_config train = with(LR_WSD);
        train.steps = steps, train.warmup_steps = 0;
        long from = steps - (steps + 4) / 5;
        assert_true(learning_rate(&train, from, 0) == train.lr);
        assert_true(learning_rate(&train, from + 1, 0) < train.lr);
    }
}

static void warmup_by_tokens(void **state) {
    (void)state;
    struct train_config train = with(LR_WSD);
    train.warmup_tokens = 1000; /* and no steps of warm-up */
    assert_true(fabs(learning_rate(&train, 0, 64) - 2e-3 * 0.064) <= close_enough);
    assert_true(fabs(learning_rate(&train, 9, 900) - 2e-3 * 0.9) <= close_enough);
    assert_true(fabs(learning_rate(&train, 20, 1000) - 2e-3) <= close_enough);
    assert_true(fabs(learning_rate(&train, 99, 500) - 2e-3 * 0.55 * 0.5) <= close_enough); /* both at once */
    train.schedule = LR_COSINE;
    assert_true(fabs(learning_rate(&train, 55, 5000) - 2e-3 * 0.55) <= close_enough);
}

static void warmup_may_fill_or_pass_the_run(void **state) {
    (void)state;
    for (int schedule = LR_COSINE; schedule <= LR_WSD; schedule++) {
        struct train_config train = with(schedule);
        train.warmup_steps = 110;
        check(&train, 109, 2e-3);
        train.warmup_steps = 220;
        check(&train, 109, 1e-3);
        train.warmup_steps = 0;
        check(&train, 0, 2e-3);
    }
}

/* Of weight decay. */
static void decay_fades(void **state) {
    (void)state;
    struct train_config train = with(LR_COSINE);
    assert_true(decay_left(&train, 0) == 1 && decay_left(&train, 500) == 1);
    train.decay_schedule = DECAY_LINEAR;
    assert_true(decay_left(&train, 0) == 1 && decay_left(&train, 55) == 0.5);
    assert_true(fabs(decay_left(&train, 109) - 1.0 / 110) <= close_enough);
    assert_true(decay_left(&train, 110) == 0 && decay_left(&train, 500) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_warms_up),
        cmocka_unit_test(cosine),
        cmocka_unit_test(linear),
        cmocka_unit_test(constant),
        cmocka_unit_test(wsd),
        cmocka_unit_test(wsd_of_another_length_and_shape),
        cmocka_unit_test(a_fifth_of_the_steps_decays),
        cmocka_unit_test(warmup_by_tokens),
        cmocka_unit_test(warmup_may_fill_or_pass_the_run),
        cmocka_unit_test(decay_fades),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
