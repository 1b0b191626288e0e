/* Writing a model's tensors as safetensors, in as many files as asked for. Each file appears complete or not
 * at all; no more than the block in hand is in memory. */
#ifndef GDN_SAFETENSORS_WRITE_H
#define GDN_SAFETENSORS_WRITE_H

#include <stdint.h>

#include "data/safetensors/dtype.h"

/* A tensor to be written. */
struct tensor_entry {
    const char *name;
    int ndim;
    long shape[2];
};

/* Takes the next `n` of a tensor's elements. Returns a status. */
typedef int tensor_put(void *sink, const real *values, size_t n);

struct safetensors_content {
    int count;
    const struct tensor_entry *entry; /* [count] */
    const struct dtype *dtype;        /* of all */
    int64_t shard; /* bytes of elements a file has at most, but for single larger tensors */
    /* Hands over all elements of an entry, row-major, in pieces of any size. Returns a status. */
    int (*give)(void *context, int entry, tensor_put *put, void *sink);
    void *context;
};

/* Writes model.safetensors, or model-00001-of-0000N.safetensors … and model.safetensors.index.json, into a
 * folder that is there; tensors in the order of their names. The entries may come in any order and are asked
 * for in that of names. GDN_INPUT where a file cannot be written, or a number is beyond the dtype's largest;
 * what `give` returned. What was written before a failure is left. */
int safetensors_write(const char *directory, const struct safetensors_content *content);

#endif
