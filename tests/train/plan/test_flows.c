/* Transfers that share links: times by hand, and that every division of the links is the fair one. */
#include "tests/support/unit.h"
#include "train/plan/flows.h"

#include <math.h>
#include <stdbool.h>

/* A flow from one link to another that is alone in its queue. */
static struct flow flow(int out, int in, double weight, double work) {
    return (struct flow){.link = {out, in}, .queue = out * 8 + in, .weight = weight, .work = work};
}

/* Until all are done: when each was. */
static void run(struct flows *flows) {
    while (isfinite(flows_next(flows))) {
        const double next = flows_next(flows);
        const int done = flows_step(flows);
        assert_true(flows->now == next);
        if (done >= 0)
            assert_true(flows->flow[done].state == FLOW_DONE && flows->flow[done].at == flows->now);
    }
    assert_int_equal(flows->at_once, 0);
}

static struct flows make(int count) {
    struct flows flows;
    assert_int_equal(flows_create(count, 8, 64, &flows), 0);
    return flows;
}

/* Links are divided by weights, and whoever is left has them alone. */
static void test_weights(void **state) {
    (void)state;
    struct flows flows = make(3);
    struct flow sum = flow(0, 1, 3, 12), message = flow(0, 1, 1, 4), second = message;
    message.queue = second.queue = 60;
    flows_add(&flows, 0, sum);
    flows_add(&flows, 1, message);
    flows_add(&flows, 2, second);
    run(&flows);
    assert_true(flows.flow[0].at == 16); /* at 3/4, beside one message at a time */
    assert_true(flows.flow[1].at == 16);
    assert_true(flows.flow[2].at == 20); /* alone */
    flows_free(&flows);
}

/* What a flow cannot use goes to the others of the link. */
static void test_spare(void **state) {
    (void)state;
    struct flows flows = make(3);
    flows_add(&flows, 0, flow(0, 1, 1, 3));
    flows_add(&flows, 1, flow(0, 2, 1, 1));
    flows_add(&flows, 2, flow(3, 2, 3, 3)); /* leaves 1/4 of link 2 */
    run(&flows);
    for (int i = 0; i < 3; i++) assert_true(flows.flow[i].at == 4);
    flows_free(&flows);
}

/* One after the other in a queue, each ready, and through, when it says. */
static void test_queue(void **state) {
    (void)state;
    struct flows flows = make(3);
    struct flow one = flow(0, 1, 1, 4);
    one.ready = 1, one.lead = 2, one.tail = 8;
    flows_add(&flows, 0, one);
    one.ready = 0;
    flows_add(&flows, 1, one);
    one.ready = 64;
    flows_add(&flows, 2, one);
    run(&flows);
    assert_true(flows.flow[0].at == 1 + 2 + 4 + 8);
    assert_true(flows.flow[1].at == 15 + 2 + 4 + 8);
    assert_true(flows.flow[2].at == 64 + 2 + 4 + 8);
    flows_add(&flows, 1, flow(0, 1, 1, 1)); /* an empty queue again; no earlier than now */
    run(&flows);
    assert_true(flows.flow[1].at == 79);
    flows_free(&flows);
}

/* What links carry of the flows that move. */
static void loads(const struct flows *flows, double load[8]) {
    for (int l = 0; l < 8; l++) load[l] = 0;
    for (int i = 0; i < flows->at_once; i++) {
        const struct flow *f = &flows->flow[flows->under_way[i]];
        if (f->state == FLOW_MOVES) load[f->link[0]] += f->rate, load[f->link[1]] += f->rate;
    }
}

/* A division is fair if no link carries more than it can and each flow has a full link on which none has more
 * for its weight: sums of a dozen rates round by 1e-15. */
static void check_fair(const struct flows *flows) {
    double load[8];
    loads(flows, load);
    for (int l = 0; l < 8; l++) assert_true(load[l] < 1 + 1e-9);
    for (int i = 0; i < flows->at_once; i++) {
        const struct flow *f = &flows->flow[flows->under_way[i]];
        bool fair = false;
        if (f->state != FLOW_MOVES) continue;
        for (int end = 0; end < 2; end++) {
            bool most = load[f->link[end]] > 1 - 1e-9;
            for (int k = 0; k < flows->at_once; k++) {
                const struct flow *g = &flows->flow[flows->under_way[k]];
                const bool here = g->link[0] == f->link[end] || g->link[1] == f->link[end];
                if (g->state == FLOW_MOVES && here && g->rate / g->weight > f->rate / f->weight + 1e-9)
                    most = false;
            }
            fair = fair || most;
        }
        assert_true(fair);
    }
}

static void test_fair(void **state) {
    (void)state;
    unsigned random = 1;
    int at_once = 0;
    for (int round = 0; round < 300; round++) {
        enum { COUNT = 24 };
        struct flows flows = make(COUNT);
        for (int i = 0; i < COUNT; i++) {
            unsigned draw[5];
            for (int k = 0; k < 5; k++) draw[k] = (random = random * 1664525u + 1013904223u) >> 16;
            struct flow f =
                flow((int)(draw[0] % 4), 4 + (int)(draw[1] % 4), 1 + draw[2] % 5, (1 + draw[3] % 9) / 3.0);
            f.ready = draw[4] % 16, f.lead = draw[3] % 2 / 8.0, f.tail = draw[2] % 3 / 8.0;
            flows_add(&flows, i, f);
        }
        int done = 0;
        while (isfinite(flows_next(&flows))) {
            done += flows_step(&flows) >= 0;
            check_fair(&flows);
            if (flows.at_once > at_once) at_once = flows.at_once;
        }
        assert_int_equal(done, COUNT);
        flows_free(&flows);
    }
    assert_true(at_once > 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_spare),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_fair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
