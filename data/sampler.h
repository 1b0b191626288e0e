/* Samples: which tokens make up sample i of training. The data position is one integer, samples
 * consumed; shuffles and mixtures are computed from (seed, epoch, index), never stored. */
#ifndef GDN_SAMPLER_H
#define GDN_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "data/identity.h"
#include "data/tokens.h"

struct sampler_source {
    struct path_list files; /* files and globs, one stream in this order; not owned */
    double weight;          /* > 0; relative */
};

struct sampler_options {
    const struct sampler_source *sources;
    int num_sources;
    const struct token_format *format;
    bool shuffle; /* else sequential: sample i is tokens[iS … iS+S], wrapping after the last whole one */
    uint64_t seed;
    long length;     /* S; a sample has S + 1 tokens */
    bool documents;  /* rows have MARK_DOCUMENT (kernels/base/marks.h) where documents start */
    bool packed;     /* samples are whole documents, packed with the least left over (packing.h), which is padding
                        that does not count */
    double from, to; /* the part of each stream, as fractions of its tokens: 0, 1 for all; training takes 0 …
                        1 − f, validation 1 − f … 1 */
};

struct sampler; /* opaque */

/* Opens the sources. Fails like tokens_open, where a source has fewer than S + 1 tokens (the message says
 * how many it has and needs), or with `documents` does not tell where they start. Copies what it keeps of
 * `options`. Not collective. */
int sampler_open(const struct sampler_options *options, struct sampler **out);
void sampler_close(struct sampler *sampler);

/* Samples in one pass over the data (of a mixture: over the source that lasts longest by its weight). */
long sampler_epoch(const struct sampler *sampler);

/* Whether any source says which of its tokens count as targets in the loss. */
bool sampler_masked(const struct sampler *sampler);

/* Reads samples first … first + count − 1, rows of S + 1 tokens, into rows [count, S+1], with the marks of
 * kernels/base/marks.h above them: MARK_UNCOUNTED where the data say that a token does not count,
 * MARK_PADDING where it is none of the data's. Every value must lie in [0, vocab), vocab up to MARK_TOKEN:
 * otherwise GDN_INPUT naming file, position in the file and value; the same of a loss mask that is none. */
int sampler_read(struct sampler *sampler, long first, long count, int vocab, int32_t *rows);

/* How many sources there are, and what tells the whole stream of source k from another (data/identity.h). Not
 * collective; fails like tokens_identify. */
int sampler_sources(const struct sampler *sampler);
int sampler_identify(struct sampler *sampler, int k, struct tokens_identity *out);

/* tokens_verify_tokenizer of every source. */
int sampler_verify_tokenizer(const struct sampler *sampler, uint64_t hash, const char *name);

/* Every whole sequence of every source exactly once, source after source, each from its beginning to its end:
 * what an evaluation on all of the data reads, whatever the weights and the order of training. How many there
 * are, and those numbered first … first + count − 1, read as sampler_read does. */
long sampler_sequences(const struct sampler *sampler);
int sampler_read_sequences(struct sampler *sampler, long first, long count, int vocab, int32_t *rows);

/* How many of source k's sequences are among the first `count` samples as weights mix them, each counted
 * once; with LONG_MAX all that it has. */
long sampler_share(const struct sampler *sampler, int k, long count);

#endif
