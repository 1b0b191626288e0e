/* How often each word stands in documents. Private to this folder. */
#ifndef GDN_DOCUMENTS_WORDS_H
#define GDN_DOCUMENTS_WORDS_H

#include "data/paths.h"
#include "data/tokenizer/pattern.h"
#include "data/tokenizer/vocabulary.h"

/* Zeros are none. */
struct words {
    struct vocabulary names; /* numbers from 0, in any order, and the words */
    long *count;             /* [names.end] */
    long room;
};

/* Whose words, and who is told how many of all bytes are read; `progress` may be NULL. */
struct words_source {
    const struct path_list *files;
    const char *field; /* of lines of JSON */
    void (*progress)(void *input, long done, long all);
    void *input;
};

/* Counts the words that the pattern finds in all documents, on all threads. words_free, whatever this
 * returns. */
int words_count(const struct words_source *source, const struct pattern *pattern, struct words *out);
void words_free(struct words *words);

#endif
