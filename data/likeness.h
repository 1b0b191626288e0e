/* What a file is by its own bytes, whatever it is said to be. Private to this room. */
#ifndef GDN_LIKENESS_H
#define GDN_LIKENESS_H

#include "data/format.h"

enum { NO_FORMAT = -1 };

struct likeness {
    const char *what;   /* "an HDF5 file" */
    int format;         /* enum tokens_format that reads it, or NO_FORMAT */
    const char *advice; /* what to do where no format reads it */
    int at;             /* where in the file its mark lies */
    const void *mark;   /* [size] bytes */
    int size;
};

/* What `path` looks like; NULL where nothing is known of its first bytes, as of any text, or it cannot be
 * read. A Megatron pair is known by either file and by its path without suffix. */
const struct likeness *likeness_of(const char *path);

/* GDN_INPUT where `path` is plainly something else than `format`; the message tells what it is, and what to
 * do. */
int likeness_verify(const char *path, const struct token_format *format);

#endif
