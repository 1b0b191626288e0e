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
    struct tokens *tokens; /* the stream */
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

/* Files that something is made of, which are not to be replaced. */
struct output_inputs {
    const char *option;      /* what messages call the output: "--output" */
    const char *const *path; /* [count] */
    int count;
    const char *what; /* each is: "a document" */
};

/* output_verify and output_refuse_input of an output, before the work: of all files that the format makes
 * of it; of one file. */
int output_tokens_verify(const struct token_format *format, const char *path,
                         const struct output_inputs *inputs);
int output_file_verify(const char *path, const struct output_inputs *inputs);

/* Writes a format's one file with `fill`, complete or not at all. */
int output_whole(const char *path, int (*fill)(struct output *, const struct written_tokens *),
                 const struct written_tokens *written);

#endif
