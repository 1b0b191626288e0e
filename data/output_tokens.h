/* How formats write a stream of tokens: what their write() is made of. Private to this room and to rows of
 * its table. */
#ifndef GDN_OUTPUT_TOKENS_H
#define GDN_OUTPUT_TOKENS_H

#include <stdbool.h>

#include "data/borders.h"
#include "data/elements.h"
#include "data/output.h"
#include "data/tokens.h"

/* What is to be written. */
struct written_tokens {
    struct tokens *tokens;     /* the stream */
    const char *const *inputs; /* [num_inputs] files that it was made of, which are not to be replaced */
    int num_inputs;
    enum element
        element; /* what they are kept as: ELEMENT_UINT16, or ELEMENT_UINT32 where a vocabulary needs it */
    bool masked; /* with what counts in the loss, of a format that has `counted` */
    uint64_t tokenizer; /* XXH3 of its file, of a format that says so; 0: bytes */
    long documents;
    const int64_t *ends; /* [documents] where each ends in the stream */
    bool separated;      /* each that another follows ends with a separator */
    int32_t closing; /* what a format that closes each document adds to the last, which nothing closes; −1:
                        nothing */
};

/* Where the documents start, with the number of tokens behind the last: a separator belongs to the document
 * that it opens, the last one, which opens none, to the one before it; documents without a token are left
 * out. GDN_INTERNAL without memory. */
int output_borders(const struct written_tokens *written, struct borders *out);

/* Appends all tokens; which of them count, a byte each. */
int output_tokens(struct output *output, const struct written_tokens *written);
int output_counted(struct output *output, const struct written_tokens *written);

/* GDN_INPUT where the file that is about to be written is one of the documents: a command line with the
 * output's name among them, however it is spelt, is a slip that would cost the document. */
int output_refuse_own_input(const char *path, const struct written_tokens *written);

/* Writes a format's one file with `fill`, complete or not at all. */
int output_whole(const char *path, int (*fill)(struct output *, const struct written_tokens *),
                 const struct written_tokens *written);

#endif
