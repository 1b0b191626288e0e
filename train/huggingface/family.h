/* Kinds of models that Hugging Face's programs know by a config.json and that gdn's trunk can be, each a row.
 * Private to this folder. */
#ifndef GDN_HUGGINGFACE_FAMILY_H
#define GDN_HUGGINGFACE_FAMILY_H

#include <stdbool.h>

/* A key of config.json, and its value as JSON. */
struct family_key {
    const char *name, *value;
};

enum { FAMILY_KEYS = 8 };

struct family {
    const char *model_type, *architecture;
    int bias;                              /* enum attention_bias that all its models have; with bias_key: */
    bool bias_key;                         /* its key attention_bias says none or all */
    bool qk_norm;                          /* queries and keys have norms by head */
    bool whole;                            /* heads make up the hidden size */
    bool window_switch;                    /* its key use_sliding_window says whether sliding_window counts */
    bool own_code;                         /* gdn's own, whose classes come with the model */
    struct family_key absent[FAMILY_KEYS]; /* what keys are that a config.json leaves out; up to a NULL */
};

/* All rows, the first that can say all of a model being the one that is written. NULL behind the last. */
const struct family *family_row(int i);

/* The row of a model_type; NULL where there is none. */
const struct family *family_of(const char *model_type);

/* All model_types in words: "llama, mistral or gdn". */
const char *family_words(void);

#endif
