/* Compressed boundaries in runs: at full rank a step is the uncompressed one but for rounding, on every kind
 * of mesh; below it, bytes and memory are the plan's, the same run has the same bits, evaluations are exact,
 * and what is not finite ends as divergence on all ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/train/run/mesh_fixture.h"
#include "tests/train/step/boundary_case.h"
#include "tests/train/step/outcome.h"
#include "train/config/rows.h"
#include "train/step/boundary.h"
#include "train/loop/loop.h"
#include "train/plan/plan.h"

static struct mesh_case cases[] = {
    {{1, 1, 2}, {"model.delta.embedding_source=true"}},
    {{1, 1, 2}, {"mesh.interleave=2", "model.delta.embedding_source=true", "mesh.narrow_sources=false"}},
    {{1, 1, 4}, {"model.delta.embedding_source=true", "mesh.narrow_sources=false"}},
    {{1, 1, 4}, {"model.delta.distances=[2, 5]", "mesh.interleave=2", "model.delta.normalize=true"}},
    {{1, 1, 4}, {"model.delta.distances=[1, 7]", "model.tie_embeddings=true", "model.delta.kind=full"}},
    {{2, 1, 2}, {"mesh.interleave=4", "model.delta.aggregate=attention"}},
    {{1, 2, 2}, {"mesh.narrow_sources=false", "mesh.interleave=2"}},
    {{1, 2, 2}, {"mesh.sequence_parallel=true", "mesh.narrow_sources=false", "model.delta.normalize=true"}},
    {{1, 2, 2}, {"mesh.delta=connection", "mesh.narrow_sources=false", "mesh.interleave=4"}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Where context ranks factorise together: what they hand over for that. */
static struct mesh_case context_cases[] = {
    {{3, 1, 2}, {"mesh.data=1", "mesh.context=3", "model.delta.embedding_source=true"}},
    {{2, 1, 2}, {"mesh.data=1", "mesh.context=2", "model.delta.embedding_source=true", "mesh.interleave=4"}},
    {{2, 1, 2}, {"mesh.data=1", "mesh.context=2", "mesh.interleave=2", "mesh.narrow_sources=false"}},
    {{2, 1, 4},
     {"mesh.data=1", "mesh.context=2", "model.delta.embedding_source=true", "mesh.narrow_sources=false"}},
};

/* ------------------------------------------------------------------------------------------------- runs */

/* Compresses by that ratio, whether or not that saves anything; 0: not at all. */
static void start(struct run *run, const struct mesh_case *c, double ratio, bool feedback) {
    struct overrides o;
    char validation[sizeof o.data];
    overrides_fill(&o, c);
    snprintf(validation, sizeof validation, "data.validation=%s", text_path());
    o.set[o.count++] = validation;
    assert_int_equal(prepared(run, base, &o), 0);
    for (int r = 0; r < run->part.pipeline.ranks; r++) {
        run->part.pipeline.layout[r].compress = ratio;
        run->part.pipeline.layout[r].feedback = feedback;
    }
    assert_int_equal(run_open_data(run, NULL), 0);
    assert_int_equal(run_plan(run), 0);
    assert_int_equal(run_reserve(run), 0);
    assert_int_equal(run_load(run, NULL), 0);
    connections_drawn(run);
    assert_int_equal(run_create(run), 0);
}

/* Gradients of a first step of `sequences` a data rank; 0: of all. */
static struct outcome first_step(const struct mesh_case *c, double ratio, bool feedback, long sequences) {
    struct run run;
    start(&run, c, ratio, feedback);
    const struct loss_options options = {.target_weight = 1.0 / 96};
    struct step step = {
        .rows = run.data.rows, .sequences = sequences ? sequences : run.part.share, .options = &options};
    return outcome_of(&run, &step);
}

/* ------------------------------------------------------------------------------------------------ steps */

/* All micro-batches; then one that has a single sequence of two, and empty ones. */
static void test_full_rank(void **state) {
    const struct mesh_case *c = *state;
    struct mesh_case pairs = *c;
    int settings = 0;
    while (pairs.set[settings]) settings++;
    pairs.set[settings] = "train.micro_batch_size=2";
    for (int k = 0; k < 2; k++) {
        const struct mesh_case *e = k ? &pairs : c;
        struct outcome exact = first_step(e, 0, true, k ? 3 : 0);
        struct outcome factors = first_step(e, 1, true, k ? 3 : 0);
        double off = distance(&factors, &exact), loss = fabs(factors.loss - exact.loss) / exact.loss;
        assert_true(off > 0); /* else nothing was compressed */
        if (off > FULL_RANK || loss > FULL_RANK) fail_msg("gradients differ by %g, losses by %g", off, loss);
        free(exact.gradient);
        free(factors.gradient);
    }
}

/* The same bits twice; others with another ratio, and with feedback. */
static void test_bits(void **state) {
    const struct mesh_case *c = *state;
    struct outcome first = first_step(c, 0.3, true, 0), again = first_step(c, 0.3, true, 0),
                   less = first_step(c, 0.1, true, 0), without = first_step(c, 0.3, false, 0);
    assert_true(distance(&again, &first) == 0 && again.loss == first.loss);
    assert_true(distance(&less, &first) > 1e-3 && less.loss != first.loss);
    assert_true(distance(&without, &first) > 1e-3);
    assert_true(without.loss == first.loss); /* feedback is for gradients */
    free(first.gradient);
    free(again.gradient);
    free(less.gradient);
    free(without.gradient);
}

/* Bytes of a whole step, and memory, are the plan's; steps of few and of single singular values train. */
static void test_plan(void **state) {
    const struct mesh_case *c = *state;
    static const double ratios[] = {0, 0.25, 1e-9};
    const struct plan_machine machine = plan_machine_of(1e11, 1e9, 1e9);
    int64_t last = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        struct run run;
        struct step_report report;
        struct plan plan;
        start(&run, c, ratios[i], true);
        run.config.mesh.compress_boundary = ratios[i];
        assert_int_equal(plan_create(&run.config, run.mesh.size, &machine, &plan), 0);
        const struct execution planned = {.config = &run.config.model,
                                          .pipeline = &run.part.pipeline,
                                          .batch = config_rows(&run.config, run.part.micro_batch),
                                          .length = config_row_length(&run.config)};
        assert_int_equal(executor_planned(&planned, run.mesh.axis[AXIS_PIPELINE].index),
                         executor_memory(run.trainer.executor));
        for (int step = 0; step < 2; step++) {
            assert_int_equal(loop_step(&run, NULL, &report), 0);
            for (int a = 0; a < axes_count(); a++)
                assert_int_equal(report.communication_bytes[a], plan.rank[run.mesh.rank].bytes[a]);
            assert_true(isfinite(report.loss) && isfinite(report.grad_norm));
        }
        assert_true(report.communication_bytes[AXIS_PIPELINE] < last);
        last = report.communication_bytes[AXIS_PIPELINE];
        plan_free(&plan);
        ended(&run);
    }
}

/* Evaluations in a training run send everything as it is. */
static void test_evaluation(void **state) {
    double loss[2];
    for (int k = 0; k < 2; k++) {
        struct run run;
        start(&run, *state, k ? 0.1 : 0, true);
        const struct pipeline *pipeline = &run.evaluation.pipeline;
        const struct edge_set *all = pipeline_active(pipeline, pipeline->distances);
        assert_int_equal(evaluation_loss(&run.evaluation, all, NULL, NULL, &loss[k]), 0);
        ended(&run);
    }
    assert_true(loss[0] == loss[1]);
}

/* One weight of the first stage that is not a number: all ranks come to the same verdict. */
static void test_not_finite(void **state) {
    struct run run;
    struct step_report report;
    start(&run, *state, 0.3, true);
    if (run.mesh.axis[AXIS_PIPELINE].index == 0)
        run.training.state.weight[run.part.table->row[0].offset] = NAN;
    for (long i = 0; i < run.part.share * (run.config.train.sequence_length + 1); i++) run.data.rows[i] = 0;
    assert_int_equal(loop_step(&run, NULL, &report), GDN_DIVERGED);
    gdn_failure_clear();
    ended(&run);
}

int rank_main(void) {
    static const struct {
        const char *name;
        CMUnitTestFunction test;
    } steps[] = {{"full rank", test_full_rank},
                 {"bits", test_bits},
                 {"plan", test_plan},
                 {"evaluation", test_evaluation},
                 {"not finite", test_not_finite}};
    enum {
        STEPS = sizeof steps / sizeof *steps,
        CONTEXT_CASES = sizeof context_cases / sizeof *context_cases
    };
    struct CMUnitTest tests[STEPS * CASES + CONTEXT_CASES];
    size_t count = tests_of_cases(tests, test_plan, context_cases, CONTEXT_CASES, sizeof *context_cases);
    for (size_t i = 0; i < count; i++) tests[i].name = "plan with context ranks";
    for (int s = 0; s < STEPS; s++)
        for (size_t i = tests_of_cases(tests + count, steps[s].test, cases, CASES, sizeof *cases); i; i--)
            tests[count++].name = steps[s].name;
    return run_list_on_ranks("boundary", tests, count, world_with_text, world_free);
}
