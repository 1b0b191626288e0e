/* The number types that a safetensors file names. Weights are of those that have conversions. */
#ifndef GDN_SAFETENSORS_DTYPE_H
#define GDN_SAFETENSORS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/base/real.h"

struct dtype {
    const char *name; /* in a file's header: "BF16" */
    const char *word; /* in a configuration and for people: "bfloat16" */
    size_t bytes;     /* of an element */
    /* [n] elements as stored, at any address, to out; NULL where it is no type of weights. */
    void (*load)(const void *stored, size_t n, real *out);
    /* The other way, to the nearest, ties to even. Returns how many finite numbers are beyond the type's
     * largest. */
    size_t (*store)(const real *values, size_t n, void *out);
};

/* The row of a header's name, or of a word of weights; NULL where there is none. */
const struct dtype *dtype_named(const char *name);
const struct dtype *dtype_of_word(const char *word);

#endif
