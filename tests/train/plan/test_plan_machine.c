/* What plan_machine_place makes of a mesh on nodes. */
#include "tests/support/unit.h"
#include "train/plan/machine.h"

/* Which axes leave their nodes. */
static void test_place(void **state) {
    (void)state;
    static const struct {
        int data, tensor, pipeline, node;
        bool data_leaves, tensor_leaves, pipeline_leaves;
        int stages;
    } cases[] = {
        {2, 4, 4, 8, false, false, true, 1},  {32, 2, 1, 8, true, false, true, 1},
        {2, 2, 2, 8, false, false, false, 2}, {2, 2, 2, 6, true, false, true, 1},
        {1, 16, 2, 8, true, true, true, 1},   {2, 1, 8, 8, false, false, true, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct axis_sizes sizes = axes_of(cases[i].data, cases[i].tensor, cases[i].pipeline);
        struct plan_machine machine = {.node = cases[i].node, .inside = 8, .outside = 2};
        plan_machine_place(&machine, sizes.size, 1);
        assert_int_equal(machine.leaves[AXIS_TENSOR], cases[i].tensor_leaves);
        assert_true(machine.bandwidth[AXIS_TENSOR] == (cases[i].tensor_leaves ? 2 : 8));
        assert_int_equal(machine.leaves[AXIS_DATA], cases[i].data_leaves);
        assert_int_equal(machine.leaves[AXIS_PIPELINE], cases[i].pipeline_leaves);
        assert_int_equal(machine.stages, cases[i].stages);
    }
    for (int group = 1; group <= 16; group *= 2) { /* of copies, with two tensor ranks each */
        struct axis_sizes sizes = axes_of(32, 2, 1);
        struct plan_machine machine = {.node = 8, .inside = 8, .outside = 2};
        plan_machine_place(&machine, sizes.size, group);
        assert_true(machine.within == (group <= 4 ? 8 : 0));
        assert_int_equal(machine.others, 32 / group - 1);
        /* Of 32 / group groups 4 / group are in a node. */
        assert_true(machine.stays == (group <= 4 ? (4.0 / group - 1) / (32.0 / group - 1) : 0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
