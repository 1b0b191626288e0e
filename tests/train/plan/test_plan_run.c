/* Every rank's part of a plan against what that rank reserves, and hands over in a real step: equal to the
 * byte. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/table/flops.h"
#include "tests/train/run/mesh_fixture.h"
#include "train/loop/loop.h"
#include "train/plan/plan.h"

static const char base[] = "model:\n"
                           "  vocab_size: 263\n" /* divides by nothing */
                           "  hidden_size: 32\n"
                           "  num_layers: 8\n"
                           "  num_heads: 4\n"
                           "  intermediate_size: 48\n"
                           "  delta: {distances: [1, 2, 3], hidden: 8, gate_hidden: 4}\n"
                           "train: {steps: 2, batch_size: 16, micro_batch_size: 2, sequence_length: 8}\n"
                           "mesh: {bucket: 2048, small: 300}\n"
                           "checkpoint: {interval_minutes: 0}\n"; /* no saver is made here */

struct planned {
    struct mesh_case on;
    double part; /* above 0: train.memory lies this far from all recomputed to nothing */
};

static struct planned cases[] = {
    {{{1, 1, 1}, {"model.delta.distances=[]"}}, 0},
    {{{1, 1, 1}, {"model.delta.aggregate=attention", "data.validation_fraction=0.2"}}, 0},
    {{{1, 1, 1}, {"train.recompute=full", "train.recompute_every=2"}}, 0},
    {{{1, 1, 1}, {"train.recompute=auto", "data.validation_fraction=0.2"}}, 0.4},
    {{{2, 1, 1}, {"train.recompute=selective", "data.validation_fraction=0.2"}}, 0},
    {{{1, 2, 1}, {"train.recompute=auto", "mesh.delta=connection"}}, 0.6},
    {{{1, 1, 2}, {"train.recompute=none", "train.recompute_delta=auto"}}, 0.9},
    {{{1, 1, 2}, {"mesh.compress_boundary=0.25", "mesh.narrow_sources=false"}}, 0},
    {{{2, 1, 2}, {"train.recompute=auto", "data.validation_fraction=0.2"}}, 0.2},
    {{{2, 1, 1}, {"mesh.wire=bf16"}}, 0}, /* nothing of it there */
    {{{1, 1, 2},
      {"mesh.wire=bf16", "mesh.interleave=2", "model.delta.embedding_source=true",
       "data.validation_fraction=0.2"}},
     0},
    {{{1, 1, 2}, {"mesh.wire=bf16", "mesh.compress_boundary=0.25", "data.validation_fraction=0.2"}}, 0},
    {{{1, 2, 1},
      {"mesh.wire=bf16", "model.delta.aggregate=multihead", "model.delta.attention_heads=2",
       "train.recompute=full"}},
     0},
    {{{1, 2, 1},
      {"mesh.wire=bf16", "mesh.sequence_parallel=true", "model.delta.regularizer=fixed",
       "data.validation_fraction=0.2"}},
     0},
    {{{1, 2, 1},
      {"mesh.wire=bf16", "model.delta.kind=adaptive", "model.delta.aggregate=attention",
       "model.delta.attention_dim=4"}},
     0},
    {{{2, 2, 2},
      {"mesh.wire=bf16", "mesh.interleave=2", "model.tie_embeddings=true", "train.optimizer=muon"}},
     0},
    {{{1, 2, 4}, {"mesh.wire=bf16", "mesh.narrow_sources=false", "mesh.delta=connection"}}, 0},
    {{{2, 2, 2}, {"train.recompute=full", "mesh.sequence_parallel=true", "data.validation_fraction=0.2"}}, 0},
    {{{2, 1, 1}, {"model.delta.normalize=true"}}, 0},
    {{{1, 2, 1}, {"mesh.sequence_parallel=true", "model.delta.regularizer=fixed"}}, 0},
    {{{1, 2, 1}, {"mesh.delta=connection", "model.delta.kind=full"}}, 0},
    {{{1, 1, 2}, {"model.delta.embedding_source=true", "mesh.interleave=2"}}, 0},
    {{{1, 1, 2}, {"model.delta.normalize=true", "model.tie_embeddings=true"}}, 0},
    {{{2, 1, 2}, {"mesh.overlap=false", "mesh.interleave=4"}}, 0},
    {{{1, 2, 2}, {"model.delta.aggregate=attention", "model.delta.attention_dim=4"}}, 0},
    {{{1, 4, 1}, {"model.delta.kind=adaptive", "model.delta.aggregate=mean"}}, 0},
    {{{2, 2, 2}, {"mesh.interleave=2", "mesh.sequence_parallel=true", "model.tie_embeddings=true"}}, 0},
    {{{2, 2, 2}, {"mesh.schedule=zero_bubble_v", "mesh.sequence_parallel=true", "model.tie_embeddings=true"}}, 0},
    {{{1, 1, 4}, {"mesh.schedule=zero_bubble_v", "mesh.wire=bf16", "train.recompute=full"}}, 0},
    {{{1, 1, 8}, {"model.delta.hidden=2", "model.delta.gate_hidden=2"}}, 0},
    {{{1, 2, 4}, {"model.delta.aggregate=multihead", "model.delta.attention_heads=2", "mesh.interleave=2"}},
     0},
    {{{2, 1, 1}, {"train.optimizer=muon", "train.muon.split=whole"}}, 0},
    {{{1, 2, 1}, {"train.optimizer=muon", "model.hidden_size=64", "model.delta.gate_hidden=64"}}, 0},
    {{{2, 2, 1},
      {"train.optimizer=muon", "model.delta.aggregate=attention", "model.hidden_size=64",
       "model.delta.gate_hidden=64", "train.muon.split=whole", "mesh.sequence_parallel=true"}},
     0},
    {{{1, 4, 1}, {"train.optimizer=muon", "mesh.delta=connection", "train.muon.split=head"}}, 0},
    {{{4, 1, 1}, {"mesh.sum_group=2"}}, 0},
    {{{4, 1, 2}, {"mesh.sum_group=2", "train.optimizer=muon", "model.tie_embeddings=true"}}, 0},
    {{{2, 2, 2}, {"train.optimizer=muon", "model.delta.kind=full"}}, 0},
    {{{1, 1, 1}, {"model.delta.distances=[]", "model.exit.layers=[0, 3]", "model.exit.weights=[0.2, 0.3]"}}, 0},
    {{{1, 2, 2},
      {"model.exit.layers=[0, 1, 6]", "model.exit.weights=[0.2, 0.3, 0.4]",
       "data.validation_fraction=0.2"}},
     0},
    {{{2, 1, 2},
      {"model.exit.layers=[1]", "model.exit.weights=[0.2]", "model.tie_embeddings=true", "mesh.interleave=2"}},
     0},
};
enum { CASES = sizeof cases / sizeof *cases };

/* The most that a rank needs with these settings and fixed recomputation. */
static double planned_max(char *const *given, int count, char *recompute) {
    const struct plan_machine machine = plan_machine_of(1, 1, 1);
    char *set[MAX_SET + 2];
    struct config config;
    struct plan plan;
    double max = 0;
    for (int i = 0; i < count; i++) set[i] = given[i];
    set[count++] = recompute;
    set[count++] = "train.recompute_delta=same";
    assert_int_equal(config_parse(base, "test", set, count, &config), 0);
    assert_int_equal(plan_create(&config, 0, &machine, &plan), 0);
    for (long r = 0; r < plan.ranks; r++) max = fmax(max, (double)memory_sum(&plan.rank[r].memory));
    plan_free(&plan);
    config_free(&config);
    return max;
}

static int start(struct run *run, const struct planned *c) {
    struct overrides o;
    char memory[80];
    overrides_fill(&o, &c->on);
    if (c->part > 0) {
        double all = planned_max(o.set, o.count, "train.recompute=full"),
               none = planned_max(o.set, o.count, "train.recompute=none");
        double limit = all + c->part * (none - all);
        snprintf(memory, sizeof memory, "train.memory=%.17g", limit / GIB);
        o.set[o.count++] = memory;
    }
    TRY(prepared(run, base, &o));
    return readied(run);
}

/* Planned before the run, planned without it, reserved: all the same, by category. */
static void check_memory(const struct run *run, const struct memory *planned) {
    struct memory reserved = run_memory(run);
    for (int i = 0; i < MEMORY_PARTS; i++) {
        if (planned->bytes[i] != reserved.bytes[i] || run->plan.planned.bytes[i] != reserved.bytes[i])
            print_message("rank %d, %s: plan %lld, run's plan %lld, reserved %lld\n", run->mesh.rank,
                          memory_key[i], (long long)planned->bytes[i], (long long)run->plan.planned.bytes[i],
                          (long long)reserved.bytes[i]);
        assert_int_equal(planned->bytes[i], reserved.bytes[i]);
        assert_int_equal(run->plan.planned.bytes[i], reserved.bytes[i]);
    }
}

/* AdamW's: 8 bytes (for floats) × (large parameters ÷ data + small ones), but for the padding that makes each
 * zone of the flat buffers whole grains on each data rank. */
static void check_optimizer(const struct run *run, const struct plan_rank *planned) {
    double elements = 0;
    for (int i = 0; i < run->part.table->rows; i++) {
        const struct row *row = &run->part.table->row[i];
        bool large = row->zone == ZONE_LARGE || row->zone == ZONE_SHARED_LARGE;
        elements += (double)row->count / (large ? run->mesh.axis[AXIS_DATA].size : 1);
    }
    int64_t size = 2 * (int64_t)sizeof(real);
    assert_true(planned->optimizer_formula == size * (int64_t)ceil(elements));
    int64_t padding = planned->memory.bytes[MEMORY_OPTIMIZER] - planned->optimizer_formula;
    assert_in_range(padding, 0, size * ZONES * SHARD_GRAIN * run->mesh.axis[AXIS_DATA].size);
}

static void test_step(void **state) {
    const struct planned *c = *state;
    const struct plan_machine machine = plan_machine_of(1e11, 1e9, 1e9);
    struct run run;
    struct step_report report;
    struct plan plan;
    int status = start(&run, c);
    assert_int_equal(status, 0);
    assert_int_equal(plan_create(&run.config, run.mesh.size, &machine, &plan), 0);
    const struct plan_rank *planned = &plan.rank[run.mesh.rank];
    check_memory(&run, &planned->memory);
    if (c->part > 0) { /* the same choice, and something was to choose */
        size_t layers = (size_t)run.config.model.num_layers;
        char text[200];
        recompute_text(run.plan.policy, (int)layers, text, sizeof text);
        print_message("%s\n", text);
        assert_memory_equal(run.plan.policy, plan.policy, layers * sizeof *run.plan.policy);
        assert_true(plan.ratio[0] > 1 || plan.ratio[run.config.mesh.size[AXIS_PIPELINE] - 1] > 1);
    }
    if (run.config.train.optimizer == OPTIMIZER_ADAMW) check_optimizer(&run, planned);
    if (run.config.model.delta.num_distances ==
        0) { /* no choice of how to compute: the closed formula holds */
        const struct train_config *train = &run.config.train;
        double tokens = (double)train->batch_size * train->sequence_length;
        assert_true(plan.flops == tokens * model_flops_per_token(&run.config.model, &run.part.pipeline.edges,
                                                                 NULL, train->sequence_length));
    }
    assert_int_equal(loop_step(&run, NULL, &report), 0);
    for (int a = 0; a < axes_count(); a++) assert_int_equal(report.communication_bytes[a], planned->bytes[a]);
    plan_free(&plan);
    ended(&run);
}

int rank_main(void) {
    struct CMUnitTest tests[CASES];
    size_t count = tests_of_cases(tests, test_step, cases, CASES, sizeof *cases);
    return run_list_on_ranks("plan", tests, count, world_with_text, world_free);
}
