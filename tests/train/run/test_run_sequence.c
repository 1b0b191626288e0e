/* A run's phases are called in order, or refused: every call after every phase. */
#include <stdlib.h>
#include <string.h>

#include "tests/train/run/mesh_fixture.h"

static const char base[] = "model:\n"
                           "  vocab_size: 263\n"
                           "  hidden_size: 8\n"
                           "  num_layers: 2\n"
                           "  num_heads: 2\n"
                           "  intermediate_size: 8\n"
                           "  delta: {distances: [1], hidden: 2, gate_hidden: 2}\n"
                           "train: {steps: 2, batch_size: 4, sequence_length: 8}\n";

static struct mesh_case cases[] = {
    {{1, 1, 1}, {"data.validation_fraction=0.2"}},
    {{2, 1, 1}, {"data.validation_fraction=0.2"}},
};
enum { CASES = sizeof cases / sizeof *cases };

static const struct mesh_case *on; /* the case */

static int configure(struct run *run) {
    struct overrides overrides;
    struct config config;
    overrides_fill(&overrides, on);
    TRY(config_parse(base, "test", overrides.set, overrides.count, &config));
    int status = run_configure_as(run, &config);
    if (status) config_free(&config);
    return status;
}

static int configure_from_file(struct run *run) {
    return run_configure(run, "/nowhere.yaml", NULL, 0);
}

static int find_start(struct run *run) {
    return run_find_start(run, scratch(), NULL, NULL);
}

static int adopt(struct run *run) {
    return run_adopt(run, NULL, 0, NULL);
}

static int prepare(struct run *run) {
    int status = run_prepare(run, NULL);
    world = run->mesh;
    return status;
}

static int match_data(struct run *run) {
    return run_match_data(run, false, NULL);
}

static int load(struct run *run) {
    return run_load(run, NULL);
}

static int open_data(struct run *run) {
    return run_open_data(run, NULL);
}

/* What leads from each phase to the next. */
static const struct {
    const char *name;
    int (*call)(struct run *run);
    bool optional;
} calls[] = {
    {"run_init", NULL, false},
    {"run_configure", configure, false},
    {"run_find_start", find_start, true},
    {"run_adopt", adopt, true},
    {"run_prepare", prepare, false},
    {"run_take_position", run_take_position, true},
    {"run_open_data", open_data, true},
    {"run_match_data", match_data, true},
    {"run_plan", run_plan, false},
    {"run_reserve", run_reserve, false},
    {"run_load", load, false},
    {"run_create", run_create, false},
};
enum { CALLS = sizeof calls / sizeof *calls };

static bool fits(int after, int call) {
    for (int between = after + 1; between < call; between++)
        if (!calls[between].optional) return false;
    return call > after;
}

static void expect_refused(struct run *run, int after, const char *name, int (*call)(struct run *)) {
    char text[80];
    assert_int_equal(call(run), GDN_INTERNAL);
    snprintf(text, sizeof text, "%s was called after %s", name, calls[after].name);
    if (!strstr(gdn_failure(), text)) fail_msg("no \"%s\" in: %s", text, gdn_failure());
    gdn_failure_clear();
    assert_int_equal(run->phase, after);
}

/* One way through all phases; after each of them every call that does not fit is tried. */
static void refused_out_of_order(void **state) {
    struct run run;
    on = *state;
    run_init(&run);
    run.mesh = world;
    for (int after = 0; after < CALLS; after++) {
        if (after) assert_int_equal(calls[after].call(&run), 0);
        assert_int_equal(run.phase, after);
        for (int call = 1; call < CALLS; call++)
            if (!fits(after, call)) expect_refused(&run, after, calls[call].name, calls[call].call);
        if (after) expect_refused(&run, after, "run_configure", configure_from_file);
    }
    ended(&run);
}

/* What may be left out, left out. */
static void shortest_way(void **state) {
    struct run run;
    on = *state;
    run_init(&run);
    run.mesh = world;
    for (int call = 1; call < CALLS; call++)
        if (!calls[call].optional) assert_int_equal(calls[call].call(&run), 0);
    assert_int_equal(run.phase, RUN_CREATED);
    ended(&run);
}

/* A phase that failed is not done. */
static void failed_is_not_done(void **state) {
    struct run run;
    (void)state;
    run_init(&run);
    run.mesh = world;
    assert_int_equal(configure_from_file(&run), GDN_INPUT);
    gdn_failure_clear();
    expect_refused(&run, RUN_EMPTY, "run_prepare", prepare);
    world = run.mesh;
    run_free(&run);
}

int rank_main(void) {
    struct CMUnitTest tests[2 * CASES + 1] = {cmocka_unit_test(failed_is_not_done)};
    size_t count = 1;
    count += tests_of_cases(tests + count, refused_out_of_order, cases, CASES, sizeof *cases);
    count += tests_of_cases(tests + count, shortest_way, cases, CASES, sizeof *cases);
    return run_list_on_ranks("run sequence", tests, count, world_with_text, world_free);
}
