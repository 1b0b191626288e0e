/* How formats write a stream of text: what their write() is made of. Private to this room and to rows of its
 * table. */
#ifndef GDN_OUTPUT_TOKENS_H
#define GDN_OUTPUT_TOKENS_H

#include "data/output.h"
#include "data/tokens.h"

/* Appends all tokens as uint16. */
int output_tokens(struct output *output, struct tokens *text);

/* GDN_INPUT where the file that is about to be written is one of the documents: a command line with the
 * output's name among them, however it is spelt, is a slip that would cost the document. */
int output_refuse_own_input(const char *path, const struct tokens *text);

/* Writes a format's one file with `fill`, complete or not at all. */
int output_whole(const char *path, int (*fill)(struct output *, struct tokens *), struct tokens *text);

#endif
