/* What is computed again: policies that the configuration fixes, the solver against trying every choice,
 * and how much memory a machine is found to have. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/base/random.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/memory/memory.h"
#include "train/plan/plan.h"
#include "train/plan/recompute_auto.h"
#include "train/plan/recompute_try.h"

/* --------------------------------------------------------------------------------------- fixed policies */

static void fixed(int recompute, int delta, int every, int delta_every, const char *expected) {
    struct train_config train = {.recompute = recompute,
                                 .recompute_delta = delta,
                                 .recompute_every = every,
                                 .recompute_delta_every = delta_every};
    struct recompute policy[6];
    char text[200];
    recompute_fixed(&train, 6, policy);
    recompute_text(policy, 6, text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_fixed(void **state) {
    (void)state;
    fixed(RECOMPUTE_NONE, RECOMPUTE_SAME, 1, 0, "nothing");
    fixed(RECOMPUTE_SELECTIVE, RECOMPUTE_SAME, 1, 0, "layers 0-5 selective, connections of layers 0-5 full");
    fixed(RECOMPUTE_FULL, RECOMPUTE_SAME, 4, 0, "layers 0, 4 full, connections of layers 0, 4 full");
    fixed(RECOMPUTE_FULL, RECOMPUTE_NONE, 2, 0, "layers 0, 2, 4 full");
    fixed(RECOMPUTE_FULL, RECOMPUTE_SAME, 6, 1, "layer 0 full, connections of layers 0-5 full");
    fixed(RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, 1, 0, "connections of layers 0-5 selective");
    fixed(RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, 2, 3,
          "layers 0, 2, 4 selective, connections of layers 0, 3 full");
    fixed(RECOMPUTE_AUTO, RECOMPUTE_SAME, 1, 0, "nothing"); /* until memory decides */
    fixed(RECOMPUTE_AUTO, RECOMPUTE_FULL, 1, 0, "connections of layers 0-5 full");
}

static void test_words_fit(void **state) {
    (void)state;
    struct recompute policy[6] = {{POLICY_FULL, 0}, {0, 0},           {POLICY_SELECTIVE, 0},
                                  {0, 0},           {POLICY_FULL, 1}, {0, 0}};
    char text[24];
    memset(text, 'x', sizeof text);
    recompute_text(policy, 6, text, 16);
    assert_string_equal(text, "layers 0, 4 ful");
    assert_int_equal(text[16], 'x');
}

static void test_rule(void **state) {
    (void)state;
    assert_int_equal(recompute_rule(0.1), 4);
    assert_int_equal(recompute_rule(0.79), 4);
    assert_int_equal(recompute_rule(0.8), 2);
    assert_int_equal(recompute_rule(1.19), 2);
    assert_int_equal(recompute_rule(1.2), 1);
    assert_int_equal(recompute_rule(9), 1);
}

/* ------------------------------------------------------------------------------------------- the solver */

enum { LAYERS = 6, OPTIONS = 4, CHOICES = 1 << (2 * LAYERS) };

static void sums_of(const struct recompute_option *option, int layers, const unsigned char *chosen,
                    int64_t *bytes, double *cost) {
    *bytes = 0, *cost = 0;
    for (int l = 0; l < layers; l++) {
        *bytes += option[l * OPTIONS + chosen[l]].bytes;
        *cost += option[l * OPTIONS + chosen[l]].cost;
    }
}

/* Least cost within the budget, by trying all; negative: none fits. And the least bytes. */
static double min(const struct recompute_option *option, int64_t budget, int64_t *fewest) {
    double best = -1;
    *fewest = INT64_MAX;
    for (int i = 0; i < CHOICES; i++) {
        unsigned char chosen[LAYERS];
        int64_t bytes;
        double cost;
        for (int l = 0; l < LAYERS; l++) chosen[l] = (unsigned char)(i >> (2 * l) & 3);
        sums_of(option, LAYERS, chosen, &bytes, &cost);
        if (bytes < *fewest) *fewest = bytes;
        if (bytes <= budget && (best < 0 || cost < best)) best = cost;
    }
    return best;
}

static void test_solve(void **state) {
    (void)state;
    int fitted = 0, refused = 0;
    for (int draw = 0; draw < 200; draw++) {
        struct recompute_option option[LAYERS * OPTIONS] = {{0, 0}};
        for (int i = 0; i < LAYERS * OPTIONS; i++)
            if (i %
                OPTIONS) { /* whole numbers, so that sums are exact; few of them, so that many are equal */
                uint64_t bits = random_bits(7, (uint64_t)draw, (uint64_t)i);
                option[i] = (struct recompute_option){-(int64_t)(bits % 13), (double)(bits >> 20 & 15)};
            }
        int64_t budget = -(int64_t)(random_bits(8, (uint64_t)draw, 0) % 70), bytes, fewest;
        double best = min(option, budget, &fewest), cost, sum;
        unsigned char chosen[LAYERS];
        bool fits;
        assert_int_equal(recompute_solve(option, LAYERS, OPTIONS, budget, chosen, &cost, &fits), 0);
        sums_of(option, LAYERS, chosen, &bytes, &sum);
        assert_int_equal(fits, best >= 0);
        if (fits) assert_true(bytes <= budget && sum == best && cost == best);
        if (!fits) assert_int_equal(bytes, fewest);
        fitted += fits, refused += !fits;
    }
    assert_true(fitted > 50 && refused > 10);
}

/* More sums than are looked at: what is chosen still fits, and costs little more than need be. The bound:
 * each of 40 layers' fronts loses at most one step of the bytes, 1/4094 of their range, so that the choice is
 * at least as cheap as the best for a budget that is 1% of the range smaller. */
static void test_many(void **state) {
    (void)state;
    enum { MANY = 40 };
    static struct recompute_option option[MANY * OPTIONS];
    int64_t range = 0;
    for (int l = 0; l < MANY; l++)
        for (int o = 1; o < OPTIONS; o++) {
            uint64_t bits = random_bits(9, (uint64_t)l, (uint64_t)o);
            option[l * OPTIONS + o].bytes = option[l * OPTIONS + o - 1].bytes - (int64_t)(bits % 100003);
            option[l * OPTIONS + o].cost = option[l * OPTIONS + o - 1].cost + (double)(bits >> 32) * 1e-6;
        }
    for (int l = 0; l < MANY; l++) range -= option[l * OPTIONS + OPTIONS - 1].bytes;
    unsigned char chosen[MANY];
    double before = -1;
    bool fits;
    for (int part = 1; part <= 9; part++) {
        int64_t budget = -range / 10 * part, bytes;
        double cost, sum, tighter;
        assert_int_equal(
            recompute_solve(option, MANY, OPTIONS, budget - range / 100, chosen, &tighter, &fits), 0);
        assert_int_equal(recompute_solve(option, MANY, OPTIONS, budget, chosen, &cost, &fits), 0);
        sums_of(option, MANY, chosen, &bytes, &sum);
        assert_true(fits && bytes <= budget);
        assert_true(cost > before && cost <= tighter);
        before = cost;
    }
    double cost;
    assert_int_equal(recompute_solve(option, MANY, OPTIONS, 0, chosen, &cost, &fits), 0);
    assert_true(fits && cost == 0);
    assert_int_equal(recompute_solve(option, MANY, OPTIONS, -range, chosen, &cost, &fits), 0);
    assert_true(fits);
    assert_int_equal(recompute_solve(option, MANY, OPTIONS, -range - 1, chosen, &cost, &fits), 0);
    assert_false(fits);
}

/* ------------------------------------------------------------------------- with plans of a small model */

static char small[] =
    "model: {vocab_size: 50, hidden_size: 16, num_layers: 3, num_heads: 2, intermediate_size: 24,\n"
    "        delta: {distances: [1, 2], hidden: 4, gate_hidden: 2}}\n"
    "train: {batch_size: 8, micro_batch_size: 4, sequence_length: 16}\n";

enum { MODEL_LAYERS = 3, SETS = 729 };

/* Set i gives layer l the combination that is the l-th digit of i. */
static void make_set(int set, struct recompute *policy) {
    for (int l = 0; l < MODEL_LAYERS; l++, set /= COMBINATIONS)
        policy[l] = (struct recompute){(unsigned char)(set % COMBINATIONS / POLICIES),
                                       (unsigned char)(set % COMBINATIONS % POLICIES)};
}

struct tried {
    int64_t bytes;
    double cost;
};

static void try_set_of(const struct rank_plan *rank, const struct recompute *policy, struct tried *out) {
    struct pass_costs costs;
    struct memory memory;
    assert_int_equal(rank_plan_costs(rank, policy, &costs), 0);
    assert_int_equal(rank_plan_memory(rank, &costs, &memory), 0);
    double saved = (double)(costs.memory.activations + costs.memory.sources);
    out->bytes = memory_sum(&memory);
    out->cost = -FLOP_PER_BYTE * saved * rank->work->pipeline->micro_batches;
    for (int l = 0; l < MODEL_LAYERS; l++) out->cost += costs.layer[1 + l].flops;
    pass_costs_free(&costs);
}

/* Whatever the memory, no set of policies that fits costs less than the one chosen. */
static void test_auto(void **state) {
    (void)state;
    static struct tried tried[SETS];
    const struct plan_machine machine = plan_machine_of(1, 1, 1);
    char *set[] = {"train.recompute=auto", "train.memory=1"};
    struct recompute policy[MODEL_LAYERS];
    struct rank_plan rank;
    struct config config;
    struct plan plan;
    double ratio;
    assert_int_equal(config_parse(small, "test", set, 2, &config), 0);
    assert_int_equal(plan_create(&config, 1, &machine, &plan), 0);
    assert_int_equal(rank_plan_create(&plan.work, 0, 0, &rank), 0);
    int64_t min = INT64_MAX;
    for (int i = 0; i < SETS; i++) {
        make_set(i, policy);
        try_set_of(&rank, policy, &tried[i]);
        if (tried[i].bytes < min) min = tried[i].bytes;
    }
    assert_true(min < tried[0].bytes);
    for (int part = -1; part <= 20; part++) {
        int64_t available = min + (tried[0].bytes - min) * part / 20;
        struct tried chosen;
        double best = INFINITY;
        recompute_fixed(&config.train, MODEL_LAYERS, policy);
        assert_int_equal(recompute_auto(&plan.work, 0, available, policy, &ratio), 0);
        try_set_of(&rank, policy, &chosen);
        for (int i = 0; i < SETS; i++)
            if (tried[i].bytes <= available) best = fmin(best, tried[i].cost);
        /* Costs are sums of the same terms in another order, of 1e7 at most. */
        if (part >= 0) assert_true(chosen.bytes <= available && chosen.cost <= best + 1e-3);
        if (part < 0) assert_int_equal(chosen.bytes, min);
        assert_true(ratio == (double)tried[0].bytes / (double)available);
    }
    rank_plan_free(&rank);
    plan_free(&plan);
    config_free(&config);
}

/* ------------------------------------------------------------------------------------------- the machine */

static void put(const char *path, const char *text) {
    char full[300];
    snprintf(full, sizeof full, "%s%s", scratch(), path);
    for (char *at = full + strlen(scratch()) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(full, 0777);
        *at = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_machine(void **state) {
    (void)state;
    assert_int_equal(memory_of_machine(scratch()), 0); /* nothing is told */
    put("/proc/meminfo", "MemTotal: 999 kB\nMemAvailable:   1000 kB\n");
    assert_int_equal(memory_of_machine(scratch()), 1000 * 1024);

    /* Version 2: a limit further up counts too; cached files make way. */
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(memory_of_machine(scratch()), 1000 * 1024);
    put("/sys/fs/cgroup/a/memory.max", "500000\n");
    put("/sys/fs/cgroup/a/memory.current", "300000\n");
    assert_int_equal(memory_of_machine(scratch()), 200000);
    put("/sys/fs/cgroup/a/memory.stat", "anon 7\ninactive_file 100000\nactive_file 3\n");
    assert_int_equal(memory_of_machine(scratch()), 300000);
    put("/sys/fs/cgroup/a/b/memory.max", "100\n");
    put("/sys/fs/cgroup/a/b/memory.current", "101\n");
    assert_int_equal(memory_of_machine(scratch()), 4096); /* not 0, which is not known */

    /* Version 1, of which a container sees the upper end alone. */
    put("/proc/self/cgroup", "12:cpu:/x\n4:memory,misc:/far/away\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(memory_of_machine(scratch()), 1000 * 1024);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
    put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n");
    assert_int_equal(memory_of_machine(scratch()), 520000);
    assert_true(memory_of_machine("") > 0);
    assert_true(memory_peak() > 1000000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed), cmocka_unit_test(test_words_fit), cmocka_unit_test(test_rule),
        cmocka_unit_test(test_solve), cmocka_unit_test(test_many),      cmocka_unit_test(test_machine),
        cmocka_unit_test(test_auto),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
