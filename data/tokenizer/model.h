/* Byte-pair encoding: a word's characters are tokens, of which neighbours are merged, the merge that stands
 * first in the file before all others, until no merge applies. */
#ifndef GDN_TOKENIZER_MODEL_H
#define GDN_TOKENIZER_MODEL_H

#include "data/tokenizer/fields.h"
#include "data/tokenizer/pairs.h"
#include "data/tokenizer/vocabulary.h"

struct model {
    struct vocabulary vocabulary;
    struct pairs merges;
    /* Of characters: last of the left, first of the right, of any merge. Between two that are not here no
     * merge ever comes, so that a long word may be cut there. */
    struct pairs borders;
    int32_t *of_character; /* [CHARACTER_MAX] tokens of one character; −1: none */
    int32_t of_byte[256];  /* byte_fallback: <0x00> to <0xFF>; −1: none */
    int32_t unknown;       /* unk_token; −1: none */
    bool fuse_unk, byte_fallback, ignore_merges;
};

/* Of the file's member `model`. model_close, whatever this returns. */
int model_open(const struct place *place, const json_t *object, struct model *out);
void model_close(struct model *model);

/* What a thread has of a model: words that it has met, and room to merge in. */
struct merger;
int merger_create(const struct model *model, struct merger **out);
void merger_free(struct merger *merger);

/* Appends the tokens of a word, which is valid UTF-8. */
int merger_encode(struct merger *merger, const char *word, size_t length, struct ids *out);

#endif
