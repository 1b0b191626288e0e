/* Activations that are kept in bf16: the forward pass is the same to the bit, gradients nearly, and memory
 * less. A stream that is stored in bf16: wherever its numbers are kept they are the same. That recomputation
 * changes no bit of either: test_model_recompute with GDN_TEST_ACTIVATIONS and GDN_TEST_RESIDUAL. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/tensor_ranks.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH, D = 48, LAYERS = 4 };

static struct model_config model_of(int variant) {
    struct model_config c = small_model();
    c.num_layers = LAYERS;
    c.hidden_size = D;
    c.num_heads = c.num_kv_heads = 12;
    c.intermediate_size = 96;
    c.delta.num_distances = variant ? 1 : 0;
    c.delta.distances[0] = 1;
    c.delta.hidden = c.delta.gate_hidden = 12;
    if (variant) c.head_dim = 6, c.qk_norm = QK_NORM_HEAD;
    return c;
}

struct result {
    struct loss_sums sums;
    struct model_memory memory;
    real *gradient;
    long count;
};

/* With so many micro-batches in flight, of which one is computed. */
static struct result train_of(const struct model_config *c, const char *activations, int way, int sets) {
    struct fixture full;
    struct part p;
    struct result r = {0};
    int32_t rows[B * (S + 1)];
    struct layout layout = divided_layout(way);
    struct loss_options o = fixture_options(c, -1, false);
    setenv("GDN_TEST_ACTIVATIONS", activations, 1);
    fixture_rows(rows, c->vocab_size);
    fixture_create(&full, c, test_backends()[0], B, S, 3, 0.2);
    part_create(&p, &full, &layout, &tensor, &sets, test_backends()[0], B, S);
    model_train(p.model, rows, B, S, &o, &r.sums);
    assert_int_equal(model_status(p.model), 0);
    model_memory(p.model, &r.memory);
    r.count = p.table.total;
    r.gradient = malloc((size_t)r.count * sizeof *r.gradient);
    memcpy(r.gradient, p.state.gradient, (size_t)r.count * sizeof *r.gradient);
    part_free(&p);
    fixture_free(&full);
    return r;
}

static struct result train(const struct model_config *c, const char *activations, int way) {
    return train_of(c, activations, way, 1);
}

/* An element is off by up to 2⁻⁹ of itself, and what is computed from it by as much, now up, now down, over four layers
 * with scores as large as these weights make them: of all gradients together 7e-3 was seen. A buffer that held another
 * layer's numbers would make it of order 1. */
static void test_gradients(void **state) {
    (void)state;
    for (int variant = 0; variant < 2; variant++)
        for (int way = 0; way < WAYS; way++) {
            struct model_config c = model_of(variant);
            struct result fp32 = train(&c, "fp32", way), bf16 = train(&c, "bf16", way);
            double off = 0, all = 0;
            for (long i = 0; i < fp32.count; i++) {
                off += pow((double)bf16.gradient[i] - (double)fp32.gradient[i], 2);
                all += pow((double)fp32.gradient[i], 2);
            }
            printf("variant %d, way %d: gradients differ by %.2g, activations %ld instead of %ld\n", variant,
                   way, sqrt(off / all), (long)bf16.memory.activations, (long)fp32.memory.activations);
            assert_memory_equal(&fp32.sums, &bf16.sums, sizeof fp32.sums);
            assert_true(off > 0 && sqrt(off / all) < 0x1p-6);
            free(fp32.gradient), free(bf16.gradient);
        }
}

/* What the trunk of a plain model saves, of T tokens and a layer with keys for every head: n1, n2, the heads'
 * output and queries, keys and values, and 2F of the MLP, of either type; D of the stream and sums of rows as
 * they were. */
static void test_memory(void **state) {
    (void)state;
    struct model_config c = model_of(0);
    struct result fp32 = train(&c, "fp32", 0), bf16 = train(&c, "bf16", 0);
    long ranks = tensor.size, narrow = B * S * (2 * D + (4 * D + 2 * 96) / ranks),
         saved = fp32.memory.activations - bf16.memory.activations,
         each = (long)(sizeof(real) - sizeof(uint16_t));
    assert_true(labs(saved - LAYERS * narrow * each) <
                LAYERS * 5 * 256); /* buffers begin at multiples of so many */
    assert_int_equal(fp32.memory.sources, bf16.memory.sources);
    assert_true(bf16.memory.workspace - fp32.memory.workspace <= narrow * (long)sizeof(real) + 5 * 256);
    free(fp32.gradient), free(bf16.gradient);
}

/* Four layers that read up to three below and the embedding have whole outputs where one micro-batch is in
 * flight; where many are, a few buffers in turn, and each output in half of its bytes. The same bits: what is
 * kept is what was rounded when it was computed. */
static void test_residual(void **state) {
    enum { MANY = 16, NODES = LAYERS + 1 };
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        struct model_config c = model_of(0);
        c.delta.num_distances = 3;
        c.delta.embedding_source = true;
        struct result fp32 = train_of(&c, "fp32", way, MANY);
        c.residual = RESIDUAL_BF16;
        struct result whole = train_of(&c, "fp32", way, 1), narrow = train_of(&c, "fp32", way, MANY);
        if (tensor.index == 0) /* which counts it */
            assert_true(fabs(whole.sums.ce / fp32.sums.ce - 1) < 0x1p-8 && whole.sums.ce != fp32.sums.ce);
        assert_memory_equal(&whole.sums, &narrow.sums, sizeof whole.sums);
        assert_memory_equal(whole.gradient, narrow.gradient, (size_t)whole.count * sizeof(real));
        if (tensor.size == 1) {
            const long kept = MANY * NODES * B * S * D * (long)sizeof(uint16_t), turns = narrow.memory.sources - kept;
            assert_true(turns > 0 && turns <= (LAYERS + 1) * (B * S * D * (long)sizeof(real) + 256) + MANY * NODES * 256);
            assert_true(whole.memory.sources >= NODES * B * S * D * (long)sizeof(real));
        }
        assert_true(narrow.memory.sources < fp32.memory.sources && narrow.memory.activations < fp32.memory.activations);
        free(fp32.gradient), free(whole.gradient), free(narrow.gradient);
    }
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_residual)};
    return run_on_ranks(tests, tensor_create, tensor_free);
}
