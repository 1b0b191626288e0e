/* Bytes that come piece by piece, printed as UTF-8: a character that is not whole yet waits for the rest of
 * it, and what is none is U+FFFD. */
#ifndef GDN_UTF8_STREAM_H
#define GDN_UTF8_STREAM_H

#include <stdio.h>

#include "data/tokenizer/text.h"

/* Zeros are an empty one. */
struct utf8_stream {
    struct text waiting;
};

/* Prints what is whole, once `bytes` are behind what waits. GDN_INTERNAL without memory. */
int utf8_stream_put(struct utf8_stream *stream, const char *bytes, size_t length, FILE *out);
/* Prints what still waits, and frees all. */
int utf8_stream_end(struct utf8_stream *stream, FILE *out);

#endif
