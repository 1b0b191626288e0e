/* The predicted step: schedules whose times are known by hand. Costs are chosen as small powers of two, so
 * that sums of seconds are exact. */
#include "dist/verify/verify.h"
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/rules/rules.h"
#include "tests/train/plan/script.h"

/* ------------------------------------------------------------------------------------------ by hand */

static void test_message(void **state) {
    (void)state;
    struct script script = {0};
    compute(&script, 0, 4);
    message(&script, ACT_SEND, 0, 1, 0, 2);
    message(&script, ACT_RECEIVE, 1, 0, 0, 0);
    compute(&script, 1, 8);
    struct plan_machine machine = unit;
    machine.latency = 0.5;
    struct simulation s = run(&script, 2, &machine);
    assert_true(s.seconds == 4 + 0.5 + 2 + 8);
    assert_true(s.rank[1].bubble == 4); /* until it was sent; from then on it waits for the wire */
    assert_true(s.rank[1].exposed[AXIS_PIPELINE] == 2.5);
    assert_true(s.rank[0].arithmetic == 4 && s.rank[0].bubble == 10.5);
    check_sum(&s, 0);
    check_sum(&s, 1);
    simulation_free(&s);
}

/* A receive that was started early lets the message move beside arithmetic; one that was not, does not. */
static void test_overlap(void **state) {
    (void)state;
    for (int early = 0; early < 2; early++) {
        struct script script = {0};
        message(&script, ACT_SEND, 0, 1, 0, 4);
        compute(&script, 0, 1);
        if (early) message(&script, ACT_POST, 1, 0, 0, 0);
        compute(&script, 1, 8);
        message(&script, ACT_RECEIVE, 1, 0, 0, 0);
        struct simulation s = run(&script, 2, &unit);
        assert_true(s.seconds == (early ? 8 : 12));
        assert_true(s.rank[1].exposed[AXIS_PIPELINE] == (early ? 0 : 4));
        simulation_free(&s);
    }
}

/* What compressing a message takes comes before it. */
static void test_compressed_message(void **state) {
    (void)state;
    struct script script = {0};
    put(&script, 0, (struct action){.act = ACT_SEND, .peer = 1})->bytes[AXIS_CONTEXT] = 16;
    script.cost[0][0].bytes[AXIS_PIPELINE] = 4;
    message(&script, ACT_RECEIVE, 1, 0, 0, 0);
    struct simulation s = run(&script, 2, &unit);
    assert_true(s.seconds == 20 && s.rank[0].exposed[AXIS_CONTEXT] == 16 &&
                s.rank[1].exposed[AXIS_PIPELINE] == 4);
    check_sum(&s, 0);
    simulation_free(&s);
}

/* A bucket's sum overlaps arithmetic; tensor sums do not; the norm needs everyone. */
static void test_sums(void **state) {
    (void)state;
    struct script script = {0};
    struct action reduce = {.act = ACT_REDUCE}, finish = {.act = ACT_FINISH}, norm = {.act = ACT_NORM};
    put(&script, 0, reduce)->bytes[AXIS_DATA] = 16;
    struct action_cost *pass = put(&script, 0, (struct action){.act = ACT_BACKWARD});
    pass->flops = 4;
    pass->bytes[AXIS_TENSOR] = 2;
    put(&script, 0, finish);
    put(&script, 0, norm);
    compute(&script, 1, 1);
    put(&script, 1, norm);
    put(&script, 1, (struct action){.act = ACT_UPDATE})->memory = 32;
    struct simulation s = run(&script, 2, &unit);
    assert_true(s.rank[0].exposed[AXIS_TENSOR] == 2);
    assert_true(s.rank[0].exposed[AXIS_DATA] == 10);
    assert_true(s.rank[1].bubble == 15 && s.rank[1].update == 32);
    assert_true(s.seconds == 48);
    check_sum(&s, 0);
    check_sum(&s, 1);
    simulation_free(&s);
}

/* Copies in groups: a sum goes within them, then across, a gather the other way round, one bucket after the
 * other. */
static void test_groups(void **state) {
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        static const enum act starts[] = {ACT_REDUCE, ACT_GATHER}, waits[] = {ACT_FINISH, ACT_GATHERED};
        struct plan_machine machine = unit;
        machine.within = inside ? 4 : 0;
        machine.leaves[AXIS_DATA] = inside;
        for (int k = 0; k < 2; k++) {
            struct script script = {0};
            for (int bucket = 0; bucket < 2; bucket++) {
                struct action_cost *cost =
                    put(&script, 0, (struct action){.act = starts[k], .index = bucket});
                cost->bytes[AXIS_DATA] = 20, cost->within = 16;
            }
            for (int bucket = 0; bucket < 2; bucket++)
                put(&script, 0, (struct action){.act = waits[k], .index = bucket});
            struct simulation s = run(&script, 1, &machine);
            assert_true(s.seconds == (inside ? 2 * (16.0 / 4 + 4) : 40));
            simulation_free(&s);
        }
    }
}

static void test_standstill(void **state) {
    (void)state;
    struct script script = {0};
    message(&script, ACT_RECEIVE, 0, 1, 0, 0);
    message(&script, ACT_RECEIVE, 1, 0, 1, 0);
    struct schedule schedule = {.ranks = 2, .rank = script.rank, .messages = 4};
    struct action_cost *cost[2] = {script.cost[0], script.cost[1]};
    struct simulation out;
    assert_int_equal(simulate(&schedule, cost, &unit, &out), GDN_INTERNAL);
    gdn_failure_clear();
}

/* -------------------------------------------------------------------------------------- real schedules */

/* Plain layers, one a stage, forward passes of 1 second and backward ones of 2, and messages that take no
 * time. Then 1F1B takes (micro-batches + stages − 1)·3 seconds; interleaved, the bubble shrinks by the number
 * of chunks (Narayanan et al. 2021, 2.2). */
static double pipeline_seconds(int ranks, int chunks, int micro_batches) {
    enum { MAX_STAGES = 16 };
    struct model_config model = {.num_layers = ranks * chunks};
    struct edges edges;
    struct routes routes;
    struct schedule schedule;
    struct span stage[MAX_STAGES];
    for (int s = 0; s < ranks * chunks; s++) stage[s] = (struct span){s, s + 1};
    struct layout layout = {.size[AXIS_DATA] = 1,
                            .size[AXIS_TENSOR] = 1,
                            .size[AXIS_PIPELINE] = ranks,
                            .chunks = chunks,
                            .stage = stage};
    struct route_widths widths = {.node = 1, .edge = 1};
    struct schedule_options options = {.micro_batches = micro_batches, .num_layers = ranks * chunks};
    assert_int_equal(edges_create(&model, &edges), 0);
    assert_int_equal(routes_create(&edges, NULL, &layout, &widths, &routes), 0);
    assert_int_equal(schedule_create(&edges, &routes, &layout, &options, &schedule), 0);
    struct action_cost *cost[MAX_STAGES];
    for (int r = 0; r < ranks; r++) {
        const struct actions *list = &schedule.rank[r];
        cost[r] = test_calloc((size_t)list->count, sizeof **cost);
        for (int i = 0; i < list->count; i++) {
            const struct action *a = &list->action[i];
            bool whole = a->act == ACT_BACKWARD && a->layer >= stage[a->chunk * ranks + r].first &&
                         a->end <= stage[a->chunk * ranks + r].first;
            cost[r][i].flops = a->act == ACT_FORWARD ? 1 : whole ? 2 : 0;
        }
    }
    struct simulation s;
    assert_int_equal(simulate(&schedule, cost, &unit, &s), 0);
    double seconds = s.seconds;
    simulation_free(&s);
    for (int r = 0; r < ranks; r++) test_free(cost[r]);
    schedule_free(&schedule);
    routes_free(&routes);
    edges_free(&edges);
    return seconds;
}

static void test_bubble(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks *= 2)
        for (int micro_batch = 8; micro_batch <= 32; micro_batch *= 2) {
            assert_true(pipeline_seconds(ranks, 1, micro_batch) == 3 * (micro_batch + ranks - 1));
            if (ranks > 1)
                assert_true(pipeline_seconds(ranks, 2, micro_batch) == 3 * (2 * micro_batch + ranks - 1));
        }
}

/* ----------------------------------------------------------------------------------- the counting backend */

/* An operation that someone adds and count.c lacks would end a plan in a crash. */
static void test_operations(void **state) {
    (void)state;
    const struct ops *count = ops_find("count");
    assert_non_null(count);
    void (*const *operation)(void) = (void (*const *)(void)) & count->gemm;
    size_t operations = (sizeof *count - offsetof(struct ops, gemm)) / sizeof *operation;
    assert_true(operations > 40);
    for (size_t i = 0; i < operations; i++)
        if (!operation[i]) fail_msg("operation %zu of the counting backend is empty", i);
    for (const struct ops *const *each = ops_all(); *each; each++) assert_ptr_not_equal(*each, count);
}

static void test_counted(void **state) {
    (void)state;
    const struct ops *count = ops_find("count");
    double before = ops_counted();
    count->gemm('N', 'T', 3, 5, 7, 1, NULL, 7, NULL, 7, 0, NULL, 5);
    assert_true(ops_counted() - before == 2 * 3 * 5 * 7);
    before = ops_counted();
    count->attention(2, 4, 3, 1, 8, NULL, NULL, NULL, NULL, NULL);
    /* 10 pairs of positions a head and sequence, of which each takes 8 multiply-adds for the score and 8 for
     * the value. */
    assert_true(ops_counted() - before == 2 * 3 * 10 * (8 + 8) * 2);
    before = ops_counted();
    count->attention_back(2, 4, 3, 1, 8, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    assert_true(ops_counted() - before == 2 * 2 * 3 * 10 * (8 + 8) * 2);
}

int main(void) {
    unit = plan_machine_of(1, 1, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_compressed_message),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_standstill),
        cmocka_unit_test(test_bubble),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
