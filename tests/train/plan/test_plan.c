/* The predicted step: schedules whose times are known by hand. Costs are chosen as small powers of two, so
 * that sums of seconds are exact. */
#include "dist/verify/verify.h"
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/rules/rules.h"
#include "tests/support/unit.h"
#include "train/plan/simulate.h"

/* 1 FLOP, 1 byte, a second each; no latency. */
static struct plan_machine unit;

/* ------------------------------------------------------------------------------------------ by hand */

enum { MAX = 16 };

/* A schedule of up to three ranks, an action at a time. */
struct script {
    struct action action[3][MAX];
    struct action_cost cost[3][MAX];
    struct actions rank[3];
};

static struct action_cost *put(struct script *script, int rank, struct action action) {
    int at = script->rank[rank].count++;
    script->rank[rank].action = script->action[rank];
    script->action[rank][at] = action;
    return &script->cost[rank][at];
}

static void compute(struct script *script, int rank, double flops) {
    put(script, rank, (struct action){.act = ACT_FORWARD})->flops = flops;
}

static void message(struct script *script, enum act act, int rank, int peer, int number, int64_t bytes) {
    put(script, rank, (struct action){.act = act, .peer = peer, .message = number, .buffer = number})
        ->bytes[AXIS_PIPELINE] = bytes;
}

static struct simulation run(struct script *script, int ranks, const struct plan_machine *machine) {
    struct schedule schedule = {.ranks = ranks, .rank = script->rank, .messages = 4};
    struct action_cost *cost[3] = {script->cost[0], script->cost[1], script->cost[2]};
    struct simulation out;
    gdn_failure_clear();
    assert_int_equal(simulate(&schedule, cost, machine, &out), 0);
    return out;
}

/* All of a rank's seconds are somewhere. */
static void check_sum(const struct simulation *s, int rank) {
    const struct rank_time *t = &s->rank[rank];
    double sum = t->arithmetic + t->update + t->bubble;
    for (int axis = 0; axis < axes_count(); axis++) sum += t->exposed[axis];
    assert_true(sum == s->seconds);
}

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

/* A bucket and a message of one rank: beside each other on links of their own; where both leave the node they
 * divide the way out, a sum with three others being three messages. */
static void test_way_out(void **state) {
    (void)state;
    for (int parts = 0; parts <= 3; parts++) {
        struct script script = {0};
        struct plan_machine machine = unit;
        machine.leaves[AXIS_DATA] = true;
        machine.leaves[AXIS_PIPELINE] = parts > 0;
        machine.others = parts;
        message(&script, ACT_POST, 1, 0, 0, 0);
        put(&script, 0, (struct action){.act = ACT_REDUCE})->bytes[AXIS_DATA] = 16;
        message(&script, ACT_SEND, 0, 1, 0, 4);
        put(&script, 0, (struct action){.act = ACT_FINISH});
        message(&script, ACT_RECEIVE, 1, 0, 0, 0);
        struct simulation s = run(&script, 2, &machine);
        assert_true(s.seconds == (parts ? 20 : 16));
        assert_float_equal(s.rank[1].exposed[AXIS_PIPELINE], 4 * (1 + parts),
                           1e-12); /* a third is no exact number */
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
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_way_in),
        cmocka_unit_test(test_two_ways),
        cmocka_unit_test(test_compressed_message),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_standstill),
        cmocka_unit_test(test_bubble),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_counted),
        cmocka_unit_test(test_way_out),
        cmocka_unit_test(test_two_messages),
        cmocka_unit_test(test_stages_of_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
