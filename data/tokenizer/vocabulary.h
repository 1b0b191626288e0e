/* Token ids and their names, both ways. */
#ifndef GDN_TOKENIZER_VOCABULARY_H
#define GDN_TOKENIZER_VOCABULARY_H

#include <stdbool.h>

#include "data/tokenizer/text.h"

enum { MAX_ID = (1 << 24) - 1 };

/* Zeros are an empty one; free with vocabulary_free. */
struct vocabulary {
    struct text names;
    size_t *start;   /* [end] where the name of an id begins in `names`, */
    int32_t *length; /* [end] and its bytes; −1: no such id */
    long end, room;  /* the greatest id and one */
    long count;      /* ids that there are */
    int32_t *slot;   /* [slots] ids by a hash of their names; −1: free */
    size_t slots;
};

/* Adds an id from 0 to MAX_ID, which is not there yet, under a name that is not either. GDN_INTERNAL without
 * memory. */
int vocabulary_add(struct vocabulary *vocabulary, const char *name, size_t length, int32_t id);
/* −1: no such name. */
int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *name, size_t length);
/* NULL: no such id. */
const char *vocabulary_name(const struct vocabulary *vocabulary, int32_t id, size_t *length);
void vocabulary_free(struct vocabulary *vocabulary);

#endif
