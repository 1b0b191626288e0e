/* Schedules written an action at a time, and the step that the plan makes of them: for test_plan.c and
 * test_plan_links.c. Costs are small powers of two, so that sums of seconds are exact. */
#ifndef GDN_TESTS_PLAN_SCRIPT_H
#define GDN_TESTS_PLAN_SCRIPT_H

#include "kernels/base/status.h"
#include "tests/support/unit.h"
#include "train/plan/simulate.h"

/* 1 FLOP, 1 byte, a second each; no latency: set by main. */
static struct plan_machine unit;

enum { MAX = 16 };

/* A schedule of up to three ranks, an action at a time. */
struct script {
    struct action action[3][MAX];
    struct action_cost cost[3][MAX];
    struct actions rank[3];
};

static inline struct action_cost *put(struct script *script, int rank, struct action action) {
    int at = script->rank[rank].count++;
    script->rank[rank].action = script->action[rank];
    script->action[rank][at] = action;
    return &script->cost[rank][at];
}

static inline void compute(struct script *script, int rank, double flops) {
    put(script, rank, (struct action){.act = ACT_FORWARD})->flops = flops;
}

static inline void message(struct script *script, enum act act, int rank, int peer, int number,
                           int64_t bytes) {
    put(script, rank, (struct action){.act = act, .peer = peer, .message = number, .buffer = number})
        ->bytes[AXIS_PIPELINE] = bytes;
}

static inline struct simulation run(struct script *script, int ranks, const struct plan_machine *machine) {
    struct schedule schedule = {.ranks = ranks, .rank = script->rank, .messages = 4};
    struct action_cost *cost[3] = {script->cost[0], script->cost[1], script->cost[2]};
    struct simulation out;
    gdn_failure_clear();
    assert_int_equal(simulate(&schedule, cost, machine, &out), 0);
    return out;
}

/* All of a rank's seconds are somewhere. */
static inline void check_sum(const struct simulation *s, int rank) {
    const struct rank_time *t = &s->rank[rank];
    double sum = t->arithmetic + t->update + t->bubble;
    for (int axis = 0; axis < axes_count(); axis++) sum += t->exposed[axis];
    assert_true(sum == s->seconds);
}

#endif
