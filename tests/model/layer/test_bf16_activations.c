/* Activations that are kept in bf16: the forward pass is the same to the bit, gradients nearly, and memory
 * less. That recomputation changes no bit of it, either: test_model_recompute with GDN_TEST_ACTIVATIONS. */
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

static struct result train(const struct model_config *c, const char *activations, int way) {
    struct fixture full;
    struct part p;
    struct result r = {0};
    int32_t rows[B * (S + 1)];
    struct layout layout = divided_layout(way);
    struct loss_options o = fixture_options(c, -1, false);
    setenv("GDN_TEST_ACTIVATIONS", activations, 1);
    fixture_rows(rows, c->vocab_size);
    fixture_create(&full, c, test_backends()[0], B, S, 3, 0.2);
    part_create(&p, &full, &layout, &tensor, NULL, test_backends()[0], B, S);
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

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients), cmocka_unit_test(test_memory)};
    return run_on_ranks(tests, tensor_create, tensor_free);
}
