/* Which connections go in training, and come back (train/prune/pruning.h): averages, the schedule, budgets and
 * thresholds, margins, and the state as a checkpoint has it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "model/rules/rules.h"
#include "tests/support/unit.h"
#include "tests/train/config/config_fixture.h"
#include "train/prune/pruning.h"

/* 5 layers with distances 1 and 2: seven connections, in the table's order (1,1), (2,1), (2,2), (3,1), … */
enum { EDGES = 7 };
static const char *const base = "model: {num_layers: 5, delta: {distances: [1, 2]}}\n"
                                "train: {prune: {by: contribution, begin: 10, end: 40, interval: 10, keep: 0.3}}";

struct subject {
    struct config config;
    struct edges edges;
    struct pruning pruning;
};

static void create(struct subject *s, const char *set) {
    s->config = right(base, set, NULL);
    assert_int_equal(edges_create(&s->config.model, &s->edges), 0);
    assert_int_equal(s->edges.count, EDGES);
    assert_int_equal(pruning_create(&s->config.train.prune, &s->edges, &s->pruning), 0);
}

static void done(struct subject *s) {
    pruning_free(&s->pruning);
    edges_free(&s->edges);
    config_free(&s->config);
}

static const double no_mix[EDGES] = {1, 1, 1, 1, 1, 1, 1};

/* A step in which connection e has gate 0.5, contribution 2 value[e] and, as its effect, value[e]. */
static void measure(struct subject *s, const double value[EDGES]) {
    for (int e = 0; e < EDGES; e++)
        s->pruning.sums[e] = (struct pruning_sums){.gate = 0.5, .contribution = 2 * value[e], .effect = value[e]};
    pruning_add(&s->pruning);
}

static void left(const struct subject *s, const char *wanted) { /* "1011000" */
    for (int e = 0; e < EDGES; e++)
        if (s->pruning.has[e] != (wanted[e] == '1')) fail_msg("connection %d, of %s", e, wanted);
}

static const double falling[EDGES] = {7, 6, 5, 4, 3, 2, 1};

static void schedule(void **state) {
    (void)state;
    struct subject s;
    create(&s, NULL);
    const struct pruning *p = &s.pruning;
    /* 7 (0.3 + 0.7 left³), left = 1, 2/3, 1/3, 0 */
    assert_int_equal(pruning_schedule(p, 0), 7);
    assert_int_equal(pruning_schedule(p, 10), 7);
    assert_int_equal(pruning_schedule(p, 20), 4);
    assert_int_equal(pruning_schedule(p, 30), 2);
    assert_int_equal(pruning_schedule(p, 40), 2);
    assert_false(pruning_due(p, 20)); /* nothing is measured */
    measure(&s, falling);
    for (int step = 0; step < 60; step++) {
        bool due = step == 10 || step == 20 || step == 30 || step == 40;
        assert_true(pruning_due(p, step) == due);
        assert_true(pruning_measures(p->config, step) == (step < 40));
    }
    done(&s);
    create(&s, "train.prune.interval=25"); /* the end is a change whatever the interval */
    measure(&s, falling);
    assert_true(pruning_due(&s.pruning, 35) && pruning_due(&s.pruning, 40) && !pruning_due(&s.pruning, 60));
    done(&s);
    create(&s, "train.prune.by=none");
    assert_false(pruning_due(&s.pruning, 20) || pruning_measures(s.pruning.config, 5) || pruning_has_pruned(&s.pruning));
    done(&s);
}

static void budget(void **state) {
    (void)state;
    struct subject s;
    create(&s, NULL);
    measure(&s, falling);
    assert_int_equal(pruning_decide(&s.pruning, 10, no_mix), 0);
    assert_true(isnan(s.pruning.margin) && !pruning_has_pruned(&s.pruning));
    assert_int_equal(pruning_decide(&s.pruning, 20, no_mix), 3);
    left(&s, "1111000");
    assert_true(s.pruning.kept == 4 && s.pruning.order[4].edge == 4 && s.pruning.order[4].importance == 3);
    assert_true(fabs(s.pruning.margin - 0.25) < 1e-15); /* 4 against 3 */
    /* Those that are gone stay so; mixes count; of equals the lower layer, then the nearer. */
    const double mix[EDGES] = {0.1, 1, 1, 1.25, 100, 100, 100};
    assert_int_equal(pruning_decide(&s.pruning, 30, mix), 2);
    left(&s, "0110000");
    assert_int_equal(pruning_decide(&s.pruning, 40, mix), 0);
    done(&s);
    create(&s, "train.prune.keep=0");
    measure(&s, no_mix);
    assert_int_equal(pruning_decide(&s.pruning, 20, no_mix), 5); /* 7 · 8/27 */
    left(&s, "1100000");
    assert_true(s.pruning.margin == 0);
    assert_int_equal(pruning_decide(&s.pruning, 40, no_mix), 2);
    assert_true(isnan(s.pruning.margin)); /* whatever they are */
    done(&s);
}

/* First the mean, then a moving average; of effects their squares'. */
static void averages(void **state) {
    (void)state;
    struct subject s;
    const double other[EDGES] = {1, 2, 3, 4, 5, 6, 7};
    create(&s, NULL);
    measure(&s, falling), measure(&s, other), measure(&s, other);
    assert_true(fabs(s.pruning.average[0] - 3) < 1e-12 && fabs(s.pruning.average[6] - 5) < 1e-12);
    for (int i = 0; i < 2000; i++) measure(&s, falling);
    assert_true(fabs(s.pruning.average[0] - 7) < 1e-9);
    double before = s.pruning.average[0];
    measure(&s, other);
    assert_true(fabs(s.pruning.average[0] - (before + 0.02 * (1 - before))) < 1e-12);
    done(&s);
    create(&s, "train.prune.by=first_order");
    const double either[EDGES] = {-4, 3, 0, 0, 0, 0, 0};
    measure(&s, either);
    assert_int_equal(pruning_decide(&s.pruning, 40, no_mix), 5);
    left(&s, "1100000");
    assert_true(s.pruning.order[0].edge == 0 && s.pruning.order[0].importance == 4);
    done(&s);
}

/* What is found before changes rather than by steps: each has half of the newest. It may be a gain to lose one. */
static void left_out(void **state) {
    (void)state;
    struct subject s;
    create(&s, "train.prune.by=leave_one_out");
    for (int step = 0; step < 60; step++) {
        assert_true(pruning_due(&s.pruning, step) == (step == 10 || step == 20 || step == 30 || step == 40));
        assert_false(pruning_measures(s.pruning.config, step));
    }
    const double first[EDGES] = {-1, 2, 0, 8, -3, 1, INFINITY}, then[EDGES] = {-2, 4, 1, 4, -1, 0, 2};
    measure(&s, first), measure(&s, then);
    assert_true(s.pruning.average[0] == -1.5 && s.pruning.average[1] == 3 && s.pruning.average[4] == -2);
    assert_true(isfinite(s.pruning.average[6]) && s.pruning.average[6] > 1e6);
    measure(&s, then);
    assert_true(s.pruning.average[0] == -1.75 && s.pruning.average[3] == 5);
    const double mix[EDGES] = {100, 1, 1, 0, 1, 1, 1}; /* the loss knows of it */
    assert_int_equal(pruning_decide(&s.pruning, 20, mix), 3);
    left(&s, "0111001");
    done(&s);
}

static void thresholds(void **state) {
    (void)state;
    struct subject s;
    create(&s, "train.prune={by: contribution, rule: threshold, threshold: 3.5, begin: 10, end: 40, interval: 10, keep: 0.3}");
    measure(&s, falling);
    assert_int_equal(pruning_decide(&s.pruning, 10, no_mix), 3);
    left(&s, "1111000");
    assert_true(fabs(s.pruning.margin - 0.125) < 1e-15); /* 4 against 3.5 */
    s.config.train.prune.threshold = 100;
    assert_int_equal(pruning_decide(&s.pruning, 20, no_mix), 2); /* no fewer than 0.3 of 7 */
    left(&s, "1100000");
    assert_true(fabs(s.pruning.margin - 1.0 / 6) < 1e-15); /* 6 against 5 */
    done(&s);
    create(&s, "train.prune={by: contribution, rule: adaptive, threshold: 2.0, begin: 10, end: 30000, interval: 10, keep: 0}");
    measure(&s, falling);
    assert_int_equal(pruning_decide(&s.pruning, 10, no_mix), 2); /* 2.0002 */
    left(&s, "1111100");
    assert_int_equal(pruning_decide(&s.pruning, 30000, no_mix), 0); /* 2.6 */
    s.config.train.prune.threshold = 2.4;
    assert_int_equal(pruning_decide(&s.pruning, 30000, no_mix), 1); /* 3.12 */
    done(&s);
}

/* Places of the budget go to what had gone: the most important of these as it was when it went, and from then on as
 * it is measured. */
static void regrowth(void **state) {
    (void)state;
    struct subject s;
    create(&s, "train.prune.regrow=1");
    measure(&s, falling);
    assert_int_equal(pruning_decide(&s.pruning, 20, no_mix), 3); /* none had gone before */
    left(&s, "1111000");
    assert_true(s.pruning.back == 0 && fabs(s.pruning.margin - 0.25) < 1e-15);
    const double mix[EDGES] = {1, 1, 1, 1, 1, 2, 1}; /* of the sixth, 4 */
    assert_int_equal(pruning_decide(&s.pruning, 30, mix), 4); /* 2 places, ⌊2 · 1/3⌉ of them */
    left(&s, "1000010");
    const struct pruning_place *order = s.pruning.order;
    assert_true(s.pruning.kept == 1 && s.pruning.gone == 3 && s.pruning.back == 1);
    assert_true(order[0].edge == 0 && order[1].edge == 1 && order[3].edge == 3 && order[4].edge == 5);
    assert_true(order[4].importance == 4 && fabs(s.pruning.margin - 1.0 / 7) < 1e-15); /* 7 against 6 */
    const double other[EDGES] = {1, 100, 100, 100, 100, 20, 100};
    measure(&s, other);
    assert_true(s.pruning.average[0] == 4 && s.pruning.average[1] == 6 && s.pruning.average[5] == 11);
    assert_int_equal(pruning_decide(&s.pruning, 40, no_mix), 0); /* at the end none comes back */
    left(&s, "1000010");
    done(&s);

    create(&s, "train.prune={by: contribution, rule: threshold, threshold: 3.5, begin: 10, end: 40, interval: 10, keep: 0.3, regrow: 0.5}");
    measure(&s, falling);
    assert_int_equal(pruning_decide(&s.pruning, 10, no_mix), 3);
    assert_int_equal(pruning_decide(&s.pruning, 20, no_mix), 1); /* ⌊4 · 2/3 · 0.5⌉ */
    left(&s, "1111100");
    assert_true(s.pruning.gone == 0 && s.pruning.order[4].edge == 4);
    assert_true(fabs(s.pruning.margin - 0.125) < 1e-15);         /* 4 against 3.5; 3 against 2 would be more */
    assert_int_equal(pruning_decide(&s.pruning, 30, no_mix), 2); /* 3 is below 3.5: it goes, and the next has its turn */
    left(&s, "1111010");
    done(&s);
    create(&s, "train.prune={by: contribution, begin: 10, end: 40, interval: 10, keep: 0.1, regrow: 1}");
    measure(&s, falling);
    assert_int_equal(pruning_decide(&s.pruning, 30, no_mix), 6);
    assert_int_equal(pruning_decide(&s.pruning, 10, no_mix), 6); /* 7 places, and no more than there are */
    left(&s, "1111111");
    assert_true(s.pruning.kept == 1 && isnan(s.pruning.margin) && !pruning_has_pruned(&s.pruning));
    done(&s);
}

static void text(void **state) {
    (void)state;
    struct subject a, b;
    const double odd[EDGES] = {1.0 / 3, 0.1, M_PI, 1e-300, 7, 0, 2};
    create(&a, NULL), create(&b, NULL);
    measure(&a, odd), measure(&a, falling);
    assert_int_equal(pruning_decide(&a.pruning, 20, no_mix), 3);
    const char *words = pruning_text(&a.pruning);
    assert_non_null(words);
    assert_int_equal(pruning_read(&b.pruning, words), 0);
    assert_int_equal(b.pruning.measured, 2);
    assert_memory_equal(a.pruning.average, b.pruning.average, EDGES * sizeof *a.pruning.average);
    assert_memory_equal(a.pruning.has, b.pruning.has, EDGES * sizeof *a.pruning.has);
    assert_string_equal(pruning_text(&b.pruning), words);

    /* What is left, as a configuration lists it. */
    assert_int_equal(config_keep_left(&b.config, NULL), 0);
    assert_int_equal(b.config.model.delta.num_distances, 2);
    assert_int_equal(config_keep_left(&b.config, words), 0);
    const struct delta_config *delta = &b.config.model.delta;
    assert_true(delta->num_distances == 0 && delta->num_edges == 4 && !b.config.train.prune.by);
    for (int i = 0, e = 0; e < EDGES; e++) {
        if (!a.pruning.has[e]) continue;
        assert_true(delta->edges[i].target == a.edges.edge[e].target && delta->edges[i].source == a.edges.edge[e].source);
        i++;
    }

    static const char *const wrong[] = {NULL, "", "measured", "measured 3\n1 0 1 2.0\n", "measured 3\n4 1 1 0.5\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(pruning_read(&a.pruning, wrong[i]), GDN_INPUT);
        assert_non_null(strstr(gdn_failure(), "/pruning"));
        gdn_failure_clear();
    }
    static const char *const no_model[] = {
        "1 0 1 2.0\nand more", "1 0 1 2.0\n2 0 1 x", "1 0 1 x\n2 0 1 2.0\n",
        "1 0 2 2.0\n",         "9999 0 1 2.0\n",     "1 1 1 2.0\n",
        "1 -2 1 2.0\n",        "-1 -2 1 2.0\n",      "1 0 1 2.0\n1 0 1 2.0\n"};
    for (size_t i = 0; i < sizeof no_model / sizeof *no_model; i++) {
        char *line;
        assert_true(asprintf(&line, "measured 3\n%s", no_model[i]) > 0);
        assert_int_equal(config_keep_left(&a.config, line), GDN_INPUT);
        assert_non_null(strstr(gdn_failure(), "/pruning"));
        assert_null(strchr(gdn_failure(), '\n'));
        gdn_failure_clear();
        free(line);
    }
    done(&a), done(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(schedule), cmocka_unit_test(budget), cmocka_unit_test(averages), cmocka_unit_test(left_out),
                                       cmocka_unit_test(thresholds), cmocka_unit_test(regrowth), cmocka_unit_test(text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
