/* What a file is by its own bytes, whatever it is said to be. Private to this room. */
#ifndef GDN_LIKENESS_H
#define GDN_LIKENESS_H

#include "data/format.h"

struct likeness {
    const char *what;                  /* "an HDF5 file"; NULL: nothing is known of it */
    const struct token_format *format; /* that reads it; NULL: none does */
    const char *advice;                /* what to do then */
};

/* What `path` looks like; nothing is known of the first bytes of any text, or of what cannot be read. A
 * Megatron pair is known by either file and by its path without suffix. */
struct likeness likeness_of(const char *path);

/* GDN_INPUT where `path` is plainly something else than `format`; the message tells what it is, and what to
 * do. */
int likeness_verify(const char *path, const struct token_format *format);

#endif
