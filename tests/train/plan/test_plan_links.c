/* The predicted step where messages and sums share links, by hand. */
#include "tests/train/plan/script.h"

/* Two messages of one rank to others divide its link; a buffer is free once its send is done. */
static void test_link(void **state) {
    (void)state;
    struct script script = {0};
    message(&script, ACT_POST, 1, 0, 0, 0);
    message(&script, ACT_POST, 2, 0, 1, 0);
    message(&script, ACT_SEND, 0, 1, 0, 4);
    message(&script, ACT_SEND, 0, 2, 1, 8);
    message(&script, ACT_FREE, 0, 0, 0, 0);
    compute(&script, 0, 1);
    message(&script, ACT_RECEIVE, 1, 0, 0, 0);
    message(&script, ACT_RECEIVE, 2, 0, 1, 0);
    struct simulation s = run(&script, 3, &unit);
    assert_true(s.seconds == 12);
    assert_true(s.action[0][3].start == 8); /* the arithmetic behind FREE */
    simulation_free(&s);
}

/* Messages from one rank to another go one after the other. */
static void test_two_messages(void **state) {
    (void)state;
    struct script script = {0};
    for (int k = 0; k < 2; k++) message(&script, ACT_POST, 1, 0, k, 0);
    for (int k = 0; k < 2; k++) message(&script, ACT_SEND, 0, 1, k, 4);
    message(&script, ACT_RECEIVE, 1, 0, 0, 0);
    compute(&script, 1, 1);
    message(&script, ACT_RECEIVE, 1, 0, 1, 0);
    struct simulation s = run(&script, 2, &unit);
    assert_true(s.seconds == 8);
    assert_true(s.action[1][3].start == 4); /* the arithmetic */
    simulation_free(&s);
}

/* What comes to a rank divides the way, too, where it goes the same: a message, and a sum of the receiver's
 * that began before it. */
static void test_way_in(void **state) {
    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        struct script script = {0};
        struct action reduce = {.act = ACT_REDUCE}, finish = {.act = ACT_FINISH};
        put(&script, 1, reduce)->bytes[AXIS_COPIES] = 16;
        message(&script, ACT_POST, 1, 0, 0, 0);
        compute(&script, 0, 1);
        message(&script, ACT_SEND, 0, 1, 0, 4);
        message(&script, ACT_RECEIVE, 1, 0, 0, 0);
        compute(&script, 1, 32);
        put(&script, 1, finish);
        struct plan_machine machine = unit;
        machine.leaves[AXIS_COPIES] = machine.leaves[AXIS_PIPELINE] = leaves;
        struct simulation s = run(&script, 2, &machine);
        assert_true(s.seconds == 1 + 4 * (leaves ? 2 : 1) + 32);
        simulation_free(&s);
    }
}

/* Two messages to one rank, from two others. */
static void test_two_ways(void **state) {
    (void)state;
    struct script script = {0};
    for (int from = 0; from < 2; from++) {
        message(&script, ACT_POST, 2, from, from, 0);
        message(&script, ACT_SEND, from, 2, from, 4);
    }
    for (int from = 0; from < 2; from++) message(&script, ACT_RECEIVE, 2, from, from, 0);
    struct simulation s = run(&script, 3, &unit);
    assert_true(s.seconds == 8);
    simulation_free(&s);
}

/* The step of a sum and a message of one rank. */
static struct simulation sum_and_message(const struct plan_machine *machine, int64_t sum, int64_t bytes) {
    struct script script = {0};
    message(&script, ACT_POST, 1, 0, 0, 0);
    put(&script, 0, (struct action){.act = ACT_REDUCE})->bytes[AXIS_DATA] = sum;
    message(&script, ACT_SEND, 0, 1, 0, bytes);
    put(&script, 0, (struct action){.act = ACT_FINISH});
    message(&script, ACT_RECEIVE, 1, 0, 0, 0);
    return run(&script, 2, machine);
}

/* Beside each other on links of their own; where both leave the node they divide the way out, a sum with
 * three others being three messages. */
static void test_way_out(void **state) {
    (void)state;
    for (int parts = 0; parts <= 3; parts++) {
        struct plan_machine machine = unit;
        machine.leaves[AXIS_DATA] = true;
        machine.leaves[AXIS_PIPELINE] = parts > 0;
        machine.others = parts;
        struct simulation s = sum_and_message(&machine, 16, 4);
        assert_true(s.seconds == (parts ? 20 : 16));
        /* A third is no exact number. */
        assert_float_equal(s.rank[1].exposed[AXIS_PIPELINE], 4 * (1 + parts), 1e-12);
        simulation_free(&s);
    }
}

/* Of a sum with four others half of what it sends may stay in the node: two messages. */
static void test_parts_across(void **state) {
    (void)state;
    struct plan_machine machine = unit;
    machine.leaves[AXIS_DATA] = machine.leaves[AXIS_PIPELINE] = true;
    machine.others = 4;
    machine.stays = 0.5;
    struct simulation s = sum_and_message(&machine, 32, 4);
    assert_true(s.seconds == 20);
    assert_float_equal(s.rank[1].exposed[AXIS_PIPELINE], 12, 1e-12);
    simulation_free(&s);
}

/* Where nothing moves by itself, sums travel while they are waited for, in that order. */
static void test_synchronous(void **state) {
    (void)state;
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        struct script script = {0};
        struct plan_machine machine = unit;
        machine.synchronous = synchronous;
        for (int k = 0; k < 2; k++)
            put(&script, 0, (struct action){.act = ACT_REDUCE, .index = k})->bytes[AXIS_DATA] = 8;
        compute(&script, 0, 32);
        for (int k = 1; k >= 0; k--) put(&script, 0, (struct action){.act = ACT_FINISH, .index = k});
        struct simulation s = run(&script, 1, &machine);
        assert_true(s.seconds == 32 + (synchronous ? 16 : 0));
        assert_true(s.rank[0].exposed[AXIS_DATA] == (synchronous ? 16 : 0));
        simulation_free(&s);
    }
}

/* Neighbours in a pipeline that are in one node send each other messages over its links. */
static void test_stages_of_a_node(void **state) {
    (void)state;
    struct script script = {0};
    struct plan_machine machine = unit;
    machine.leaves[AXIS_PIPELINE] = true;
    machine.inside = 4;
    machine.stages = 2;
    message(&script, ACT_SEND, 0, 1, 0, 8);
    message(&script, ACT_RECEIVE, 1, 0, 0, 0);
    message(&script, ACT_SEND, 1, 2, 1, 8);
    message(&script, ACT_RECEIVE, 2, 1, 1, 0);
    struct simulation s = run(&script, 3, &machine);
    assert_true(s.action[1][0].end == 2 && s.seconds == 2 + 8);
    simulation_free(&s);
}

int main(void) {
    unit = plan_machine_of(1, 1, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_link),        cmocka_unit_test(test_two_messages),
        cmocka_unit_test(test_way_in),      cmocka_unit_test(test_two_ways),
        cmocka_unit_test(test_way_out),     cmocka_unit_test(test_parts_across),
        cmocka_unit_test(test_synchronous), cmocka_unit_test(test_stages_of_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
