/* Copies of weights: after training they are the same bit for bit on every mesh, and one flipped bit is
 * found, on the rank that has it as far as anybody can know. */
#include <stdlib.h>
#include <string.h>

#include "tests/train/run/mesh_fixture.h"
#include "model/params/find.h"
#include "train/loop/loop.h"
#include "train/health/replicas.h"

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

enum { MAX = 4, STEPS = 3 };

/* A bit flipped in a tensor on one rank, and who is named; `off` ends with −1. */
struct flip {
    const char *tensor;
    int rank;
    int off[MAX + 1];
    bool undecided;
};

enum { FLIPS = 4 };

struct flips {
    struct mesh_case on;
    struct flip flip[FLIPS];
};

static const char up[] = "layers.1.mlp.gate_proj.weight", norm[] = "layers.2.post_attention_layernorm.weight",
                  wide[] = "embed_tokens.weight";

static struct flips cases[] = {
    {{{2, 1, 1}, {"train.seed=3"}}, {{up, 0, {0, 1, -1}, true}, {norm, 1, {0, 1, -1}, true}}},
    /* A tensor that is split over the tensor axis has no copy there. */
    {{{1, 2, 1}, {"mesh.sequence_parallel=true"}}, {{norm, 1, {0, 1, -1}, true}, {up, 1, {-1}, false}}},
    {{{1, 1, 2}, {"model.tie_embeddings=true"}}, {{wide, 1, {0, 1, -1}, true}, {up, 0, {-1}, false}}},
    {{{4, 1, 1}, {"train.seed=4"}},
     {{up, 2, {2, -1}, false}, {norm, 0, {0, -1}, false}, {wide, 3, {3, -1}, false}}},
    {{{2, 2, 1}, {"train.seed=5"}}, {{up, 2, {0, 2, -1}, true}, {norm, 2, {2, -1}, false}}},
    {{{2, 2, 1}, {"mesh.delta=connection"}},
     {{"layers.2.delta.2.gate_in.weight", 1, {1, 3, -1}, true}, {norm, 3, {3, -1}, false}}},
    {{{2, 1, 2}, {"model.tie_embeddings=true"}}, {{wide, 3, {3, -1}, false}, {up, 1, {0, 1, -1}, true}}},
    {{{1, 2, 2}, {"model.delta.aggregate=attention"}},
     {{"layers.3.input_layernorm.weight", 3, {2, 3, -1}, true}}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Flips the last bit of a tensor's last element, on that rank, if it has it. */
static void flip(struct run *run, const struct flip *f) {
    const struct row *row = params_find(run->part.table, f->tensor);
    if (run->mesh.rank != f->rank) return;
    assert_non_null(row); /* the example means something else than the model has */
    unsigned char *last = (unsigned char *)(run->training.state.weight + row->offset + row->count - 1);
    *last ^= 1;
}

static void expect_replicated(struct replicas *replicas, const struct run *run) {
    struct replicas_verdict verdict;
    assert_int_equal(replicas_compare(replicas, run->training.state.weight, &verdict), 0);
    assert_int_equal(verdict.count, 0);
}

static void expect_found(struct replicas *replicas, struct run *run, const struct flip *f) {
    struct replicas_verdict verdict;
    flip(run, f);
    assert_int_equal(replicas_compare(replicas, run->training.state.weight, &verdict), 0);
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
    const struct flips *flips = *state;
    struct run run;
    struct replicas *replicas;
    struct step_report report;
    int status = started(&run, base, &flips->on);
    if (status) print_message("%s\n", gdn_failure());
    assert_int_equal(status, 0);
    assert_int_equal(replicas_create(&run.mesh, run.part.table, &run.part.global, run.ops, &replicas), 0);
    expect_replicated(replicas, &run);
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(loop_step(&run, NULL, &report), 0);
        assert_int_equal(run_read_batch(&run), 0);
    }
    expect_replicated(replicas, &run);
    for (int i = 0; i < FLIPS && flips->flip[i].tensor; i++) {
        expect_found(replicas, &run, &flips->flip[i]);
        expect_replicated(replicas, &run);
    }
    /* Two elements that change places are seen, too. */
    if (flips->on.mesh.data == 4 && run.mesh.rank == 1) {
        real *first = run.training.state.weight + run.part.table->row[0].offset, kept = first[0];
        assert_true(first[0] != first[1]);
        first[0] = first[1], first[1] = kept;
    }
    struct replicas_verdict verdict;
    assert_int_equal(replicas_compare(replicas, run.training.state.weight, &verdict), 0);
    assert_int_equal(verdict.count, flips->on.mesh.data == 4);
    replicas_free(replicas);
    ended(&run);
}

int rank_main(void) {
    struct CMUnitTest tests[CASES];
    size_t count = tests_of_cases(tests, test_mesh, cases, CASES, sizeof *cases);
    return run_list_on_ranks("replicas", tests, count, world_with_text, world_free);
}
