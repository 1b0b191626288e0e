/* From which confidence on an exit says often enough what the last layer says. */
#include "tests/support/unit.h"
#include "train/evaluation/exits.h"

static void thresholds(void **state) {
    (void)state;
    struct exit_tally tally = {.nats = 30};
    double leave;
    tally.tokens[100] = 4, tally.same[100] = 1;
    tally.tokens[400] = 4, tally.same[400] = 3;
    tally.tokens[900] = 10, tally.same[900] = 9;
    tally.tokens[1000] = 2, tally.same[1000] = 2;
    assert_true(exit_tokens(&tally) == 20 && exit_loss_of(&tally) == 1.5 && exit_agreement(&tally) == 0.75);
    assert_int_equal(exit_threshold(&tally, 0.75, &leave), 0); /* all of them do */
    assert_true(leave == 1);
    assert_int_equal(exit_threshold(&tally, 0.8, &leave), 101); /* 14 of 16 */
    assert_true(leave == 0.8);
    assert_int_equal(exit_threshold(&tally, 0.9, &leave), 401); /* 11 of 12 */
    assert_int_equal(exit_threshold(&tally, 0.98, &leave), 901);
    assert_true(leave == 0.1);
    assert_int_equal(exit_threshold(&tally, 1, &leave), 901);
    tally.same[1000] = 1;
    assert_int_equal(exit_threshold(&tally, 0.98, &leave), CONFIDENCES + 1);
    assert_true(leave == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(thresholds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
