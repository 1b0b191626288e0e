/* Where the documents of a token file start, as a list. Private to this room. */
#ifndef GDN_BORDERS_H
#define GDN_BORDERS_H

#include <stdint.h>

/* Document i is the tokens [at[i], at[i + 1]) of the file. */
struct borders {
    int64_t *at; /* [count], the last is the number of tokens; NULL before anything is added */
    long count;
};

/* Appends `count` borders. GDN_INPUT naming the file where they do not begin at 0, do not rise or lie beyond
 * its `tokens`; GDN_INTERNAL without memory. */
int borders_add(struct borders *borders, const char *path, long tokens, const int64_t *at, long count);
/* GDN_INPUT where the last that was added is not the number of tokens. */
int borders_finish(const struct borders *borders, const char *path, long tokens);
void borders_free(struct borders *borders);

/* Adds MARK_DOCUMENT to those of row, tokens [first, first + count) of the file, that documents start with.
 */
void borders_mark(const struct borders *borders, long first, long count, int32_t *row);

#endif
