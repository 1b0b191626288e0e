/* What is looked for in a text: a text, or a regular expression as Oniguruma has it. */
#ifndef GDN_TOKENIZER_PATTERN_H
#define GDN_TOKENIZER_PATTERN_H

#include <oniguruma.h>

#include "data/tokenizer/fields.h"

/* Zeros are one that is not open. Read by any number of threads. */
struct pattern {
    char *text; /* [length]; NULL where it is a regular expression */
    size_t length;
    regex_t *regex;
};

/* Of the member `name`: {"String": text} or {"Regex": expression}. pattern_close, whatever this returns. */
int pattern_open(const struct place *place, const json_t *object, const char *name, struct pattern *out);
/* A regular expression of ours. */
int pattern_open_regex(const char *expression, struct pattern *out);
void pattern_close(struct pattern *pattern);

/* A search through a text, match by match. */
struct search {
    const struct pattern *pattern;
    OnigRegion *region; /* a thread's own */
    const char *text;
    size_t length, from, last_end;
    bool any; /* a match was found, which ended at last_end */
};

struct search search_begin(const struct pattern *pattern, OnigRegion *region, const char *text,
                           size_t length);

/* The next match to [*start, *end), and *found whether there is one. Matches do not overlap, and an empty one
 * does not lie at the end of the one before. GDN_INPUT where the expression gives up on the text. */
int search_next(struct search *search, size_t *start, size_t *end, bool *found);

#endif
