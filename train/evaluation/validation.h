/* What evaluations read: validation sets, each with a name, opened.
 *
 * The first set is the one by which the best checkpoint is judged, and whose loss is `loss` everywhere: that
 * of data.validation, or what is held out of the training data (validation_fraction), called "validation";
 * without these the first of data.validations. What is held out of a mixture is followed by sets of each
 * source's part of it, unless it has more than VALIDATION_SOURCES: these share its sequences, so that nothing
 * is computed twice. Then data.validations follow. */
#ifndef GDN_VALIDATION_H
#define GDN_VALIDATION_H

#include "data/sampler.h"
#include "data/tokenizer/token_bytes.h"
#include "train/config/config.h"

enum { VALIDATION_SOURCES = 100 };

/* Consecutive sequences of one source. */
struct validation_part {
    struct sampler *sampler; /* not owned */
    long first, sequences;   /* as sampler_read_sequences numbers them */
    long all;                /* that the source has */
};

struct validation_set {
    char *name;
    int first, end; /* its parts: first … end − 1 */
};

struct validation {
    struct sampler **sampler;     /* [samplers] */
    struct validation_part *part; /* [parts] */
    struct validation_set *set;   /* [sets] */
    int samplers, parts, sets;    /* sets 0: there is no validation data */
    const struct token_bytes *bytes;  /* of its tokens, set by who knows it; NULL: not known. Not owned */
};

/* Opens the validation data of a configuration and finds the sequences that an evaluation reads: the first
 * train.eval_batches · train.batch_size of each set (of a mixture as it is drawn from by weight, but none
 * twice), or all where that is 0 or more than there are. Not collective. GDN_INPUT naming the key of data
 * that is not readable; `out` is owned by the caller in any case: validation_close. */
int validation_open(const struct config *config, struct validation *out);
void validation_close(struct validation *validation);

/* Leaves the set of that name alone. Not collective. GDN_INPUT with the names that there are. */
int validation_keep(struct validation *validation, const char *name);

/* The first set alone, of which at most `wanted` sequences are read: of each of its parts the first ones, as many as a
 * set of so many would have. Its samplers are those of `all`, which outlives it. Not collective. GDN_INTERNAL;
 * validation_close in any case. */
int validation_few(const struct validation *all, long wanted, struct validation *out);

/* How many sequences an evaluation reads of set `set`, and of how many; those of the part that has most, 0
 * without parts. */
long validation_sequences(const struct validation *validation, int set);
long validation_all(const struct validation *validation, int set);
long validation_max(const struct validation *validation);

/* How many sequences are so many batches of an evaluation; LONG_MAX, also for 0: all that a set has. */
long validation_wanted(const struct train_config *train, long batches);

#endif
