/* Drafts of an exit that all layers verify: likeliest tokens are those that come one by one, and sampled ones
 * have all layers' distribution, whatever the exit's is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/random.h"
#include "tests/model/fixture.h"
#include "train/command/speculation.h"

enum { VOCAB = 5, LENGTH = 3, TEXTS = VOCAB * VOCAB * VOCAB, RUNS = 8000, LONG = 40 };

static struct model_config with_exits(int variant) {
    struct model_config c = small_model();
    c.vocab_size = VOCAB;
    c.exit = (struct exit_config){.layers = {0, 2}, .num_layers = 2, .weights = {0.3, 0.7}, .num_weights = 2};
    c.logit_softcap = variant % 2 ? 0.6 : 0;
    c.delta.num_distances = variant % 3;
    return c;
}

struct setting {
    struct fixture f;
    struct decoder *decoder;
    struct speculation speculation;
    struct sampling sampling;
    struct candidate work[VOCAB];
};

static void open_setting(struct setting *x, const struct model_config *c, long drafts, long layer,
                         struct sampling sampling) {
    fixture_create(&x->f, c, ops_find("cpu"), 1, 1, 3, 0.5);
    x->speculation = (struct speculation){.drafts = drafts, .layer = layer};
    x->sampling = sampling;
    assert_int_equal(speculation_prepare(c, x->f.ops, "x", &x->speculation), 0);
    assert_int_equal(decoder_create(c, &x->f.table, &x->f.state, x->f.ops, LONG + 1,
                                    speculation_rows(&x->speculation), &x->decoder),
                     0);
}

static void close_setting(struct setting *x) {
    decoder_free(x->decoder);
    speculation_free(&x->speculation);
    fixture_free(&x->f);
}

/* `length` tokens behind a first one. */
static void write_tokens(struct setting *x, long seed, int32_t first, long length, int32_t *out) {
    int32_t chosen[MOST_DRAFTS + 1];
    decoder_reset(x->decoder);
    for (long i = 0, count; i < length; i += count) {
        const long drafts = x->speculation.drafts < length - i - 1 ? x->speculation.drafts : length - i - 1;
        const struct choosing by = {&x->sampling, seed, i, x->work};
        count = speculation_choose(&x->speculation, x->decoder, &x->f.config, NULL, &by,
                                   i ? out[i - 1] : first, drafts, chosen);
        assert_in_range(count, 1, drafts + 1);
        memcpy(out + i, chosen, (size_t)count * sizeof *out);
    }
}

/* With an exit far below the last layer, and one right below it. */
static void test_likeliest(void **state) {
    (void)state;
    static const struct sampling coldest = {1e-310, 0, 1}; /* has no inverse */
    long right = 0, wrong = 0;
    for (int variant = 0; variant < 6; variant++)
        for (long drafts = 1; drafts <= 6; drafts++) {
            struct setting x;
            const struct model_config c = with_exits(variant);
            open_setting(&x, &c, drafts, variant % 2 ? 2 : 0, (struct sampling){.top_p = 1});
            for (int32_t first = 0; first < VOCAB; first++) {
                int32_t expected[LONG], text[LONG];
                decoder_reset(x.decoder);
                for (int i = 0; i < LONG; i++) {
                    const real *logits = decoder_step(x.decoder, i ? expected[i - 1] : first, NULL);
                    expected[i] = sample_token(logits, VOCAB, &x.sampling, 0, x.work);
                    assert_int_equal(sample_token(logits, VOCAB, &coldest, 0.5, x.work), expected[i]);
                }
                write_tokens(&x, 1, first, LONG, text);
                assert_memory_equal(text, expected, sizeof text);
            }
            right += x.speculation.accepted, wrong += x.speculation.tried - x.speculation.accepted;
            close_setting(&x);
        }
    print_message("%ld drafts accepted, %ld not\n", right, wrong);
    assert_true(right > 100 && wrong > 100); /* both ways are gone */
}

static int number_of(const int32_t *text) {
    return (text[0] * VOCAB + text[1]) * VOCAB + text[2];
}

/* Probabilities of all texts, as all layers have them. */
static void expect(struct setting *x, double *probability) {
    for (int n = 0; n < TEXTS; n++) {
        const int32_t text[LENGTH] = {n / VOCAB / VOCAB, n / VOCAB % VOCAB, n % VOCAB};
        decoder_reset(x->decoder);
        probability[n] = 1;
        for (int i = 0; i < LENGTH; i++) {
            double mass, p = 0;
            const real *logits = decoder_step(x->decoder, i ? text[i - 1] : 1, NULL);
            const long kept = sample_candidates(logits, VOCAB, &x->sampling, x->work, &mass);
            for (long k = 0; k < kept; k++)
                if (x->work[k].token == text[i]) p = x->work[k].probability / mass;
            probability[n] *= p;
        }
    }
}

/* Pearson's statistic over texts, less its mean, in its deviations: (χ² − ν)/√2ν of ν = texts that there may
 * be − 1, those seen less than five times among runs taken together. Infinite where a text came that may not
 * come. */
static double surprise(const double *probability, const long *seen) {
    double sum = 0, rare = 0;
    long rarely = 0, terms = -1;
    for (int n = 0; n < TEXTS; n++) {
        const double expected = probability[n] * RUNS;
        if (expected == 0 && seen[n]) return INFINITY;
        if (expected < 5) {
            rare += expected, rarely += seen[n];
            continue;
        }
        sum += ((double)seen[n] - expected) * ((double)seen[n] - expected) / expected;
        terms++;
    }
    if (rare >= 5) sum += ((double)rarely - rare) * ((double)rarely - rare) / rare, terms++;
    return (sum - (double)terms) / sqrt(2 * (double)terms);
}

/* Texts of the exit alone: what would come if all drafts were accepted. */
static void write_drafts(struct setting *x, long seed, int32_t *text) {
    decoder_reset(x->decoder);
    for (int i = 0; i < LENGTH; i++)
        text[i] = sample_token(decoder_draft(x->decoder, i ? text[i - 1] : 1, x->speculation.exit, NULL),
                               VOCAB, &x->sampling, random_uniform((uint64_t)seed, 7, (uint64_t)i), x->work);
}

/* Of a right distribution the surprise is about normal, with a heavier right tail: it is above 5 in fewer
 * than one of a hundred thousand seeds, and these are fixed. The exit's own texts are far beyond that: a rule
 * that lets through a tenth of their difference would be, too. */
static void test_distribution(void **state) {
    (void)state;
    static const struct sampling samplings[] = {{1, 0, 1}, {0.7, 3, 1}, {1.5, 0, 0.8}};
    for (int s = 0; s < 3; s++) {
        struct setting x;
        const struct model_config c = with_exits(2);
        double probability[TEXTS];
        long seen[TEXTS] = {0}, of_exit[TEXTS] = {0};
        open_setting(&x, &c, s ? 2 : 1, 0, samplings[s]);
        expect(&x, probability);
        for (long run = 0; run < RUNS; run++) {
            int32_t text[LENGTH];
            write_tokens(&x, run, 1, LENGTH, text);
            seen[number_of(text)]++;
            write_drafts(&x, run, text);
            of_exit[number_of(text)]++;
        }
        const double of = surprise(probability, seen), wrong = surprise(probability, of_exit);
        print_message("sampling %d: %.2f deviations; the exit's own %.1f\n", s, of, wrong);
        if (!(of < 5)) fail_msg("sampling %d: a surprise of %.1f deviations", s, of);
        if (!(wrong > 100))
            fail_msg("sampling %d: the exit's own texts surprise by %.1f deviations alone", s, wrong);
        close_setting(&x);
    }
}

static void test_refusals(void **state) {
    (void)state;
    struct speculation s = {.drafts = 2, .layer = 1};
    struct model_config c = with_exits(0);
    assert_int_equal(speculation_prepare(&c, ops_find("cpu"), "x", &s), GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), "--draft 1: x has exits at layers 0, 2 alone"));
    s.layer = -1;
    c.exit.num_layers = 0;
    gdn_failure_clear();
    assert_int_equal(speculation_prepare(&c, ops_find("cpu"), "x", &s), GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), "no exits"));
    s.drafts = 0;
    assert_int_equal(speculation_prepare(&c, ops_find("cpu"), "x", &s), GDN_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_likeliest),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
