/* Training of a byte-level byte-pair tokenizer on documents. */
#ifndef GDN_DOCUMENTS_TRAIN_H
#define GDN_DOCUMENTS_TRAIN_H

#include "data/paths.h"

struct tokenizer_training {
    const char *output; /* a tokenizer.json of Hugging Face's library; of that name, a tokenizer_config.json
                           comes to lie beside it, unless there is one, which says what ends a text */
    const char *field;  /* of lines of JSON */
    struct path_list files;
    long vocab; /* tokens: <|endoftext|>, 256 bytes, and what merges make */
    /* Each told when its part begins, and about once a second: how many of all bytes are read while words are
     * counted; then how many of all tokens there are. Either may be NULL. */
    void (*progress)(void *input, long done, long all);
    void (*merged)(void *input, long done, long all);
    void *input;
};

enum { TRAIN_MIN_VOCAB = 257, TRAIN_MAX_VOCAB = 1 << 20 };

/* Texts are cut into words by Llama 3's expression; the pair of tokens that stands most often in them, of
 * equals that of the least ids, becomes the next token, until there are `vocab` of them or no pair stands
 * twice. Words are counted on all threads; the file is the same for any number of them. *vocab: how many
 * tokens it has. Complete or absent, and with it what is beside it. GDN_INPUT for what cannot be read or
 * written. */
int tokenizer_train(const struct tokenizer_training *training, long *vocab);

#endif
