/* Numbers that are not finite are named by rank and layer. Products of one rank are spoilt, by operations
 * that stand before the backend's: always, as a damaged GPU would, or once, as a flipped bit would. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/train/run/mesh_fixture.h"
#include "train/loop/loop.h"

static const char base[] = "model:\n"
                           "  vocab_size: 263\n"
                           "  hidden_size: 32\n"
                           "  num_layers: 8\n"
                           "  num_heads: 4\n"
                           "  intermediate_size: 48\n"
                           "  delta: {distances: [1, 3], hidden: 8, gate_hidden: 4}\n"
                           "train: {steps: 9, batch_size: 16, micro_batch_size: 2, sequence_length: 8}\n"
                           "mesh: {bucket: 2048, small: 300}\n";

/* ------------------------------------------------------------------------------------------ the fault */

static struct {
    const struct ops *real;
    int weight_id; /* products with this weight … */
    char kind;     /* … forward ('f'), or of the gradient of the weight ('w') or its input ('x') … */
    real value;    /* … are spoilt by this … */
    long left;     /* … so many of them */
} fault;

enum { DOWN = 3 }; /* the product of a layer that ends its MLP */

static void spoilt_product(int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                           long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    fault.real->linear(weight_id, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    char kind = ta == 'T' ? 'w' : tb == 'T' ? 'f' : 'x';
    if (weight_id != fault.weight_id || kind != fault.kind) return;
    if (fault.left-- > 0) c[0] = fault.value;
}

/* --------------------------------------------------------------------------------------------- a run */

struct inquired {
    struct mesh_case on;
    int layer; /* that is spoilt, forward or back */
    char kind; /* upper case: an infinity, else a NaN */
    int rank;  /* by this rank */
    const char *what;
    bool all_tensor; /* ranks of its tensor axis have it too, the lowest is named */
};

static int start(struct run *run, const struct inquired *c, struct ops *ops) {
    struct overrides overrides;
    overrides_fill(&overrides, &c->on);
    TRY(prepared(run, base, &overrides));
    *ops = *run->ops;
    fault.real = run->ops;
    ops->linear = spoilt_product;
    run->ops = ops;
    return readied(run);
}

/* All that an update changes: the weights, what the optimiser keeps of them, and how often they were updated.
 */
struct copy {
    real *weight, *moment;
    int64_t *steps;
    size_t weights, moments, rows; /* bytes */
};

static void *copied(const void *from, size_t bytes) {
    void *copy = malloc(bytes);
    assert_non_null(copy);
    return memcpy(copy, from, bytes);
}

static struct copy copy_of_state(const struct run *run) {
    const struct state *state = &run->training.state;
    struct copy copy = {.weights = (size_t)run->part.table->total * sizeof *copy.weight,
                        .moments = (size_t)run->part.shards->moments * sizeof *copy.moment,
                        .rows = (size_t)run->part.table->rows * sizeof *copy.steps};
    copy.weight = copied(state->weight, copy.weights);
    copy.moment = copied(state->moment[0], copy.moments);
    copy.steps = copied(state->steps, copy.rows);
    return copy;
}

static void same_state(const struct run *run, const struct copy *before) {
    const struct state *state = &run->training.state;
    assert_memory_equal(before->weight, state->weight, before->weights);
    assert_memory_equal(before->moment, state->moment[0], before->moments);
    assert_memory_equal(before->steps, state->steps, before->rows);
    free(before->weight), free(before->moment), free(before->steps);
}

static void check_place(const struct run *run, const struct inquired *c) {
    const struct verdict *v = &run->trainer.verdict;
    char bad_ranks[32];
    int rank = c->all_tensor ? c->rank / c->on.mesh.tensor * c->on.mesh.tensor : c->rank;
    assert_true(v->asked && v->recurred && v->found);
    assert_string_equal(v->finding.what, c->what);
    assert_int_equal(v->finding.layer, c->layer);
    assert_int_equal(v->finding.micro_batch, 0);
    assert_int_equal(v->rank, rank);
    assert_string_equal(v->host, run->mesh.host);
    snprintf(bad_ranks, sizeof bad_ranks, "rank%s %d", c->all_tensor ? "s" : "", rank);
    if (run->mesh.size == 1)
        assert_string_equal(v->bad_ranks, "");
    else if (strncmp(v->bad_ranks, bad_ranks, strlen(bad_ranks)) != 0 ||
             (!c->all_tensor && v->bad_ranks[strlen(bad_ranks)]))
        fail_msg("the bad ranks are \"%s\", not \"%s\"", v->bad_ranks, bad_ranks);
}

/* A fault that is always there: named, twice alike; and nothing is updated. */
static void lasting(struct run *run, const struct inquired *c) {
    struct step_report report;
    fault.left = run->mesh.rank == c->rank ? 1000000 : 0;
    struct copy before = copy_of_state(run);
    for (int i = 0; i < 2; i++) {
        char text[64];
        assert_int_equal(loop_step(run, NULL, &report), GDN_DIVERGED);
        snprintf(text, sizeof text, "is the %s on rank %d", c->what, run->trainer.verdict.rank);
        if (!strstr(gdn_failure(), text)) fail_msg("no \"%s\" in: %s", text, gdn_failure());
        gdn_failure_clear();
        check_place(run, c);
        assert_int_equal(run->position.step, 1);
    }
    same_state(run, &before);
    fault.left = 0;
}

/* One that happens once: computed again, the step is good. */
static void passing(struct run *run, const struct inquired *c) {
    struct step_report report;
    int64_t samples = run->position.samples;
    fault.left = run->mesh.rank == c->rank;
    struct copy before = copy_of_state(run);
    assert_int_equal(loop_step(run, NULL, &report), GDN_DIVERGED);
    assert_true(run->trainer.verdict.asked && !run->trainer.verdict.recurred && !run->trainer.verdict.found);
    assert_non_null(strstr(gdn_failure(), "did not recur"));
    gdn_failure_clear();
    int rank = c->all_tensor ? c->rank / c->on.mesh.tensor * c->on.mesh.tensor : c->rank;
    assert_int_equal(run->trainer.verdict.rank, run->mesh.size == 1 ? -1 : rank);
    same_state(run, &before);

    /* The same with a window: the step is left out, and the next one is none the worse. */
    before = copy_of_state(run);
    struct spikes_config *spikes = &run->config.spikes;
    spikes->window = 8;
    assert_int_equal(spikes_create(spikes, &run->spikes), 0);
    fault.left = run->mesh.rank == c->rank;
    assert_int_equal(loop_step(run, NULL, &report), 0);
    assert_int_equal(run->spikes.last.kind, SPIKE_NOT_FINITE);
    assert_true(run->trainer.verdict.asked && !run->trainer.verdict.recurred);
    assert_int_equal(run->position.step, 2);
    assert_int_equal(run->position.samples, samples + 16);
    same_state(run, &before);
    assert_int_equal(loop_step(run, NULL, &report), 0);
    assert_true(isfinite(report.loss) && isfinite(report.grad_norm));
    assert_false(run->trainer.verdict.asked);
    assert_int_equal(run->spikes.last.kind, SPIKE_NONE);
    assert_int_equal(run->position.step, 3);
}

static void test_example(void **state) {
    const struct inquired *c = *state;
    struct run run;
    struct step_report report;
    struct ops ops;
    int status = start(&run, c, &ops);
    if (status) fail_msg("%s", gdn_failure());
    fault.weight_id = c->layer * (model_weight_ids(&run.config.model) / run.config.model.num_layers) + DOWN;
    fault.kind = (char)tolower(c->kind);
    fault.value = (real)(isupper(c->kind) ? INFINITY : NAN);
    fault.left = 0;
    assert_int_equal(loop_step(&run, NULL, &report), 0); /* all is well */
    assert_false(run.trainer.verdict.asked);
    lasting(&run, c);
    passing(&run, c);
    ended(&run);
}

#define MUON "train.optimizer=muon"

static struct inquired cases[] = {
    {{{1, 1, 1}, {NULL}}, 3, 'f', 0, "output of layer 3", false},
    {{{1, 1, 1}, {"train.recompute=full"}}, 0, 'f', 0, "output of layer 0", false},
    {{{1, 1, 1}, {"train.compress_sources=0.5"}}, 3, 'f', 0, "output of layer 3", false},
    {{{1, 1, 1}, {NULL}}, 5, 'w', 0, "gradient of layers.5.mlp.down_proj.weight", false},
    {{{1, 1, 1}, {NULL}}, 5, 'x', 0, "gradient of layers.5.self_attn.q_proj.weight", false},
    {{{2, 1, 1}, {NULL}}, 6, 'f', 1, "output of layer 6", false},
    {{{2, 1, 1}, {NULL}}, 2, 'w', 1, "gradient of layers.2.mlp.down_proj.weight", false},
    {{{1, 2, 1}, {NULL}}, 4, 'f', 1, "output of layer 4", true},
    {{{1, 2, 1}, {"mesh.sequence_parallel=true"}}, 1, 'f', 1, "output of layer 1", true},
    {{{1, 2, 1}, {NULL}}, 4, 'w', 1, "gradient of layers.4.mlp.down_proj.weight", false},
    {{{1, 1, 2}, {NULL}}, 1, 'f', 0, "output of layer 1", false},
    {{{1, 1, 2}, {NULL}}, 6, 'f', 1, "output of layer 6", false},
    {{{1, 1, 2}, {"train.compress_sources=0.5"}}, 5, 'f', 1, "output of layer 5", false},
    {{{1, 1, 2}, {"mesh.interleave=2", "mesh.narrow_sources=false"}}, 5, 'f', 0, "output of layer 5", false},
    {{{1, 1, 2}, {NULL}}, 2, 'w', 0, "gradient of layers.2.mlp.down_proj.weight", false},
    {{{2, 1, 2}, {NULL}}, 6, 'f', 3, "output of layer 6", false},
    {{{2, 1, 2}, {"mesh.overlap=false"}}, 1, 'w', 1, "gradient of layers.1.mlp.down_proj.weight", false},
    {{{1, 2, 2}, {NULL}}, 7, 'f', 2, "output of layer 7", true},
    /* Muon multiplies whole matrices, by their norm first: one bad number would be in all of them. */
    {{{1, 1, 1}, {MUON}}, 5, 'W', 0, "gradient of layers.5.mlp.down_proj.weight", false},
    {{{2, 1, 1}, {MUON}}, 2, 'W', 1, "gradient of layers.2.mlp.down_proj.weight", false},
    {{{1, 2, 1}, {MUON}}, 4, 'w', 1, "gradient of layers.4.mlp.down_proj.weight", false},
};
enum { CASES = sizeof cases / sizeof *cases };

int rank_main(void) {
    struct CMUnitTest tests[CASES];
    size_t count = tests_of_cases(tests, test_example, cases, CASES, sizeof *cases);
    for (size_t i = 0; i < count; i++) tests[i].name = ((struct inquired *)tests[i].initial_state)->what;
    return run_list_on_ranks("NaN traces", tests, count, world_with_text, world_free);
}
