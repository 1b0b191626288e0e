/* Compressed boundaries: at full rank a step is the uncompressed one but for rounding, on every kind of mesh;
 * below it, bytes and memory are the plan's, the same run has the same bits, feedback brings back what was
 * dropped, evaluations are exact, and what is not finite ends as divergence on all ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backends/backends.h"
#include "tests/train/run/mesh_fixture.h"
#include "kernels/base/random.h"
#include "tests/train/config/config_fixture.h"
#include "tests/support/unit.h"
#include "train/step/boundary.h"
#include "train/loop/loop.h"
#include "train/plan/plan.h"
#include "train/run/ranks.h"

/* At full rank, of a gradient's norm: factors and their product are sums of at most 24 terms, in each of up
 * to seven messages one after the other. Measured: at most a third. */
#ifdef GDN_DOUBLE
static const double FULL_RANK = 1e-13;
#else
static const double FULL_RANK = 3e-5;
#endif

static const char base[] =
    "model: {vocab_size: 257, hidden_size: 24, num_layers: 8, num_heads: 4,\n"
    "  intermediate_size: 32, delta: {distances: [1, 3, 6], hidden: 8, gate_hidden: 4}}\n"
    "train: {steps: 4, batch_size: 8, micro_batch_size: 1, sequence_length: 12,\n"
    "  lr: 0.01, warmup_steps: 0, eval_batches: 1}\n"
    "mesh: {bucket: 1024, small: 100}\n";

enum { SETTINGS = 4 };

struct example {
    int data, tensor, pipeline;
    char *set[SETTINGS];
};

static struct example examples[] = {
    {1, 1, 2, {"model.delta.embedding_source=true"}},
    {1, 1, 2, {"mesh.interleave=2", "model.delta.embedding_source=true", "mesh.narrow_sources=false"}},
    {1, 1, 4, {"model.delta.embedding_source=true", "mesh.narrow_sources=false"}},
    {1, 1, 4, {"model.delta.distances=[2, 5]", "mesh.interleave=2", "model.delta.normalize=true"}},
    {1, 1, 4, {"model.delta.distances=[1, 7]", "model.tie_embeddings=true", "model.delta.kind=full"}},
    {2, 1, 2, {"mesh.interleave=4", "model.delta.aggregate=attention"}},
    {1, 2, 2, {"mesh.narrow_sources=false", "mesh.interleave=2"}},
    {1, 2, 2, {"mesh.sequence_parallel=true", "mesh.narrow_sources=false", "model.delta.normalize=true"}},
    {1, 2, 2, {"mesh.delta=connection", "mesh.narrow_sources=false", "mesh.interleave=4"}},
};

static struct mesh *world; /* of all ranks */
static char path[] = "/tmp/test_boundary_XXXXXX";

/* ------------------------------------------------------------------------------------------------- runs */

/* Compresses by that ratio, whether or not that saves anything; 0: not at all. */
static void start(struct run *run, const struct example *example, double ratio, bool feedback) {
    char axes[3][40], data[80], validation[80],
        *set[SETTINGS + 5] = {axes[0], axes[1], axes[2], data, validation};
    int count = 5;
    *run = (struct run){.best_loss = NAN, .mesh = *world};
    snprintf(axes[0], sizeof axes[0], "mesh.data=%d", example->data);
    snprintf(axes[1], sizeof axes[1], "mesh.tensor=%d", example->tensor);
    snprintf(axes[2], sizeof axes[2], "mesh.pipeline=%d", example->pipeline);
    snprintf(data, sizeof data, "data.train=%s", path);
    snprintf(validation, sizeof validation, "data.validation=%s", path);
    for (int i = 0; i < SETTINGS && example->set[i]; i++) set[count++] = example->set[i];
    assert_int_equal(config_parse(base, "test", set, count, &run->config), 0);
    int status = run_prepare(run, NULL);
    *world = run->mesh; /* laid out anew */
    assert_int_equal(status, 0);
    for (int r = 0; r < run->pipeline.ranks; r++) {
        run->pipeline.layout[r].compress = ratio;
        run->pipeline.layout[r].feedback = feedback;
    }
    assert_int_equal(run_open_data(run), 0);
    assert_int_equal(run_reserve(run), 0);
    struct checkpoint none = {0};
    assert_int_equal(run_load(run, &none, NULL), 0);
    /* Connections begin as no change to what is computed: with gradients that are zero. */
    for (int i = 0; i < run->table->rows; i++) {
        const struct row *row = &run->table->row[i];
        for (long k = 0; k < row->count && row->distance; k++) {
            uint64_t at = (uint64_t)(row->start[0] * 1000 + row->start[1] + k);
            run->state.weight[row->offset + k] += (real)(0.1 * random_normal(3, random_name(row->name), at));
        }
    }
    assert_int_equal(run_create(run), 0);
}

/* The mesh lives on, with the scratch that its axes have reserved. */
static void stop(struct run *run) {
    run_free(run);
    *world = run->mesh;
}

/* What a step leaves on this rank. */
struct outcome {
    double loss, *gradient;
    long count;
};

/* Gradients of a first step of `sequences` a data rank; 0: of all. */
static struct outcome first_step(const struct example *example, double ratio, bool feedback, long sequences) {
    struct run run;
    start(&run, example, ratio, feedback);
    const struct loss_options options = {.active = run.config.model.delta.num_distances,
                                         .token_weight = 1.0 / 96};
    struct step step = {
        .rows = run.rows, .sequences = sequences ? sequences : run.share, .options = &options};
    assert_int_equal(execute(run.executor, &step), 0);
    assert_int_equal(mesh_sum(&run.mesh, &step.sums.ce, 1), 0);
    struct outcome out = {.loss = step.sums.ce, .count = run.table->total};
    out.gradient = calloc((size_t)out.count + 1, sizeof *out.gradient);
    assert_non_null(out.gradient);
    for (long i = 0; i < out.count; i++) out.gradient[i] = (double)run.state.gradient[i];
    stop(&run);
    return out;
}

/* ‖a − b‖ / ‖b‖ over all ranks. */
static double distance(const struct outcome *a, const struct outcome *b) {
    double sums[2] = {0};
    assert_int_equal(a->count, b->count);
    for (long i = 0; i < a->count; i++) {
        double d = a->gradient[i] - b->gradient[i];
        sums[0] += d * d, sums[1] += b->gradient[i] * b->gradient[i];
    }
    assert_int_equal(mesh_sum(world, sums, 2), 0);
    assert_true(sums[1] > 0);
    return sqrt(sums[0] / sums[1]);
}

/* ------------------------------------------------------------------------------------------------ steps */

/* All micro-batches; then one that has a single sequence of two, and empty ones. */
static void test_full_rank(void **state) {
    const struct example *example = *state;
    struct example pairs = *example;
    pairs.set[SETTINGS - 1] = "train.micro_batch_size=2";
    for (int k = 0; k < 2; k++) {
        const struct example *e = k ? &pairs : example;
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
    const struct example *example = *state;
    struct outcome first = first_step(example, 0.3, true, 0), again = first_step(example, 0.3, true, 0),
                   less = first_step(example, 0.1, true, 0), without = first_step(example, 0.3, false, 0);
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
    const struct example *example = *state;
    static const double ratios[] = {0, 0.25, 1e-9};
    static const int plan_axis[STEP_AXES] = {PLAN_DATA, PLAN_TENSOR, PLAN_PIPELINE};
    const struct plan_machine machine = {.flops = 1e11, .bandwidth = {1e9, 1e9, 1e9}, .memory = 1e9};
    int64_t last = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        struct run run;
        struct step_report report;
        struct plan plan;
        start(&run, example, ratios[i], true);
        run.config.mesh.compress_boundary = ratios[i];
        assert_int_equal(plan_create(&run.config, run.mesh.size, &machine, &plan), 0);
        const struct execution planned = {.config = &run.config.model,
                                          .pipeline = &run.pipeline,
                                          .batch = run.micro,
                                          .length = run.config.train.sequence_length};
        assert_int_equal(executor_planned(&planned, run.mesh.pipeline.index), executor_memory(run.executor));
        for (int step = 0; step < 2; step++) {
            assert_int_equal(loop_step(&run, NULL, &report), 0);
            for (int a = 0; a < STEP_AXES; a++)
                assert_int_equal(report.communication_bytes[a], plan.rank[run.mesh.rank].bytes[plan_axis[a]]);
            assert_true(isfinite(report.loss) && isfinite(report.grad_norm));
        }
        assert_true(report.communication_bytes[2] < last);
        last = report.communication_bytes[2];
        plan_free(&plan);
        stop(&run);
    }
}

/* Evaluations in a training run send everything as it is. */
static void test_evaluation(void **state) {
    double loss[2];
    for (int k = 0; k < 2; k++) {
        struct run run;
        start(&run, *state, k ? 0.1 : 0, true);
        assert_int_equal(evaluation_loss(&run.evaluation, 3, NULL, NULL, &loss[k]), 0);
        stop(&run);
    }
    assert_true(loss[0] == loss[1]);
}

/* One weight of the first stage that is not a number: all ranks come to the same verdict. */
static void test_not_finite(void **state) {
    struct run run;
    struct step_report report;
    start(&run, *state, 0.3, true);
    if (run.mesh.pipeline.index == 0) run.state.weight[run.table->row[0].offset] = NAN;
    for (long i = 0; i < run.share * (run.config.train.sequence_length + 1); i++) run.rows[i] = 0;
    assert_int_equal(loop_step(&run, NULL, &report), GDN_DIVERGED);
    gdn_failure_clear();
    stop(&run);
}

/* ---------------------------------------------------------------------------------------------- messages */

enum { T = 6, D = 5 };

/* The second of two stages, with its actions of a training step, packs by factors of rank 1. */
struct packer {
    struct config config;
    struct pipeline pipeline;
    struct boundary boundary;
    struct arena arena, device;
    real *block; /* [T, D] on the device */
};

static const struct ops *side(void) {
    const char *name = getenv("GDN_TEST_BACKEND");
    const struct ops *ops = ops_find(name ? name : "cpu");
    if (!ops) fail_msg("%s", gdn_failure());
    return ops;
}

static void begin(struct packer *p, bool feedback, bool interleave) {
    char *set[] = {"mesh.pipeline=2", "mesh.narrow_sources=false",
                   interleave ? "mesh.interleave=2" : "mesh.interleave=1"};
    *p = (struct packer){.arena.name = "test"};
    assert_int_equal(config_parse(base, "test", set, 3, &p->config), 0);
    assert_int_equal(pipeline_create(&p->config, 1, 0, 0, 4, true, &p->pipeline), 0);
    struct layout *layout = &p->pipeline.layout[1];
    layout->compress = 0.2;
    layout->feedback = feedback;
    p->boundary = (struct boundary){.ops = side(),
                                    .pipeline = &p->pipeline,
                                    .layout = layout,
                                    .T = T,
                                    .D = D,
                                    .nodes = p->config.model.num_layers + 1};
    p->device = (struct arena){.name = "test", .device = side()->device};
    boundary_lay_out(&p->boundary, &p->arena, &p->device);
    assert_int_equal(arena_reserve(&p->arena), 0);
    assert_int_equal(arena_reserve(&p->device), 0);
    boundary_lay_out(&p->boundary, &p->arena, &p->device);
    p->block = side()->device->reserve(T * D * sizeof *p->block);
    boundary_begin(&p->boundary, 7, 4);
}

static void end(struct packer *p) {
    arena_free(&p->arena);
    arena_free(&p->device);
    side()->device->release(p->block);
    pipeline_free(&p->pipeline);
    config_free(&p->config);
}

/* 3 a bᵀ + c dᵀ, where a and c, b and d stand at right angles and have length 1. */
static void fill(real *x) {
    static const double a[T] = {0.6, 0, 0.8}, c[T] = {0, 1}, b[D] = {0, 0.8, -0.6}, d[D] = {0, 0, 0, 1};
    for (int i = 0; i < T; i++)
        for (int j = 0; j < D; j++) x[i * D + j] = (real)(3 * a[i] * b[j] + c[i] * d[j]);
}

static const struct action *first_send(const struct actions *list, int chunk, enum cargo cargo, int micro) {
    for (int i = 0; i < list->count; i++) {
        const struct action *a = &list->action[i];
        if (a->act == ACT_SEND && a->chunk == chunk && a->cargo == cargo && a->micro == micro) return a;
    }
    fail_msg("no message of cargo %d", (int)cargo);
    return NULL;
}

/* What arrives of x [rows, D] as the action's message. */
static void send_as(struct packer *p, const struct action *a, long rows, const real *x, real *y) {
    const struct device *device = side()->device;
    size_t bytes = (size_t)(rows * D) * sizeof *x;
    device->upload(p->block, x, bytes);
    const real *message = boundary_pack(&p->boundary, &p->pipeline.schedule.rank[1], a, rows, p->block);
    assert_ptr_equal(message, boundary_room(&p->boundary, a->buffer));
    device->clear(p->block, bytes);
    boundary_unpack(&p->boundary, a->buffer, rows, p->block);
    device->download(y, p->block, bytes);
    assert_int_equal(device->status(), 0);
}

/* The same as micro-batch `micro`'s first message of a cargo from the first chunk. */
static void send(struct packer *p, enum cargo cargo, int micro, long rows, real *x, real *y) {
    send_as(p, first_send(&p->pipeline.schedule.rank[1], 0, cargo, micro), rows, x, y);
}

static double difference(const real *x, const real *y, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return sqrt(sum);
}

/* Of a gradient of two singular values the next message of the same gradient, of nothing by itself, brings
 * what was dropped; no other one does, nor does the next step's. */
static void test_feedback(void **state) {
    (void)state;
    static const real zeros[T * D];
    for (int feedback = 0; feedback < 2; feedback++) {
        struct packer p;
        real whole[T * D], x[T * D], first[T * D], other[T * D], second[T * D], third[T * D];
        const double exact = FULL_RANK;
        begin(&p, feedback, false);
        fill(whole);
        memcpy(x, whole, sizeof x);
        send(&p, CARGO_GRADIENT, 0, T, x, first);
        assert_true(difference(first, whole, T * D) > 0.9); /* rank 1 of values 3 and 1 */
        memcpy(x, zeros, sizeof x);
        send(&p, CARGO_DEPOSIT, 0, T, x, other);
        assert_true(difference(other, zeros, T * D) == 0);
        memcpy(x, zeros, sizeof x);
        send(&p, CARGO_GRADIENT, 1, T, x, second);
        for (int i = 0; i < T * D; i++) first[i] += second[i];
        assert_int_equal(difference(first, whole, T * D) < exact, feedback);
        memcpy(x, zeros, sizeof x);
        send(&p, CARGO_GRADIENT, 2, T, x, third);
        assert_true(difference(third, zeros, T * D) < exact); /* all has been said */

        memcpy(x, whole, sizeof x);
        send(&p, CARGO_DEPOSIT, 1, T, x, first);
        memcpy(x, zeros, sizeof x);
        send(&p, CARGO_DEPOSIT, 2, T, x, second);
        for (int i = 0; i < T * D; i++) first[i] += second[i];
        assert_int_equal(difference(first, whole, T * D) < exact, feedback);
        end(&p);

        begin(&p, feedback, false);
        memcpy(x, whole, sizeof x);
        send(&p, CARGO_GRADIENT, 0, T, x, first);
        boundary_begin(&p.boundary, 8, 4);
        memcpy(x, zeros, sizeof x);
        send(&p, CARGO_GRADIENT, 1, T, x, second);
        assert_true(difference(second, zeros, T * D) == 0);
        end(&p);
    }
}

/* Each message has what was dropped of its own: not of another cargo, in fewer rows, nor of the same node's
 * deposit from another chunk. */
static void test_own_feedback(void **state) {
    (void)state;
    static const enum cargo cargos[] = {CARGO_GRADIENT, CARGO_DEPOSIT};
    static const real zeros[T * D];
    struct packer p;
    real x[T * D], y[T * D];
    for (int i = 0; i < 2; i++) {
        begin(&p, true, false);
        fill(x);
        send(&p, cargos[i], 0, T, x, y);
        memcpy(x, zeros, sizeof x);
        send(&p, cargos[1 - i], 0, 2, x, y);
        assert_true(difference(y, zeros, 2 * D) == 0);
        end(&p);
    }
    begin(&p, true, true);
    const struct action *later = first_send(&p.pipeline.schedule.rank[1], 1, CARGO_DEPOSIT, 0), *own = later;
    while (own->act != ACT_SEND || own->chunk || own->cargo != CARGO_DEPOSIT || own->index != later->index)
        own++;
    assert_true(own->micro == 0);
    fill(x);
    send_as(&p, later, T, x, y);
    memcpy(x, zeros, sizeof x);
    send_as(&p, own, T, x, y);
    assert_true(difference(y, zeros, T * D) == 0);
    end(&p);
}

/* A single row has rank 1, and nothing at all is no message. */
static void test_few_rows(void **state) {
    (void)state;
    struct packer p;
    real x[T * D], whole[D], y[D] = {0};
    begin(&p, true, false);
    fill(x);
    memcpy(whole, x, sizeof whole);
    send(&p, CARGO_GRADIENT, 0, 1, x, y);
    assert_true(difference(y, whole, D) < FULL_RANK);
    send(&p, CARGO_GRADIENT, 1, 0, x, y);
    assert_true(difference(y, whole, D) < FULL_RANK); /* not touched */
    assert_int_equal(boundary_elements(p.boundary.layout, 0, D), 0);
    assert_int_equal(boundary_elements(p.boundary.layout, 1, D), 1 + D);
    assert_int_equal(boundary_elements(p.boundary.layout, T, D), T + D);
    end(&p);
}

/* The same content gives the same bits with the same step and message, and begins elsewhere with others. */
static void test_seed(void **state) {
    (void)state;
    static const struct {
        uint64_t step;
        int micro;
    } cases[] = {{8, 0}, {8, 0}, {9, 0}, {8, 1}};
    real x[T * D], y[4][T * D];
    for (int i = 0; i < 4; i++) {
        struct packer p;
        begin(&p, true, false);
        boundary_begin(&p.boundary, cases[i].step, 4);
        for (int j = 0; j < T * D; j++) x[j] = (real)random_normal(1, 2, (uint64_t)j);
        send(&p, CARGO_GRADIENT, cases[i].micro, T, x, y[i]);
        end(&p);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_true(memcmp(y[0], y[2], sizeof y[0]) && memcmp(y[0], y[3], sizeof y[0]));
}

/* ------------------------------------------------------------------------------------------------- errors */

/* A block of 12·24 elements; factors of rank k have 36·k: up to 7 of 12 save something. */
static void test_errors(void **state) {
    (void)state;
    struct pipeline pipeline;
    struct config config = right(base, "mesh.pipeline=2", "mesh.compress_boundary=0.58");
    assert_int_equal(pipeline_create(&config, 1, 0, 0, 8, true, &pipeline), 0);
    pipeline_free(&pipeline);
    config.mesh.compress_boundary = 0.67; /* rank 8: 288 elements instead of 288 */
    assert_int_equal(pipeline_create(&config, 1, 0, 0, 8, true, &pipeline), GDN_INPUT);
    static const char *const words[] = {"mesh.compress_boundary: 0.67", "model.hidden_size 24",
                                        "train.micro_batch_size 1", "train.sequence_length 12",
                                        "at most 0.5833"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) failure_has(words[i]);
    failure_is_short();
    gdn_failure_clear();
    assert_int_equal(pipeline_create(&config, 1, 0, 0, 8, false, &pipeline), 0); /* evaluation: exact */
    assert_true(pipeline.layout[0].compress == 0);
    pipeline_free(&pipeline);
    config.train.sequence_length = 1; /* one token: as many elements as its factors, but one */
    assert_int_equal(pipeline_create(&config, 1, 0, 0, 8, true, &pipeline), GDN_INPUT);
    failure_has("none saves");
    gdn_failure_clear();
    config_free(&config);
    refused(base, "mesh.compress_boundary=0.5", "mesh.compress_boundary: 0.5", "mesh.pipeline: 1", NULL);
    refused(base, "mesh.compress_boundary=1.5", "mesh.compress_boundary", NULL);
}

/* -------------------------------------------------------------------------------------------------- all */

/* What needs no other ranks; and on several ranks, the meshes of so many. */
int main(void) {
    static void (*const steps[])(void **) = {test_full_rank, test_bits, test_plan, test_evaluation,
                                             test_not_finite};
    enum { STEPS = sizeof steps / sizeof *steps, EXAMPLES = sizeof examples / sizeof *examples };
    static const char *const names[STEPS] = {"full rank", "bits", "plan", "evaluation", "not finite"};
    struct CMUnitTest tests[STEPS * EXAMPLES + 5] = {
        cmocka_unit_test(test_feedback), cmocka_unit_test(test_own_feedback), cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_seed), cmocka_unit_test(test_errors)};
    struct mesh mesh;
    int bad = ranks_begin(&mesh);
    size_t count = mesh.size == 1 ? 5 : 0;
    world = &mesh;
    if (!bad) bad = !make_up_text(&mesh, path);
    for (size_t i = 0; i < EXAMPLES; i++) {
        struct example *e = &examples[i];
        for (int s = 0; s < STEPS && e->data * e->tensor * e->pipeline == mesh.size; s++)
            tests[count++] = (struct CMUnitTest){names[s], steps[s], NULL, NULL, e};
    }
    if (!bad) bad = _cmocka_run_group_tests("boundary", tests, count, NULL, NULL);
    if (mesh.rank == 0) unlink(path);
    return ranks_end(&mesh, bad != 0);
}
