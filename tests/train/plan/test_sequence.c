/* What mesh.sequence_parallel saves: memory and arithmetic, exactly as much as divides by tokens. Planned for
 * a 7 B model on 8 tensor ranks, and reserved by a real run on two. */
#include "kernels/base/real.h"
#include "tests/train/run/mesh_fixture.h"
#include "train/plan/plan.h"

/* ------------------------------------------------------------------------------------------------- a plan */

enum { L = 32, D = 4096, S = 2048, MICRO_BATCHES = 2, TENSOR = 8, G = 64, OWN = S * MICRO_BATCHES / TENSOR };

static const char seven[] = "model:\n"
                            "  vocab_size: 32000\n"
                            "  hidden_size: 4096\n"
                            "  num_layers: 32\n"
                            "  num_heads: 32\n"
                            "  intermediate_size: 11008\n"
                            "  delta: {distances: [1, 2, 4, 8], hidden: 256, gate_hidden: 64}\n"
                            "train: {steps: 1, batch_size: 8, micro_batch_size: 2, sequence_length: 2048}\n"
                            "mesh: {data: 1, tensor: 8}\n"
                            "data: {train: text.txt}\n";

/* The first rank's part; of the tensor axis's bytes, those of all ranks. */
static struct plan_rank planned(char *sequence, char *other) {
    const struct plan_machine machine = plan_machine_of(1, 1, 1);
    char *set[] = {sequence, other};
    struct config config;
    struct plan plan;
    assert_int_equal(config_parse(seven, "test", set, 2, &config), 0);
    assert_int_equal(plan_create(&config, 0, &machine, &plan), 0);
    struct plan_rank rank = plan.rank[0];
    for (long r = 1; r < plan.ranks; r++) { /* tokens divide evenly */
        assert_true(plan.rank[r].flops == rank.flops);
        assert_memory_equal(&plan.rank[r].memory, &rank.memory, sizeof rank.memory);
    }
    plan_free(&plan);
    config_free(&config);
    return rank;
}

static int64_t saved(const struct plan_rank *whole, const struct plan_rank *rows, enum memory_part part) {
    return whole->memory.bytes[part] - rows->memory.bytes[part];
}

/* How many connections there are, and layers that some lead into. */
static int count_edges(int *connected) {
    static const int distance[] = {1, 2, 4, 8};
    int edges = 0;
    *connected = 0;
    for (int l = 0; l < L; l++) {
        int into = 0;
        for (int d = 0; d < 4; d++) into += l - distance[d] >= 0;
        edges += into;
        *connected += into > 0;
    }
    return edges;
}

static void seven_billion(void **state) {
    static char *const settings[] = {"train.recompute=none", "train.recompute=selective",
                                     "model.delta.distances=[]"};
    (void)state;
    if (world.size > 1) return;
    for (int i = 0; i < 3; i++) {
        int connected, edges = count_edges(&connected);
        if (i == 2) connected = edges = 0;
        struct plan_rank whole = planned("mesh.sequence_parallel=false", settings[i]);
        struct plan_rank rows = planned("mesh.sequence_parallel=true", settings[i]);
        /* Of each layer: outputs of both norms (selective drops them), the sum between, a scale of each norm,
         * and where a connection leads the target. */
        int64_t others = S * MICRO_BATCHES - OWN, norms = i == 1 ? 0 : 2;
        int64_t numbers = others * (L * ((norms + 1) * D + 2) + connected * (int64_t)D);
        assert_int_equal(saved(&whole, &rows, MEMORY_ACTIVATIONS), numbers * (int64_t)sizeof(real));
        /* Outputs of the 32 layers and the embedding, and in turn whole ones of what connections read, from a
         * layer to the eighth above it. */
        int64_t sources = (L + 1) * others * D - (edges ? 9 : 0) * (int64_t)S * MICRO_BATCHES * D;
        assert_int_equal(saved(&whole, &rows, MEMORY_SOURCES),
                         sources * (int64_t)sizeof(real) - (edges ? 9 * ARENA_GUARD : 0));
        assert_true(saved(&whole, &rows, MEMORY_WORKSPACE) >= -(int64_t)sizeof(real) * S * MICRO_BATCHES * D);
        /* W1 of every connection, on target and source: forward, back for either factor, and with selective
         * again, but for the last layer's 4, which are there still. A step has 4 micro-batches. What else
         * divides, norms and sums, is not counted. */
        int products = 3 * edges + (i == 1 ? edges - 4 : 0);
        assert_true(whole.flops - rows.flops == 4 * 2.0 * 2 * products * (double)others * D * G);
        assert_true(edges == 0 || rows.flops < whole.flops);
    }
}

/* -------------------------------------------------------------------------------------------------- a run */

static const char small[] = "model:\n"
                            "  vocab_size: 263\n"
                            "  hidden_size: 32\n"
                            "  num_layers: 8\n"
                            "  num_heads: 4\n"
                            "  intermediate_size: 48\n"
                            "  delta: {distances: [1, 2, 3], hidden: 8, gate_hidden: 4}\n"
                            "train: {steps: 2, batch_size: 16, micro_batch_size: 2, sequence_length: 16}\n"
                            "mesh: {bucket: 2048, small: 300}\n"
                            "checkpoint: {interval_minutes: 0}\n"; /* no saver is made here */

static struct memory reserved(char *sequence, char *other) {
    const struct mesh_case c = {{1, 2, 1}, {sequence, other}};
    struct run run;
    int status = started(&run, small, &c);
    assert_int_equal(status, 0);
    struct memory memory = run_memory(&run);
    assert_memory_equal(&memory, &run.plan.planned, sizeof memory);
    ended(&run);
    return memory;
}

static void real_run(void **state) {
    static char *const settings[] = {"train.recompute=none", "train.recompute=full",
                                     "model.delta.aggregate=attention", "model.delta.kind=adaptive",
                                     "model.delta.distances=[]"};
    (void)state;
    if (world.size != 2) return;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct memory whole = reserved("mesh.sequence_parallel=false", settings[i]),
                      rows = reserved("mesh.sequence_parallel=true", settings[i]);
        assert_true(rows.bytes[MEMORY_ACTIVATIONS] < whole.bytes[MEMORY_ACTIVATIONS]);
        assert_true(rows.bytes[MEMORY_SOURCES] <= whole.bytes[MEMORY_SOURCES]);
        assert_true(memory_sum(&rows) < memory_sum(&whole));
    }
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(seven_billion), cmocka_unit_test(real_run)};
    return run_on_ranks(tests, world_with_text, world_free);
}
