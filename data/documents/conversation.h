/* Conversations, lists of messages with a role and a content, to tokens: named templates say what is written
 * around each message, as the chat templates of published models do, and which of it counts. Private to this
 * folder, to the command line and to configurations. */
#ifndef GDN_DOCUMENTS_CONVERSATION_H
#define GDN_DOCUMENTS_CONVERSATION_H

#include <jansson.h>

#include "data/tokenizer/tokenizer.h"

/* A message becomes `before` role `between` content `end` `after`; `first` stands before the first. */
struct conversation_template {
    const char *name;
    const char *first, *before, *between;
    const char *end; /* the token that ends a message */
    const char *after;
    bool trim;             /* contents lose white space at both ends */
    const char *tokens[4]; /* that are in these, and must be the tokenizer's; NULL behind the last */
};

/* The row of a name, or NULL. The names of all, "a|b"; and "none|a|b", the choices of data.messages, and the
 * row of each, NULL of none. */
const struct conversation_template *conversation_template_named(const char *name);
const char *conversation_template_words(void);
const char *conversation_template_choices(void);
const struct conversation_template *conversation_template_chosen(int choice);

/* Whether the tokenizer has the template's tokens, and takes messages apart where they begin. GDN_INPUT
 * naming the token. */
int conversation_verify(const struct conversation_template *template, const struct tokenizer *tokenizer,
                        struct encoder *encoder);

/* Appends the tokens of a list of messages, as the tokenizer has them of the whole text. Only those of the
 * assistant's contents and their end tokens count; others have MARK_UNCOUNTED (kernels/base/marks.h). A token
 * that has characters of a content and of what is before it counts. *bytes: of the contents. GDN_INPUT for
 * what is no list of messages, without place and line, which the caller knows. */
int conversation_encode(const struct conversation_template *template, const struct tokenizer *tokenizer,
                        struct encoder *encoder, const json_t *messages, struct ids *out, long *bytes);

#endif
