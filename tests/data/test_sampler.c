/* Which tokens make up which sample: sequential, shuffled, mixed, in parts; and the parts it is made of. */
#include "tests/data/fixtures.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/mixture.h"
#include "data/permutation.h"
#include "data/sampler.h"
#include "kernels/base/marks.h"
#include "kernels/base/random.h"

enum { LENGTH = 3, WIDTH = LENGTH + 1, VOCAB = 1 << 30 };

static struct sampler_options one_source(const struct sampler_source *source) {
    return (struct sampler_options){
        .sources = source, .num_sources = 1, .format = &llmc_format, .length = LENGTH, .from = 0, .to = 1};
}

static struct sampler *open_sampler(struct sampler_options options) {
    struct sampler *sampler;
    if (sampler_open(&options, &sampler)) fail_msg("%s", gdn_failure());
    return sampler;
}

/* The token sample i begins with, after checking that the others follow it. */
static long first_token(struct sampler *sampler, long i) {
    int32_t row[WIDTH];
    if (sampler_read(sampler, i, 1, VOCAB, row)) fail_msg("%s", gdn_failure());
    for (int t = 1; t < WIDTH; t++) assert_int_equal(row[t], row[0] + t);
    return row[0];
}

static void sequential(void **state) {
    (void)state;
    /* 12 tokens are 3 samples and 2 tokens over, 13 are 4 with nothing over, 4 are one */
    const struct {
        int32_t tokens;
        long samples;
    } cases[] = {{12, 3}, {13, 4}, {4, 1}};
    for (int c = 0; c < 3; c++) {
        put_counting("sequence.bin", 0, cases[c].tokens);
        struct sampler_source source = {ONE_PATH("sequence.bin"), 0.3};
        struct sampler *sampler = open_sampler(one_source(&source));
        assert_int_equal(sampler_epoch(sampler), cases[c].samples);
        for (long i = 0; i < 3 * cases[c].samples; i++)
            assert_int_equal(first_token(sampler, i), LENGTH * (i % cases[c].samples));
        sampler_close(sampler);
    }
}

static void bijections(void **state) {
    (void)state;
    const uint64_t sizes[] = {1, 2, 3, 1000, 4099};
    for (int s = 0; s < 5; s++) {
        for (uint64_t key = 0; key < 5; key++) {
            char *seen = calloc(sizes[s], 1);
            for (uint64_t i = 0; i < sizes[s]; i++) {
                uint64_t to = permutation(key, sizes[s], i);
                assert_true(to < sizes[s]);
                assert_false(seen[to]);
                seen[to] = 1;
            }
            free(seen);
        }
    }
}

/* Every order of a few elements comes equally often over many keys. Of 24000 draws each of 24 has 1000 ± 31
 * (one standard deviation); five of them are allowed. */
static void orders_are_equally_likely(void **state) {
    (void)state;
    enum { KEYS = 24000 };
    for (uint64_t n = 2; n <= 4; n++) {
        int counts[256] = {0}, orders = 0;
        for (uint64_t key = 0; key < KEYS; key++) {
            int order = 0;
            for (uint64_t i = 0; i < n; i++) order = order << 2 | (int)permutation(key * 7919, n, i);
            counts[order]++;
        }
        double expected = KEYS / (n == 2 ? 2. : n == 3 ? 6. : 24.);
        for (int i = 0; i < 256; i++) {
            if (!counts[i]) continue;
            orders++;
            double deviation = (counts[i] - expected) * (counts[i] - expected) / expected;
            if (deviation > 25) fail_msg("n = %d: order %x came %d times", (int)n, (unsigned)i, counts[i]);
        }
        assert_int_equal(orders, n == 2 ? 2 : n == 3 ? 6 : 24);
    }
}

/* No trace of the old order: neighbours are as far apart as chance has it (a third of n on average, with a
 * standard deviation of 0.24 n / sqrt(n) here; five are allowed). */
static void neighbours_part(void **state) {
    (void)state;
    enum { N = 10000 };
    for (uint64_t key = 0; key < 3; key++) {
        double sum = 0;
        for (uint64_t i = 0; i + 1 < N; i++)
            sum += labs((long)permutation(key, N, i) - (long)permutation(key, N, i + 1));
        double mean = sum / (N - 1) / N;
        if (mean < 1. / 3 - 0.012 || mean > 1. / 3 + 0.012) fail_msg("mean distance is %g of n", mean);
    }
}

static void shuffled(void **state) {
    (void)state;
    enum { SAMPLES = 1000 };
    put_counting("shuffled.bin", 0, LENGTH * SAMPLES + 2);
    struct sampler_source source = {ONE_PATH("shuffled.bin"), 1};
    struct sampler_options options = one_source(&source);
    options.shuffle = true;
    options.seed = 1;
    struct sampler *one = open_sampler(options), *same = open_sampler(options);
    options.seed = 2;
    struct sampler *two = open_sampler(options);
    assert_int_equal(sampler_epoch(one), SAMPLES);
    int moved[3] = {0};
    for (long epoch = 0; epoch < 3; epoch++) {
        char seen[SAMPLES] = {0};
        for (long i = 0; i < SAMPLES; i++) {
            long first = first_token(one, epoch * SAMPLES + i);
            assert_int_equal(first % LENGTH, 0);
            assert_false(seen[first / LENGTH]++);
            moved[0] += first != LENGTH * i;
            moved[1] += first != first_token(two, epoch * SAMPLES + i);
            moved[2] += first != first_token(one, (epoch + 1) * SAMPLES + i);
            assert_int_equal(first, first_token(same, epoch * SAMPLES + i));
        }
    }
    for (int i = 0; i < 3; i++)
        assert_true(moved[i] > 3 * SAMPLES - 30); /* chance leaves about one an epoch */
    sampler_close(one);
    sampler_close(same);
    sampler_close(two);
}

enum { SOURCES = 3, BASE = 10000000 }; /* source k's tokens begin at k · BASE */
static const struct sampler_source mixed[SOURCES] = {
    {ONE_PATH("mix_0.bin"), 5}, {ONE_PATH("mix_1.bin"), 3.2}, {ONE_PATH("mix_2.bin"), 0.07}};
static const long mixed_samples[SOURCES] = {2000, 7001, 13};

static struct sampler *open_mixture(bool shuffle, uint64_t seed) {
    for (int k = 0; k < SOURCES; k++)
        put_counting(mixed[k].files.paths[0], (uint32_t)k * BASE, (int32_t)(LENGTH * mixed_samples[k] + 1));
    struct sampler_options options = one_source(mixed);
    options.num_sources = SOURCES;
    options.shuffle = shuffle;
    options.seed = seed;
    return open_sampler(options);
}

static void mixture_shares(void **state) {
    (void)state;
    enum { N = 100000 };
    const double sum = 5 + 3.2 + 0.07;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        struct sampler *sampler = open_mixture(shuffle, 4);
        long counts[SOURCES] = {0};
        for (long i = 0; i < N; i++) {
            for (int k = 0; k < SOURCES && !shuffle; k++) /* none counts twice */
                assert_int_equal(sampler_share(sampler, k, i),
                                 counts[k] < mixed_samples[k] ? counts[k] : mixed_samples[k]);
            long first = first_token(sampler, i);
            int k = (int)(first / BASE);
            long sample = first % BASE / LENGTH;
            if (!shuffle) assert_int_equal(sample, counts[k] % mixed_samples[k]);
            counts[k]++;
        }
        for (int k = 0; k < SOURCES; k++) {
            double share = (double)counts[k] / N, wanted = mixed[k].weight / sum;
            if (share < wanted - 0.001 || share > wanted + 0.001)
                fail_msg("source %d has a share of %g", k, share);
        }
        for (int k = 0; k < SOURCES; k++)
            assert_int_equal(sampler_share(sampler, k, LONG_MAX), mixed_samples[k]);
        sampler_close(sampler);
    }
}

/* With the epochs of source k at whole blocks of the mixture, each of its samples comes exactly once in
 * each. */
static void mixture_epochs(void **state) {
    (void)state;
    const struct sampler_source sources[2] = {{ONE_PATH("even_0.bin"), 1}, {ONE_PATH("even_1.bin"), 3}};
    put_counting("even_0.bin", 0, LENGTH * 256 + 1);
    put_counting("even_1.bin", BASE, LENGTH * 768 * 2 + 1);
    struct sampler_options options = one_source(sources);
    options.num_sources = 2;
    options.shuffle = true;
    struct sampler *sampler = open_sampler(options);
    assert_int_equal(sampler_epoch(sampler), 2048);
    for (long block = 0; block < 8; block += 2) {
        int seen[2][1536] = {0};
        for (long i = 1024 * block; i < 1024 * (block + 2); i++) {
            long first = first_token(sampler, i);
            seen[first / BASE][first % BASE / LENGTH]++;
        }
        for (int i = 0; i < 256; i++) assert_int_equal(seen[0][i], 2);
        for (int i = 0; i < 1536; i++) assert_int_equal(seen[1][i], 1);
    }
    sampler_close(sampler);
}

/* Also far out: shares hold for every N, and a source's own numbers have no gaps. Weights from 1 to 1e-6. */
static void mixture_arithmetic(void **state) {
    (void)state;
    const double weights[] = {1e-6, 1, 0.001, 0.37, 0.37};
    struct mixture mixture;
    assert_int_equal(mixture_create(weights, 5, &mixture), GDN_OK);
    double sum = 0;
    for (int k = 0; k < 5; k++) sum += weights[k];
    const long starts[] = {0, 1000000000000, LONG_MAX - 20000};
    for (int s = 0; s < 3; s++) {
        long next[5] = {-1, -1, -1, -1, -1};
        for (long i = starts[s]; i < starts[s] + 10000; i++) {
            long own;
            int k = mixture_place(&mixture, i, &own);
            if (next[k] >= 0 || s == 0) assert_int_equal(own, next[k] < 0 ? 0 : next[k]);
            next[k] = own + 1;
            /* 5 sources, and weights kept to 2^-33 of their sum */
            double wanted = weights[k] / sum * (double)i;
            assert_true((double)own > wanted - 5 - (double)i * 0x1p-30 &&
                        (double)own < wanted + 5 + (double)i * 0x1p-30);
        }
    }
    mixture_free(&mixture);
}

static void random_access(void **state) {
    (void)state;
    enum { N = 5000 };
    int32_t *all = malloc(N * WIDTH * sizeof *all), row[WIDTH];
    struct sampler *forward = open_mixture(true, 9), *jumping = open_mixture(true, 9);
    assert_int_equal(sampler_read(forward, 0, N, VOCAB, all), GDN_OK);
    for (long j = 0; j < N; j++) {
        long i = (j * 3571 + 17) % N; /* 3571 and 5000 have no common factor */
        assert_int_equal(sampler_read(jumping, i, 1, VOCAB, row), GDN_OK);
        assert_memory_equal(row, all + i * WIDTH, sizeof row);
    }
    sampler_close(forward);
    sampler_close(jumping);
    free(all);
}

static void parts(void **state) {
    (void)state;
    put_counting("parts.bin", 0, 101);
    struct sampler_source source = {ONE_PATH("parts.bin"), 1};
    struct sampler_options options = one_source(&source);
    options.to = 0.9; /* tokens 0 to 89: 29 samples */
    struct sampler *training = open_sampler(options);
    assert_int_equal(sampler_epoch(training), 29);
    assert_int_equal(first_token(training, 28), 84);
    assert_int_equal(first_token(training, 29), 0);
    options.from = 0.9; /* tokens 90 to 100: 3 samples */
    options.to = 1;
    struct sampler *validation = open_sampler(options);
    assert_int_equal(sampler_epoch(validation), 3);
    assert_int_equal(first_token(validation, 0), 90);
    assert_int_equal(first_token(validation, 5), 96);
    sampler_close(training);
    sampler_close(validation);
}

/* Of a mixture of any weights in any order, every sequence of the parts once, source after source. */
static void each_sequence_once(void **state) {
    (void)state;
    const struct sampler_source sources[2] = {{ONE_PATH("much.bin"), 1000}, {ONE_PATH("little.bin"), 1}};
    put_counting("much.bin", 0, 101);      /* from 0.9 on: tokens 90 to 100, 3 sequences */
    put_counting("little.bin", BASE, 141); /* tokens 126 to 140: 4 sequences */
    struct sampler_options options = one_source(sources);
    options.num_sources = 2;
    options.from = 0.9;
    const long wanted[] = {90, 93, 96, BASE + 126, BASE + 129, BASE + 132, BASE + 135};
    enum { ALL = sizeof wanted / sizeof *wanted };
    int32_t rows[ALL * WIDTH];
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        options.shuffle = shuffle;
        struct sampler *sampler = open_sampler(options);
        assert_int_equal(sampler_sequences(sampler), ALL);
        for (long first = 0; first < ALL; first++) {
            assert_int_equal(sampler_read_sequences(sampler, first, ALL - first, VOCAB, rows), GDN_OK);
            for (long i = 0; i < (ALL - first) * WIDTH; i++)
                assert_int_equal(rows[i], wanted[first + i / WIDTH] + i % WIDTH);
        }
        expect_failure(sampler_read_sequences(sampler, 1, ALL, VOCAB, rows), GDN_INTERNAL, "7 sequences");
        expect_failure(sampler_read_sequences(sampler, 3, 1, 100, rows), GDN_INPUT, "little.bin|0 to 99");
        sampler_close(sampler);
    }
}

/* A sparse file of 2^40 tokens: positions, products and the shuffle beyond 32 bits. */
static void many_tokens(void **state) {
    (void)state;
    const long tokens = 1l << 40, samples = (tokens - 1) / LENGTH;
    put_text("many.bin", "");
    if (truncate("many.bin", 2 * tokens)) skip(); /* a file system that has no such sizes */
    struct sampler_source source = {ONE_PATH("many.bin"), 1};
    struct sampler_options options = one_source(&source);
    options.format = &nanogpt_format;
    struct sampler *sequence = open_sampler(options);
    options.shuffle = true;
    struct sampler *shuffle = open_sampler(options);
    int32_t row[WIDTH];
    assert_int_equal(sampler_epoch(sequence), samples);
    assert_int_equal(sampler_read(sequence, samples - 1, 1, 257, row), GDN_OK);
    assert_int_equal(sampler_read(sequence, 1000 * samples - 1, 1, 257, row), GDN_OK);
    for (long i = 0; i < 20; i++) /* each reads in a cold place, which takes milliseconds */
        assert_int_equal(sampler_read(shuffle, i * 987654321987, 1, 257, row), GDN_OK);
    sampler_close(sequence);
    sampler_close(shuffle);
    unlink("many.bin");
}

static void vocabulary(void **state) {
    (void)state;
    put_counting("words_1.bin", 0, 4);
    put_llmc("words_2.bin", 20240520, 1, 4, (uint16_t[]){4, 5, 900, 7}, 8);
    struct sampler_source source = {ONE_PATH("words_?.bin"), 1};
    struct sampler *sampler = open_sampler(one_source(&source));
    int32_t rows[2 * WIDTH];
    assert_int_equal(sampler_read(sampler, 0, 1, 4, rows), GDN_OK);
    assert_int_equal(sampler_read(sampler, 0, 2, 901, rows), GDN_OK);
    expect_failure(sampler_read(sampler, 0, 2, 900, rows), GDN_INPUT, "words_2.bin|token 2 is 900|0 to 899");
    expect_failure(sampler_read(sampler, 0, 1, 3, rows), GDN_INPUT, "words_1.bin|token 3 is 3|0 to 2");
    sampler_close(sampler);

    int64_t n = 1, d = 2, places[] = {0, 0, 1}; /* a Megatron pair with a negative token */
    char index[62] = "MMIDIDX\0\0\1\0\0\0\0\0\0\0\2";
    memcpy(index + 18, &n, 8);
    memcpy(index + 26, &d, 8);
    memcpy(index + 34, &(int32_t){4}, 4);
    memcpy(index + 38, places, 24);
    put_file("minus.bin", "\1\2\xfe\3", 4);
    put_file("minus.idx", index, sizeof index);
    source.files = (struct path_list)ONE_PATH("minus");
    struct sampler_options options = one_source(&source);
    options.format = &megatron_format;
    sampler = open_sampler(options);
    expect_failure(sampler_read(sampler, 0, 1, 100, rows), GDN_INPUT, "minus.bin|token 2 is -2|0 to 99");
    sampler_close(sampler);
}

/* Which tokens of the first two samples, in bits from the lowest up, documents start with. */
static unsigned starts_of(const char *files, const struct token_format *format) {
    struct sampler_source source = {ONE_PATH(files), 1};
    struct sampler_options options = one_source(&source);
    options.format = format;
    int32_t plain[2 * WIDTH], rows[2 * WIDTH];
    unsigned starts = 0;
    for (int marked = 0; marked < 2; marked++) {
        options.documents = marked;
        struct sampler *sampler = open_sampler(options);
        assert_int_equal(sampler_read(sampler, 0, 2, 50257, marked ? rows : plain), GDN_OK);
        sampler_close(sampler);
    }
    for (int t = 0; t < 2 * WIDTH; t++) {
        assert_int_equal(rows[t] & MARK_TOKEN, plain[t]);
        assert_true(rows[t] == plain[t] || rows[t] == (plain[t] | MARK_DOCUMENT));
        if (rows[t] & MARK_DOCUMENT) starts |= 1u << t;
    }
    return starts;
}

/* Rows are tokens 0 to 3 and 3 to 6: a token that both have is marked in both. */
static void documents(void **state) {
    (void)state;
    put_text("doc_1", "ab");
    put_text("doc_2", "c");
    put_text("doc_3", "defg");
    const char *const texts[] = {"doc_1", "doc_2", "doc_3"}; /* a b | 256 c | 256 d e f g */
    assert_int_equal(starts_of("doc_[123]", &text_format), 1u << 0 | 1u << 2 | 1u << 5);
    assert_int_equal(tokens_write("doc.h5", &hdf5_format, texts, 3), GDN_OK);
    assert_int_equal(starts_of("doc.h5", &hdf5_format), 1u << 0 | 1u << 2 | 1u << 5);
    /* In a Megatron pair the separator closes a document: a b 256 | c 256 | d e … */
    assert_int_equal(tokens_write("doc", &megatron_format, texts, 3), GDN_OK);
    assert_int_equal(starts_of("doc", &megatron_format), 1u << 0 | 1u << 3 | 1u << 4 | 1u << 6);
    put_llmc("doc_a.bin", 20240520, 1, 4, (uint16_t[]){50256, 5, 50256, 7}, 8);
    put_llmc("doc_b.bin", 20240520, 1, 4, (uint16_t[]){1, 5, 50256, 7}, 8); /* begins inside a document */
    assert_int_equal(starts_of("doc_?.bin", &llmc_format), 1u << 0 | 1u << 2 | 1u << 5 | 1u << 7);

    put_counting("plain.bin", 0, 12);
    struct sampler_source source = {ONE_PATH("plain.bin"), 1};
    struct sampler_options options = one_source(&source);
    options.documents = true;
    struct sampler *sampler;
    expect_failure(sampler_open(&options, &sampler), GDN_INPUT, "plain.bin|no token 128000");
    put_text("plain.raw", "tokens that a file has, and nothing else");
    source.files = (struct path_list)ONE_PATH("plain.raw");
    options.format = &nanogpt_format;
    expect_failure(sampler_open(&options, &sampler), GDN_INPUT, "plain.raw|nanogpt|mask");
}

enum { FIT = 6 };

static struct sampler *open_packed(const char *files) {
    const struct sampler_source source = {ONE_PATH(files), 1};
    struct sampler_options options = one_source(&source);
    options.format = &text_format, options.length = FIT, options.packed = true;
    return open_sampler(options);
}

/* Documents of 5, 2, 4, 2, 6 and 9 tokens, separators among them: the longest first, each where least is
 * left. */
static void packed(void **state) {
    enum {
        D = MARK_DOCUMENT,
        U = MARK_UNCOUNTED,
        P = MARK_PADDING,
        SEP = TEXT_SEPARATOR | D,
        PAD = D | U | P
    };
    (void)state;
    put_text("pack_1", "abcde");
    put_text("pack_2", "x");
    put_text("pack_3", "fgh");
    put_text("pack_4", "i");
    put_text("pack_5", "jklmn");
    put_text("pack_6", "opqrstuv");
    const int32_t expected[][FIT + 1] = {
        {'a' | D, 'b', 'c', 'd', 'e', SEP | P, PAD}, /* what follows counts: the document's end */
        {SEP, 'x', SEP, 'f', 'g', 'h', SEP | P},     /* 2 and 4 */
        {SEP, 'i', 't' | D | U, 'u', 'v', PAD,
         PAD},                                   /* 2, which nobody can tell what follows, and the end of 9 */
        {SEP, 'j', 'k', 'l', 'm', 'n', SEP | P}, /* 6 */
        {SEP, 'o', 'p', 'q', 'r', 's', 't' | D | P}, /* the first part of 9 */
    };
    struct sampler *sampler = open_packed("pack_?");
    int32_t rows[6][FIT + 1];
    assert_int_equal(sampler_epoch(sampler), 5);
    assert_true(sampler_masked(sampler));
    assert_int_equal(sampler_read(sampler, 0, 6, 257, rows[0]), GDN_OK);
    const int32_t *got = &rows[0][0], *wanted = &expected[0][0];
    for (int i = 0; i < 5 * (FIT + 1); i++)
        if (got[i] != wanted[i])
            fail_msg("sample %d, token %d: %x, where %x is expected", i / (FIT + 1), i % (FIT + 1), got[i],
                     wanted[i]);
    assert_memory_equal(rows[5], expected[0], sizeof rows[5]); /* the next epoch */
    sampler_close(sampler);
}

/* Every token is the input of one sample, once, behind the one before it in its document. */
static void packs_all(void **state) {
    enum { DOCUMENTS = 300, MOST = 2 * FIT };
    char name[16], text[MOST + 1];
    int expected[128] = {0}, found[128] = {0};
    long tokens = 0;
    (void)state;
    for (int d = 0; d < DOCUMENTS; d++) {
        int length = (int)(random_bits(1, 2, (uint64_t)d) % MOST) + 1;
        memset(text, 'A' + d % 60, (size_t)length), text[length] = 0;
        expected['A' + d % 60] += length;
        tokens += length + (d > 0);
        snprintf(name, sizeof name, "some_%03d", d);
        put_text(name, text);
    }
    struct sampler *sampler = open_packed("some_*");
    int32_t row[FIT + 1];
    for (long i = 0; i < sampler_epoch(sampler); i++) {
        assert_int_equal(sampler_read(sampler, i, 1, 257, row), GDN_OK);
        for (int t = 0; t < FIT; t++) {
            const int32_t token = row[t] & MARK_TOKEN, padding = row[t] & MARK_PADDING;
            assert_true(padding || token > 0);
            if (!padding && token < 128) found[token]++;
            if (padding) assert_int_equal(row[t + 1], MARK_DOCUMENT | MARK_PADDING | MARK_UNCOUNTED);
        }
    }
    for (int c = 'A'; c < 'A' + 60; c++) assert_int_equal(found[c], expected[c]);
    assert_true(sampler_epoch(sampler) * FIT < tokens + tokens / 10); /* little is left over */
    sampler_close(sampler);
}

static void expect_refused(struct sampler_options options, const char *text) {
    struct sampler *sampler = (struct sampler *)(uintptr_t)1;
    expect_failure(sampler_open(&options, &sampler), GDN_INPUT, text);
    assert_null(sampler);
}

static void refusals(void **state) {
    (void)state;
    put_counting("few.bin", 0, LENGTH);
    put_counting("more.bin", 0, 30);
    struct sampler_source few = {ONE_PATH("few.bin"), 1}, none = {ONE_PATH("none.bin"), 1},
                          more = {ONE_PATH("more.bin"), 1};
    expect_refused(one_source(&few), "few.bin|3 tokens|4");
    expect_refused(one_source(&none), "none.bin|No such file");
    struct sampler_options options = one_source(&more);
    options.from = 0.9;
    expect_refused(options, "more.bin|from 0.9 to 1|30 tokens|3|4");
    options.from = options.to = 0.5;
    expect_refused(options, "0.5");
    options = one_source(&more);
    options.length = 0;
    expect_refused(options, "length");
    more.weight = 0;
    expect_refused(one_source(&more), "more.bin|weight is 0");
    const struct sampler_source two[] = {{ONE_PATH("more.bin"), 1}, {ONE_PATH("few.bin"), 1}};
    options = one_source(two);
    options.num_sources = 2;
    expect_refused(options, "few.bin|3 tokens");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sequential, clear_failure),
        cmocka_unit_test_setup(bijections, clear_failure),
        cmocka_unit_test_setup(orders_are_equally_likely, clear_failure),
        cmocka_unit_test_setup(neighbours_part, clear_failure),
        cmocka_unit_test_setup(shuffled, clear_failure),
        cmocka_unit_test_setup(mixture_shares, clear_failure),
        cmocka_unit_test_setup(mixture_epochs, clear_failure),
        cmocka_unit_test_setup(mixture_arithmetic, clear_failure),
        cmocka_unit_test_setup(random_access, clear_failure),
        cmocka_unit_test_setup(parts, clear_failure),
        cmocka_unit_test_setup(each_sequence_once, clear_failure),
        cmocka_unit_test_setup(many_tokens, clear_failure),
        cmocka_unit_test_setup(vocabulary, clear_failure),
        cmocka_unit_test_setup(documents, clear_failure),
        cmocka_unit_test_setup(packed, clear_failure),
        cmocka_unit_test_setup(packs_all, clear_failure),
        cmocka_unit_test_setup(refusals, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
