/* Exits in evaluation and in generation: what a watcher sees of logits is what losses are made of; tokens leave
 * where thresholds say, with the exit's logits; and of layers that they leave out later tokens read keys and
 * values of the exit's state. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "model/params/exits.h"
#include "tests/model/fixture.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH, EXITS = 2, VOCAB = 13 };

/* Rounding of a few dozen operations. */
static const double tolerance = sizeof(real) == 8 ? 1e-12 : 1e-5;

/* What was seen: Σ nats, tokens, and logits, of each exit and then of the last layer. */
struct seen {
    double nats[EXITS + 1];
    long tokens[EXITS + 1];
    real logits[EXITS + 1][B * S][VOCAB];
};

static void see(void *context, const struct head_view *view) {
    struct seen *seen = context;
    const int head = view->exit < 0 ? EXITS : view->exit;
    assert_int_equal(view->vocab, VOCAB);
    for (long r = 0; r < view->rows; r++) {
        const real *logits = view->logits + r * VOCAB;
        double sum = 0;
        for (int v = 0; v < VOCAB; v++) sum += exp((double)logits[v]);
        if (view->target[r] >= 0) seen->nats[head] += log(sum) - (double)logits[view->target[r]];
        seen->tokens[head]++;
        memcpy(seen->logits[head][view->at + r], logits, sizeof *seen->logits[head]);
    }
}

static struct model_config with_exits(int variant) {
    struct model_config c = small_model();
    c.exit = (struct exit_config){.layers = {0, 2}, .num_layers = 2, .weights = {0.3, 0.7}, .num_weights = 2};
    c.tie_embeddings = variant % 2;
    c.logit_softcap = variant % 2 ? 0.6 : 0;
    c.attention_bias = variant % 2 ? BIAS_ALL : BIAS_NONE;
    c.qk_norm = variant / 2 ? QK_NORM_HEAD : QK_NORM_NONE;
    return c;
}

static void evaluate(struct fixture *f, const int32_t *rows, const struct loss_options *o, struct seen *seen,
                     struct loss_sums *sums) {
    const struct head_watch watch = {see, seen};
    *sums = (struct loss_sums){0};
    *seen = (struct seen){0};
    struct pass pass = {
        .rows = rows, .batch = B, .length = S, .options = o, .evaluate = true, .heads = &watch};
    model_stage_forward(f->model, &pass, sums);
}

static void test_watch(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        const struct model_config c = with_exits(variant);
        struct fixture f;
        struct loss_sums sums;
        static struct seen seen;
        int32_t rows[B * (S + 1)];
        fixture_create(&f, &c, ops_find("cpu"), B, S, 3, 0.2);
        fixture_rows(rows, c.vocab_size);
        fixture_uncount(rows);
        struct loss_options o = fixture_options(&c, -1, false);
        evaluate(&f, rows, &o, &seen, &sums);
        const double losses[] = {sums.exits[0], sums.exits[1], sums.ce};
        for (int h = 0; h <= EXITS; h++) {
            assert_int_equal(seen.tokens[h], B * S);
            assert_true(losses[h] > 1 && fabs(seen.nats[h] - losses[h]) <= tolerance * losses[h]);
        }
        assert_true(losses[0] != losses[1] && losses[1] != losses[2]);
        o.exit_weight[1] = 0; /* which is then left out */
        evaluate(&f, rows, &o, &seen, &sums);
        assert_true(seen.tokens[1] == 0 && sums.exits[1] == 0 && sums.exits[0] == losses[0]);
        fixture_free(&f);
    }
}

static void assert_close(const real *a, const real *b, const char *what) {
    for (int v = 0; v < VOCAB; v++)
        if (!(fabs((double)(a[v] - b[v])) <= tolerance * (1 + fabs((double)b[v]))))
            fail_msg("%s: logit %d is %.9g, expected %.9g", what, v, (double)a[v], (double)b[v]);
}

/* A document's first token leaves where it may, with the logits that a whole pass has there. */
static void test_leave(void **state) {
    (void)state;
    static const double threshold[][EXITS] = {{0, 0}, {2, 0}, {1, 0}, {2, 2}, {1, 1}};
    static const int head[] = {0, 1, 1, 2, 2}; /* no probability is 1 */
    static const int above[] = {1, 3, 4};      /* layers that the heads are behind */
    for (int variant = 0; variant < 4; variant++) {
        const struct model_config c = with_exits(variant);
        struct fixture f;
        struct loss_sums sums;
        struct decoder *decoder;
        static struct seen seen;
        int32_t rows[B * (S + 1)];
        fixture_create(&f, &c, ops_find("cpu"), B, S, 3, 0.2);
        fixture_rows(rows, c.vocab_size);
        struct loss_options o = fixture_options(&c, -1, false);
        evaluate(&f, rows, &o, &seen, &sums);
        assert_int_equal(decoder_create(&c, &f.table, &f.state, f.ops, S, 1, &decoder), 0);
        for (int t = 0; t < 5; t++) {
            int layers;
            decoder_reset(decoder);
            const real *logits = decoder_leave(decoder, rows[0], o.active, threshold[t], &layers);
            assert_int_equal(layers, above[head[t]]);
            assert_close(logits, seen.logits[head[t]][0], "leaves");
        }
        decoder_free(decoder);
        fixture_free(&f);
    }
}

/* Zeroes what a layer adds to the stream. */
static void silence(struct fixture *f, int layer) {
    static const char *const leaves[] = {"self_attn.o_proj.weight", "self_attn.o_proj.bias", "mlp.down_proj.weight"};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "layers.%d.%s", layer, leaves[i]);
        const struct row *row = params_find(&f->table, name);
        if (row) memset(f->state.weight + row->offset, 0, (size_t)row->count * sizeof(real));
    }
}

/* Where layers above the exit add nothing, the highest has the same keys and values of a token that has left as
 * of one that has not: then so are the logits of tokens behind it, which do not leave. */
static void test_pass_by(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        struct model_config c = with_exits(variant);
        struct fixture f;
        struct decoder *decoder;
        int32_t rows[B * (S + 1)];
        real expected[S][VOCAB];
        c.delta.num_distances = 0;
        fixture_create(&f, &c, ops_find("cpu"), B, S, 3, 0.2);
        fixture_rows(rows, c.vocab_size);
        silence(&f, 1);
        silence(&f, 2);
        assert_int_equal(decoder_create(&c, &f.table, &f.state, f.ops, S, 1, &decoder), 0);
        for (int s = 0; s < S; s++)
            memcpy(expected[s], decoder_step(decoder, rows[s], NULL), sizeof expected[s]);
        decoder_reset(decoder);
        for (int s = 0; s < S; s++) {
            const double leave[EXITS] = {0, 0};
            int layers;
            const real *logits = decoder_leave(decoder, rows[s], NULL, s % 2 ? NULL : leave, &layers);
            assert_int_equal(layers, s % 2 ? 4 : 1);
            if (s % 2) assert_close(logits, expected[s], "behind tokens that have left");
        }
        decoder_free(decoder);
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_pass_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
