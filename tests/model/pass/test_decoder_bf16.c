/* Generation in bf16 on the host: products by rows of weights that the decoder holds. Tokens that are fed
 * together have the logits that they have one by one; with weights that are bf16 those are fp32's, as nothing
 * else is rounded, and with others they are not. */
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/bf16.h"
#include "tests/model/fixture.h"
#include "tests/support/unit.h"

enum { TOKENS = 7, VOCAB = 70, TOGETHER = 3 };

/* Wide enough to be rounded; the connections too, or not. */
static struct model_config wide_model(int variant) {
    struct model_config c = small_model();
    c.vocab_size = VOCAB;
    c.hidden_size = 64;
    c.intermediate_size = 80;
    c.tie_embeddings = variant == 2;
    if (variant) c.delta.hidden = 72;
    return c;
}

/* Of all tokens, one by one or together. */
static void read_logits(struct fixture *f, enum precision precision, bool together, const int32_t *token,
                        real logits[TOKENS][VOCAB]) {
    struct decoder *decoder;
    const struct ops *ops = ops_in(ops_find("cpu"), precision);
    assert_int_equal(decoder_create(&f->config, &f->table, &f->state, ops, TOKENS, TOGETHER, &decoder), 0);
    for (int t = 0, count; t < TOKENS; t += count) {
        count = !together ? 1 : TOKENS - t < TOGETHER ? TOKENS - t : TOGETHER;
        const real *read =
            together ? decoder_feed(decoder, token + t, count, NULL) : decoder_step(decoder, token[t], NULL);
        memcpy(logits[t], read, (size_t)count * sizeof logits[t]);
    }
    decoder_free(decoder);
}

static void test_weights_alone(void **state) {
    static real fp32[TOKENS][VOCAB], bf16[TOKENS][VOCAB], together[TOKENS][VOCAB];
    static const int32_t token[TOKENS] = {3, 0, 69, 5, 5, 31, 8};
    (void)state;
    for (int variant = 0; variant < 3; variant++) {
        const struct model_config c = wide_model(variant);
        struct fixture f;
        fixture_create(&f, &c, ops_find("cpu"), 1, TOKENS, 3, 0.2);
        read_logits(&f, PRECISION_FP32, false, token, fp32);
        read_logits(&f, PRECISION_BF16, false, token, bf16);
        read_logits(&f, PRECISION_BF16, true, token, together);
        assert_memory_equal(together, bf16, sizeof bf16);
        assert_memory_not_equal(bf16, fp32, sizeof bf16);
        for (long i = 0; i < f.table.total; i++) f.state.weight[i] = bf16_round(f.state.weight[i]);
        read_logits(&f, PRECISION_FP32, false, token, fp32);
        read_logits(&f, PRECISION_BF16, false, token, bf16);
        assert_memory_equal(bf16, fp32, sizeof bf16);
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
