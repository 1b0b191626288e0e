/* The inside of struct tokens: files of one format joined to a stream. Private to this room. */
#ifndef GDN_STREAM_H
#define GDN_STREAM_H

#include "data/format.h"

struct tokens {
    const struct token_format *format;
    struct token_file *files; /* [num_files] */
    int num_files;
    /* [num_files + 1] Position in the stream of each file's first token, and the stream's end. */
    long *starts;
};

/* Opens `num_files` files, in that order, as one stream. Copies the paths. Fails like tokens_open. */
int tokens_open_files(const char *const *paths, int num_files, const struct token_format *format,
                      struct tokens **out);

#endif
