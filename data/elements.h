/* The integer types tokens are stored as, and their way to the int32 that everything else uses. */
#ifndef GDN_ELEMENTS_H
#define GDN_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

enum element {
    ELEMENT_UINT8,
    ELEMENT_INT8,
    ELEMENT_UINT16,
    ELEMENT_INT16,
    ELEMENT_UINT32,
    ELEMENT_INT32,
    ELEMENT_UINT64,
    ELEMENT_INT64,
    NUM_ELEMENTS
};

size_t element_size(enum element element);      /* bytes */
const char *element_name(enum element element); /* as numpy calls it: "uint16" */

/* Converts `count` elements at `raw`, which need not be aligned, to out [count]. GDN_INPUT where a value does
 * not fit int32; the message names `path`, the position in the file, of which raw[0]'s is `position`, and the
 * value. */
int elements_read(const char *path, long position, enum element element, const void *raw, long count,
                  int32_t *out);

#endif
