/* Copies of weights: after training they are the same bit for bit on every mesh, and one flipped bit is
 * found, on the rank that has it as far as anybody can know. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/train/run/mesh_fixture.h"
#include "model/params/params.h"
#include "tests/support/unit.h"
#include "train/loop/loop.h"
#include "train/health/replicas.h"
#include "train/run/ranks.h"

static const char base[] = "model:\n"
                           "  vocab_size: 263\n"
                           "  hidden_size: 32\n"
                           "  num_layers: 4\n"
                           "  num_heads: 4\n"
                           "  intermediate_size: 48\n"
                           "  delta: {distances: [1, 2], hidden: 8, gate_hidden: 4}\n"
                           "train: {steps: 9, batch_size: 16, micro_batch_size: 2, sequence_length: 8}\n"
                           "mesh: {bucket: 2048, small: 300}\n"
                           "device: cpu\n";

enum { MOST = 4, STEPS = 3 };

/* A bit flipped in a tensor on one rank, and who is named; `off` ends with −1. */
struct flip {
    const char *tensor;
    int rank;
    int off[MOST + 1];
    bool undecided;
};

enum { SETTINGS = 3, FLIPS = 4 };

struct example {
    int data, tensor, pipeline;
    char *set[SETTINGS];
    struct flip flip[FLIPS];
};

static const char up[] = "layers.1.mlp.gate_proj.weight", norm[] = "layers.2.post_attention_layernorm.weight",
                  wide[] = "embed_tokens.weight";

static struct example examples[] = {
    {2, 1, 1, {"train.seed=3"}, {{up, 0, {0, 1, -1}, true}, {norm, 1, {0, 1, -1}, true}}},
    /* A tensor that is split over the tensor axis has no copy there. */
    {1, 2, 1, {"mesh.sequence_parallel=true"}, {{norm, 1, {0, 1, -1}, true}, {up, 1, {-1}, false}}},
    {1, 1, 2, {"model.tie_embeddings=true"}, {{wide, 1, {0, 1, -1}, true}, {up, 0, {-1}, false}}},
    {4,
     1,
     1,
     {"train.seed=4"},
     {{up, 2, {2, -1}, false}, {norm, 0, {0, -1}, false}, {wide, 3, {3, -1}, false}}},
    {2, 2, 1, {"train.seed=5"}, {{up, 2, {0, 2, -1}, true}, {norm, 2, {2, -1}, false}}},
    {2,
     2,
     1,
     {"mesh.delta=connection"},
     {{"layers.2.delta.2.gate_in.weight", 1, {1, 3, -1}, true}, {norm, 3, {3, -1}, false}}},
    {2, 1, 2, {"model.tie_embeddings=true"}, {{wide, 3, {3, -1}, false}, {up, 1, {0, 1, -1}, true}}},
    {1,
     2,
     2,
     {"model.delta.aggregate=attention"},
     {{"layers.3.input_layernorm.weight", 3, {2, 3, -1}, true}}},
};

static struct mesh *world;
static char path[] = "/tmp/test_replicas_XXXXXX";

static int start(struct run *run, const struct example *example) {
    struct overrides overrides;
    overrides_fill(&overrides, example->data, example->tensor, example->pipeline, path, example->set,
                   SETTINGS);
    TRY(prepared(run, base, &overrides));
    return readied(run);
}

/* Flips the last bit of a tensor's last element, on that rank, if it has it. */
static void flip(struct run *run, const struct flip *f) {
    const struct row *row = params_find(run->table, f->tensor);
    if (run->mesh.rank != f->rank) return;
    assert_non_null(row); /* the example means something else than the model has */
    unsigned char *last = (unsigned char *)(run->state.weight + row->offset + row->count - 1);
    *last ^= 1;
}

static void expect_alike(struct replicas *replicas, const struct run *run) {
    struct replicas_verdict verdict;
    assert_int_equal(replicas_compare(replicas, run->state.weight, &verdict), 0);
    assert_int_equal(verdict.count, 0);
}

static void expect_found(struct replicas *replicas, struct run *run, const struct flip *f) {
    struct replicas_verdict verdict;
    flip(run, f);
    assert_int_equal(replicas_compare(replicas, run->state.weight, &verdict), 0);
    int count = 0;
    while (f->off[count] >= 0) count++;
    if (verdict.count != count)
        print_message("%s on rank %d: %d ranks named\n", f->tensor, f->rank, verdict.count);
    assert_int_equal(verdict.count, count);
    for (int i = 0; i < count; i++) assert_int_equal(verdict.rank[i], f->off[i]);
    if (count) assert_string_equal(verdict.tensor, f->tensor);
    assert_int_equal(verdict.undecided, f->undecided);
    flip(run, f);
}

static void test_mesh(void **state) {
    const struct example *example = *state;
    struct run run = {.best_loss = NAN, .mesh = *world};
    struct replicas *replicas;
    struct step_report report;
    int status = start(&run, example);
    *world = run.mesh;
    if (status) print_message("%s\n", gdn_failure());
    assert_int_equal(status, 0);
    assert_int_equal(replicas_create(&run.mesh, run.table, &run.whole, run.ops, &replicas), 0);
    expect_alike(replicas, &run);
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(loop_step(&run, NULL, &report), 0);
        assert_int_equal(run_read_batch(&run), 0);
    }
    expect_alike(replicas, &run);
    for (int i = 0; i < FLIPS && example->flip[i].tensor; i++) {
        expect_found(replicas, &run, &example->flip[i]);
        expect_alike(replicas, &run);
    }
    /* Two elements that change places are seen, too. */
    if (example->data == 4 && run.mesh.rank == 1) {
        real *first = run.state.weight + run.table->row[0].offset, kept = first[0];
        assert_true(first[0] != first[1]);
        first[0] = first[1], first[1] = kept;
    }
    struct replicas_verdict verdict;
    assert_int_equal(replicas_compare(replicas, run.state.weight, &verdict), 0);
    assert_int_equal(verdict.count, example->data == 4);
    replicas_free(replicas);
    run_free(&run);
}

int main(void) {
    struct mesh mesh;
    struct CMUnitTest tests[sizeof examples / sizeof *examples];
    size_t count = 0;
    int bad = ranks_begin(&mesh);
    world = &mesh;
    if (!bad) bad = !make_up_text(&mesh, path);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct example *e = &examples[i];
        if (e->data * e->tensor * e->pipeline != mesh.size) continue;
        tests[count++] = (struct CMUnitTest){e->set[0], test_mesh, NULL, NULL, e};
    }
    if (!bad) bad = _cmocka_run_group_tests("replicas", tests, count, NULL, NULL);
    if (mesh.rank == 0) unlink(path);
    return ranks_end(&mesh, bad != 0);
}
