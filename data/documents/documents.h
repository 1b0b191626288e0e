/* Files of documents to token files, by a tokenizer. */
#ifndef GDN_DOCUMENTS_H
#define GDN_DOCUMENTS_H

#include "data/format.h"
#include "data/tokenizer/carried.h"

/* Processes that share the work: what they need of each other. Calls are collective, but for abort. */
struct documents_ranks {
    int rank, size;
    void *input; /* handed to each call */
    /* Returns a failure of any to all, with its words. */
    int (*agree)(void *input, int status);
    /* Replaces the others' bytes by those of rank 0. */
    int (*broadcast)(void *input, void *bytes, long count);
    /* Returns when all have come, and calls tick now and then until then. */
    int (*wait)(void *input, void (*tick)(void *), void *tick_input);
    /* Ends all, with the words of the recorded failure. */
    void (*abort)(void *input, int status);
};

struct documents_options {
    const char *output, *option; /* and what messages call it: "--output" */
    const struct token_format *format;
    const struct carried *tokenizer;
    const char *separator; /* the token behind each document; NULL: documents_separator's */
    const char *field;     /* of lines of JSON */
    const char
        *messages; /* a template (conversation.h): what lines have under `field` are messages; NULL: text */
    struct path_list files;
    /* Told when the work begins, and about once a second, how many of all bytes are read, by all ranks and
     * before this start; may be NULL. */
    void (*progress)(void *input, long done, long all);
    void *input;
    const struct documents_ranks *ranks; /* NULL: this process does all */
};

/* Of rank 0 alone. */
struct documents_written {
    long documents, tokens, bytes; /* bytes: of the documents' texts */
    bool separated;                /* whether a token stands behind each document */
};

/* Writes each document as the tokens of its text, without those that the tokenizer sets around a text, and
 * the separator: --separator's, else that which a tokenizer_config.json beside the tokenizer's file calls
 * `eos_token`, else none (for `bytes`: <separator>). With `messages` a document is a conversation, of which
 * the file also says that only answers count, in a format that can. Encodes on all threads of all ranks,
 * which see the same files; what is written does not depend on their number. Complete or absent, as
 * tokens_write; what is done is kept in the folder .NAME.pieces beside the output after a failure or a kill,
 * and the next start goes on from there, with what is of the same files, tokenizer and options. Collective
 * over options->ranks, where a rank that fails at its own part calls their abort. GDN_INPUT for what cannot
 * be read or written. */
int documents_write(const struct documents_options *options, struct documents_written *out);

#endif
