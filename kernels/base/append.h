/* Texts that are put together piece by piece. */
#ifndef GDN_APPEND_H
#define GDN_APPEND_H

#include <stddef.h>

/* Writes behind the `used` characters of text [size] and returns how many there are then. What does not fit
 * is cut off, and all that comes after it. */
size_t text_append(char *text, size_t size, size_t used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
