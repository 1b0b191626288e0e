/* Tokenizers: text to token ids and back. A kind of tokenizer is a row of a table (kind.h); who uses one does
 * not know which there are. An open tokenizer changes no more and may be read by any number of threads; what
 * a thread needs of its own to encode is an encoder. */
#ifndef GDN_TOKENIZER_H
#define GDN_TOKENIZER_H

#include <stdbool.h>

#include "data/tokenizer/text.h"

struct tokenizer; /* opaque */
struct encoder;   /* opaque */

/* Opens the tokenizer that a user names: "bytes", whose tokens are a text's bytes, or the path of a
 * tokenizer.json of Hugging Face's library. GDN_INPUT where it cannot be read or has anything that is not
 * supported; the message names it and its place in the file. Not collective. */
int tokenizer_open(const char *name, struct tokenizer **out);
/* The same where the file's text is at hand, which outlives the call; NULL: as tokenizer_open. */
int tokenizer_open_text(const char *name, const char *text, struct tokenizer **out);
void tokenizer_close(struct tokenizer *tokenizer);

const char *tokenizer_path(const struct tokenizer *tokenizer); /* as it was named */
/* One more than the greatest id: the least model.vocab_size. */
long tokenizer_vocab(const struct tokenizer *tokenizer);
/* A fingerprint: XXH3 of the file's bytes. */
uint64_t tokenizer_hash(const struct tokenizer *tokenizer);

/* The id of a token by its name, −1 where there is none; the name of an id, NULL where there is none. */
int32_t tokenizer_id(const struct tokenizer *tokenizer, const char *name, size_t length);
const char *tokenizer_name(const struct tokenizer *tokenizer, int32_t id, size_t *length);
bool tokenizer_is_special(const struct tokenizer *tokenizer, int32_t id);

/* The tokenizer must outlive it. GDN_INTERNAL without memory. */
int encoder_create(const struct tokenizer *tokenizer, struct encoder **out);
void encoder_free(struct encoder *encoder);

/* Appends the tokens of a text. What is no UTF-8 counts as U+FFFD (characters.h), but for `bytes`. With
 * `special` the tokens that the tokenizer sets around a text are there too. GDN_INPUT where an expression of
 * the tokenizer's gives up on the text. */
int encoder_encode(struct encoder *encoder, const char *text, size_t length, bool special, struct ids *out);

/* Appends the text of tokens; ids that are none are left out, and special ones too where `skip_special`. */
int tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *id, long count, bool skip_special,
                     struct text *out);
/* The same of all tokens, whose bytes may be parts of characters: they stay what they are. */
int tokenizer_decode_bytes(const struct tokenizer *tokenizer, const int32_t *id, long count,
                           struct text *out);

#endif
