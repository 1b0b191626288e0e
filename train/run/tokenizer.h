/* The tokenizer of a run: what its tokens are, where that is known. */
#ifndef GDN_RUN_TOKENIZER_H
#define GDN_RUN_TOKENIZER_H

#include "data/tokenizer/carried.h"
#include "data/tokenizer/token_bytes.h"
#include "dist/checkpoint/checkpoint.h"
#include "dist/mesh/mesh.h"
#include "train/config/config.h"
#include "train/evaluation/validation.h"

/* The same on all ranks. Zeros: it is not known. */
struct run_tokenizer {
    struct carried carried; /* name NULL: not known */
    struct token_bytes bytes;
    long vocab; /* tokens that it has; the model may have more */
};

/* What a checkpoint carries: the tokenizer's files, or bytes where its configuration says so; name NULL: it
 * is not known. Not collective. GDN_INTERNAL without memory, GDN_INPUT where the configuration cannot be
 * read. */
int run_tokenizer_of_checkpoint(const struct checkpoint_info *info, const char *path, struct carried *out);

/* The same of starting weights (checkpoint.init_from), where these carry files. */
int run_tokenizer_of_weights(const char *path, struct carried *out);

/* Takes data.tokenizer's; where that is '', `before`, what the run goes on from (`owner`) has known; and
 * where that is not known, bytes, where the data are text or lines of JSON. GDN_INPUT where it cannot be
 * read, is another than `before`, or has more tokens than model.vocab_size. Collective: rank 0's `before`
 * counts; run_tokenizer_free, whatever this returns. */
int run_tokenizer_open(const struct config *config, const struct mesh *mesh, const struct carried *before,
                       const char *owner, struct run_tokenizer *out);

/* Whether training data (NULL: none) and validation data were made by this tokenizer, as far as their files
 * and it are known. GDN_INPUT. Not collective. */
int run_tokenizer_verify(const struct run_tokenizer *tokenizer, const struct sampler *training,
                         const struct validation *validation);
void run_tokenizer_free(struct run_tokenizer *tokenizer);

#endif
