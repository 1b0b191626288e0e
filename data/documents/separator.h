/* The token that stands behind each document. */
#ifndef GDN_DOCUMENTS_SEPARATOR_H
#define GDN_DOCUMENTS_SEPARATOR_H

#include "data/tokenizer/carried.h"

/* Of the name that the user gives (NULL: none), else `eos_token` of the tokenizer's configuration, else of
 * `bytes` <separator>; −1 where there is none. GDN_INPUT where a name that is given, or that the
 * configuration has, is no token. */
int separator_find(const struct tokenizer *tokenizer, const struct carried *carried, const char *given,
                   int32_t *out);

/* The token that a text is begun with where nothing is given to begin it: `bos_token` of the tokenizer's
 * configuration, else the separator; −1 where there is none. GDN_INPUT as above. */
int separator_find_first(const struct tokenizer *tokenizer, const struct carried *carried, int32_t *out);

#endif
