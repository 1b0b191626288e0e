/* What a kind of tokenizer is: a row of the table in kinds.c. Private to this folder. */
#ifndef GDN_TOKENIZER_KIND_H
#define GDN_TOKENIZER_KIND_H

#include "data/tokenizer/tokenizer.h"

struct tokenizer {
    const struct tokenizer_kind *kind;
    char *path;
    const char *text; /* of the file, where it was given; valid inside open() */
    uint64_t hash;
    long vocab;
    void *state; /* the kind's own */
};

struct encoder {
    const struct tokenizer *tokenizer;
    void *state; /* the kind's own */
};

struct tokenizer_kind {
    const char *name;
    bool (*is_named)(const char *name); /* whether the user's word is of this kind */
    int (*open)(struct tokenizer *); /* sets hash, vocab and state; close() is called after a failure, too */
    void (*close)(struct tokenizer *);
    int32_t (*id)(const struct tokenizer *, const char *name, size_t length);
    const char *(*token_name)(const struct tokenizer *, int32_t id, size_t *length);
    bool (*is_special)(const struct tokenizer *, int32_t id);
    int (*encoder_create)(struct encoder *); /* NULL where an encoder has no state */
    void (*encoder_free)(struct encoder *);
    int (*encode)(struct encoder *, const char *text, size_t length, bool special, struct ids *out);
    int (*decode)(const struct tokenizer *, const int32_t *id, long count, bool skip_special, bool raw,
                  struct text *out);
};

extern const struct tokenizer_kind bytes_tokenizer, huggingface_tokenizer;

#endif
