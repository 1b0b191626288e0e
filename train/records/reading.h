/* What a person sees while files are read, or something else is done, that takes a while: how far it is and how long it may still take. On
 * a terminal one line that is rewritten, elsewhere a line a minute. */
#ifndef GDN_READING_H
#define GDN_READING_H

#include <stdbool.h>
#include <stdio.h>

struct reading_progress {
    FILE *out;            /* NULL: silent */
    double started, told; /* seconds of a monotonic clock */
    long first;           /* bytes that an earlier start had done; −1: not told yet */
    double merging;       /* when reading_tell_merged was first called, with `first`; 0: not yet */
    bool terminal, standing;
};

void reading_begin(struct reading_progress *progress, FILE *out);
/* `done` bytes of `all` are read; those of the first call by an earlier start, which is told. */
void reading_tell(struct reading_progress *progress, long done, long all);
/* The same of a tokenizer's tokens, of which `done` are there of `all`, when its text is read. */
void reading_tell_merged(struct reading_progress *progress, long done, long all);
/* The same of what takes equally long each, called `what`, of which `done` are done of `all`. */
void reading_tell_each(struct reading_progress *progress, const char *what, long done, long all);
/* Removes the line that stands. */
void reading_end(struct reading_progress *progress);

#endif
