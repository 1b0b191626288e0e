/* The rules of the loss scale (train/optimizer/loss_scale.h). */
#include "tests/support/unit.h"
#include "train/optimizer/loss_scale.h"

static void check(const struct loss_scale *s, double scale, int64_t good) {
    assert_true(s->scale == scale);
    assert_int_equal(s->good, good);
}

static void only_fp16_has_one(void **state) {
    (void)state;
    for (int precision = 0; precision < PRECISIONS; precision++) {
        if (precision == PRECISION_FP16) continue;
        struct loss_scale s = loss_scale_start((enum precision)precision);
        for (int i = 0; i < 2 * LOSS_SCALE_INTERVAL; i++) loss_scale_good(&s);
        loss_scale_resume(&s, 1024, 7);
        assert_false(loss_scale_lower(&s));
        assert_false(s.dynamic);
        check(&s, 1, 0);
    }
}

static void doubles_after_good_steps(void **state) {
    (void)state;
    struct loss_scale s = loss_scale_start(PRECISION_FP16);
    assert_true(s.dynamic);
    check(&s, 65536, 0);
    for (int i = 1; i < 2000; i++) {
        loss_scale_good(&s);
        check(&s, 65536, i);
    }
    loss_scale_good(&s);
    check(&s, 131072, 0);
    for (int i = 0; i < 20 * 2000; i++) loss_scale_good(&s);
    check(&s, 16777216, 0); /* and no further */
}

static void halves_and_counts_anew(void **state) {
    (void)state;
    struct loss_scale s = loss_scale_start(PRECISION_FP16);
    for (int i = 0; i < 1999; i++) loss_scale_good(&s);
    assert_true(loss_scale_lower(&s));
    check(&s, 32768, 0);
    for (int i = 0; i < 1999; i++) loss_scale_good(&s);
    check(&s, 32768, 1999);
    loss_scale_good(&s);
    check(&s, 65536, 0);
}

static void ends_at_1(void **state) {
    (void)state;
    struct loss_scale s = loss_scale_start(PRECISION_FP16);
    int lowered = 0;
    while (loss_scale_lower(&s)) lowered++;
    assert_int_equal(lowered, 16);
    check(&s, 1, 0);
}

static void goes_on_from_a_checkpoint(void **state) {
    (void)state;
    struct loss_scale s = loss_scale_start(PRECISION_FP16);
    loss_scale_resume(&s, 0, 0); /* of a run without a scale */
    check(&s, 65536, 0);
    loss_scale_resume(&s, 4096, 1999);
    check(&s, 4096, 1999);
    loss_scale_good(&s);
    check(&s, 8192, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_fp16_has_one),         cmocka_unit_test(doubles_after_good_steps),
        cmocka_unit_test(halves_and_counts_anew),    cmocka_unit_test(ends_at_1),
        cmocka_unit_test(goes_on_from_a_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
