/* What each token of a tokenizer is in a text: the bytes that it adds behind others, and how many it adds at
 * a document's beginning, where some tokenizers leave out the blank that they have put there. A character may
 * be cut between tokens, so these are bytes, not text. */
#ifndef GDN_TOKEN_BYTES_H
#define GDN_TOKEN_BYTES_H

#include "data/tokenizer/tokenizer.h"

struct token_bytes {
    struct texts text; /* of each id below the tokenizer's vocabulary, behind others */
    int32_t *first;    /* [text.count] bytes at a document's beginning */
    int32_t separator; /* which adds nothing, and begins a document; −1: none */
};

/* Zeros are none. GDN_INTERNAL without memory. token_bytes_free, whatever this returns. */
int token_bytes_create(const struct tokenizer *tokenizer, int32_t separator, struct token_bytes *out);
void token_bytes_free(struct token_bytes *bytes);

/* The bytes that a token adds behind others; none of an id that the tokenizer does not have. */
const char *token_bytes_at(const struct token_bytes *bytes, int32_t id, size_t *length);

/* How many bytes of text a token is, `before` being the one before it. */
long token_bytes_length(const struct token_bytes *bytes, int32_t before, int32_t id);

#endif
