#include "data/sampler.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "data/mixture.h"
#include "data/packing.h"
#include "data/permutation.h"
#include "kernels/base/marks.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"

/* A shuffled mixture permutes its samples in blocks, or sources would follow each other in a fixed rhythm. */
enum { MIXTURE_BLOCK = 1024 };

struct source {
    struct tokens *tokens;
    long first;   /* token of the stream where the part used begins */
    long end;     /* and ends */
    long samples; /* whole samples in that part: one epoch */
    struct packing packing; /* where whole documents are packed */
};

struct sampler {
    struct source *sources; /* [num_sources] */
    int num_sources;
    struct mixture mixture;
    bool shuffle;
    uint64_t seed;
    bool documents, packed;
    long length; /* S */
};

/* Of more than 2^53 tokens a double may be more than there are. */
static long part_of(long count, double fraction) {
    double at = floor(fraction * (double)count);
    return fraction < 1 && at < (double)count ? (long)at : count;
}

static int open_source(const struct sampler_options *options, int k, struct source *source) {
    char path[256];
    path_list_name(&options->sources[k].files, path, sizeof path);
    double weight = options->sources[k].weight;
    if (!(weight > 0) || !isfinite(weight))
        return gdn_fail(GDN_INPUT, "%s: its weight is %g, and a number above 0 is expected", path, weight);
    TRY(tokens_open_list(&options->sources[k].files, options->format, &source->tokens));
    if (options->documents || options->packed) TRY(tokens_find_documents(source->tokens));
    long count = tokens_count(source->tokens);
    source->first = part_of(count, options->from);
    source->end = part_of(count, options->to);
    long tokens = source->end - source->first;
    if (tokens < options->length + 1) {
        if (tokens == count)
            return gdn_fail(GDN_INPUT, "%s has %ld tokens, and one sample needs sequence_length + 1 = %ld",
                            path, count, options->length + 1);
        return gdn_fail(
            GDN_INPUT,
            "%s: the part from %g to %g of its %ld tokens has %ld, and one sample needs sequence_length + 1 "
            "= %ld",
            path, options->from, options->to, count, tokens, options->length + 1);
    }
    source->samples = (tokens - 1) / options->length;
    if (!options->packed) return GDN_OK;
    TRY(packing_create(source->tokens, source->first, source->end, options->length, &source->packing));
    source->samples = source->packing.samples;
    return GDN_OK;
}

static int open_sources(const struct sampler_options *options, struct sampler *sampler) {
    int n = options->num_sources;
    sampler->sources = calloc((size_t)n, sizeof *sampler->sources);
    double *weights = calloc((size_t)n, sizeof *weights);
    int status = sampler->sources && weights ? GDN_OK : gdn_fail(GDN_INTERNAL, "no memory for %d sources", n);
    for (int k = 0; k < n && !status; k++) {
        sampler->num_sources = k + 1;
        weights[k] = options->sources[k].weight;
        status = open_source(options, k, &sampler->sources[k]);
    }
    if (!status) status = mixture_create(weights, n, &sampler->mixture);
    free(weights);
    return status;
}

int sampler_open(const struct sampler_options *options, struct sampler **out) {
    *out = NULL;
    if (options->num_sources < 1) return gdn_fail(GDN_INPUT, "no token files were given");
    if (options->length < 1)
        return gdn_fail(GDN_INPUT, "a sample's length is %ld tokens, and at least 1 is expected",
                        options->length);
    if (!(options->from >= 0 && options->from < options->to && options->to <= 1))
        return gdn_fail(GDN_INPUT, "the part from %g to %g of the tokens does not exist", options->from,
                        options->to);
    struct sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler) return gdn_fail(GDN_INTERNAL, "no memory for a sampler");
    sampler->shuffle = options->shuffle;
    sampler->seed = options->seed;
    sampler->length = options->length;
    sampler->documents = options->documents;
    sampler->packed = options->packed;
    int status = open_sources(options, sampler);
    if (status) {
        sampler_close(sampler);
        return status;
    }
    *out = sampler;
    return GDN_OK;
}

void sampler_close(struct sampler *sampler) {
    if (!sampler) return;
    for (int k = 0; k < sampler->num_sources; k++) {
        tokens_close(sampler->sources[k].tokens);
        packing_free(&sampler->sources[k].packing);
    }
    mixture_free(&sampler->mixture);
    free(sampler->sources);
    free(sampler);
}

long sampler_epoch(const struct sampler *sampler) {
    long longest = 0;
    for (int k = 0; k < sampler->num_sources; k++) {
        long span = mixture_span(&sampler->mixture, k, sampler->sources[k].samples);
        if (span > longest) longest = span;
    }
    return longest;
}

/* A key for one of a shuffle's permutations: `what` it shuffles, and which time (epoch or block). */
static uint64_t shuffle_key(const struct sampler *sampler, const char *what, uint64_t number, uint64_t time) {
    return random_bits(random_bits(sampler->seed, random_name(what), number), random_name("time"), time);
}

int sampler_verify_tokenizer(const struct sampler *sampler, uint64_t hash, const char *name) {
    for (int k = 0; k < sampler->num_sources; k++)
        TRY(tokens_verify_tokenizer(sampler->sources[k].tokens, hash, name));
    return GDN_OK;
}

/* Which source sample i comes from, and its number among that source's. */
static const struct source *locate(const struct sampler *sampler, long i, long *number) {
    if (sampler->shuffle && sampler->num_sources > 1) {
        long block = i / MIXTURE_BLOCK;
        uint64_t key = shuffle_key(sampler, "data.mixture", 0, (uint64_t)block);
        i = block * MIXTURE_BLOCK + (long)permutation(key, MIXTURE_BLOCK, (uint64_t)(i % MIXTURE_BLOCK));
    }
    long own;
    int k = mixture_place(&sampler->mixture, i, &own);
    const struct source *source = &sampler->sources[k];
    long epoch = own / source->samples;
    own %= source->samples;
    if (sampler->shuffle) {
        uint64_t key = shuffle_key(sampler, "data.shuffle", (uint64_t)k, (uint64_t)epoch);
        own = (long)permutation(key, (uint64_t)source->samples, (uint64_t)own);
    }
    *number = own;
    return source;
}

static int validate_row(const struct source *source, long first, int vocab, const int32_t *row, long count) {
    for (long t = 0; t < count; t++) {
        if (row[t] >= 0 && row[t] < vocab) continue;
        long in_file;
        const char *path = tokens_place(source->tokens, first + t, &in_file);
        return gdn_fail(GDN_INPUT, "%s: token %ld is %d, which is outside the vocabulary of 0 to %d", path,
                        in_file, row[t], vocab - 1);
    }
    return GDN_OK;
}

/* Tokens first … first + count − 1 of the source's stream, with marks of those that do not count. */
static int read_tokens(const struct source *source, long first, long count, int vocab, int32_t *row) {
    TRY(tokens_read(source->tokens, first, count, row));
    TRY(validate_row(source, first, vocab, row, count));
    return tokens_mark_uncounted(source->tokens, first, count, row);
}

/* A sample of whole documents. Behind the last token of each is what opens the next one in the sample, which
 * counts where it is what follows in the stream as well, such as a separator. What is left over is padding,
 * and so is, as an input, what the last token of a sample predicts. */
static int read_packed(const struct sampler *sampler, const struct source *source, long number, int vocab,
                       int32_t *row) {
    const struct packing *packing = &source->packing;
    long at = 0;
    bool followed = false; /* row[at] is what follows in the stream */
    for (long i = packing->sample[number]; i >= 0; i = packing->piece[i].next) {
        const struct piece *piece = &packing->piece[i];
        const int32_t before = followed ? row[at] & MARK_TOKEN : -1;
        followed = piece->first + piece->length < source->end;
        TRY(read_tokens(source, piece->first, piece->length + followed, vocab, row + at));
        if (at > 0 && (row[at] & MARK_TOKEN) != before) row[at] |= MARK_UNCOUNTED;
        row[at] |= MARK_DOCUMENT;
        at += piece->length;
    }
    if (followed) row[at++] |= MARK_DOCUMENT | MARK_PADDING;
    for (; at <= sampler->length; at++) row[at] = MARK_DOCUMENT | MARK_PADDING | MARK_UNCOUNTED;
    return GDN_OK;
}

/* Reads the row of S + 1 tokens that is the source's sample of this number. */
static int read_row(const struct sampler *sampler, const struct source *source, long number, int vocab,
                    int32_t *row) {
    if (sampler->packed) return read_packed(sampler, source, number, vocab, row);
    const long first = source->first + number * sampler->length, count = sampler->length + 1;
    TRY(read_tokens(source, first, count, vocab, row)); /* inside the stream, so the product fits */
    return sampler->documents ? tokens_mark_documents(source->tokens, first, count, row) : GDN_OK;
}

int sampler_read(struct sampler *sampler, long first, long count, int vocab, int32_t *rows) {
    if (first < 0 || count < 0 || count > INT64_MAX - MIXTURE_BLOCK - first)
        return gdn_fail(GDN_INTERNAL, "samples %ld and the %ld from there on do not exist", first, count);
    for (long i = 0; i < count; i++) {
        long number;
        const struct source *source = locate(sampler, first + i, &number);
        TRY(read_row(sampler, source, number, vocab, rows + i * (sampler->length + 1)));
    }
    return GDN_OK;
}

bool sampler_masked(const struct sampler *sampler) {
    bool any = sampler->packed; /* padding does not */
    for (int k = 0; k < sampler->num_sources; k++) any |= tokens_masked(sampler->sources[k].tokens);
    return any;
}

int sampler_sources(const struct sampler *sampler) {
    return sampler->num_sources;
}

int sampler_identify(struct sampler *sampler, int k, struct tokens_identity *out) {
    return tokens_identify(sampler->sources[k].tokens, out);
}

long sampler_sequences(const struct sampler *sampler) {
    long sum = 0;
    for (int k = 0; k < sampler->num_sources; k++) sum += sampler->sources[k].samples;
    return sum;
}

int sampler_read_sequences(struct sampler *sampler, long first, long count, int vocab, int32_t *rows) {
    long all = sampler_sequences(sampler);
    if (first < 0 || count < 0 || first > all || count > all - first)
        return gdn_fail(GDN_INTERNAL, "of %ld sequences, %ld and the %ld from there on do not exist", all,
                        first, count);
    for (long i = 0; i < count; i++) {
        const struct source *source = sampler->sources;
        long own = first + i;
        for (; own >= source->samples; source++) own -= source->samples;
        TRY(read_row(sampler, source, own, vocab, rows + i * (sampler->length + 1)));
    }
    return GDN_OK;
}

long sampler_share(const struct sampler *sampler, int k, long count) {
    long share = mixture_share(&sampler->mixture, k, count), all = sampler->sources[k].samples;
    return count == LONG_MAX || share > all ? all : share;
}
