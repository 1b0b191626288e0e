/* Safetensors, the files that Hugging Face's programs keep weights in: 8 bytes that say how long the header
 * is (little-endian), the header, a JSON object of name: {dtype, shape, data_offsets: [begin, end]} and
 * perhaps "__metadata__", and then the tensors' elements, to which the offsets refer, without gaps. Files are
 * mapped and never read whole; whatever is wrong with one is found when it is opened, before any element is
 * read.
 *
 * A model is one file, model.safetensors, or several, which model.safetensors.index.json joins. */
#ifndef GDN_SAFETENSORS_H
#define GDN_SAFETENSORS_H

#include <stdint.h>

#include "data/mapping.h"
#include "data/safetensors/dtype.h"

enum { TENSOR_DIMENSIONS = 8 };

struct stored_tensor {
    const char *name; /* owned by its file; printable, at most TENSOR_NAME bytes */
    const struct dtype *dtype;
    int ndim;
    long shape[TENSOR_DIMENSIONS];
    const uint8_t *elements; /* as stored, row-major; at a multiple of their size in the file */
    size_t bytes;
    const char *path; /* of its file, for messages */
};

enum { TENSOR_NAME = 200 };

/* One open file. */
struct safetensors {
    char *path;
    struct mapping map;
    char *names; /* what the tensors' names point into */
    int count;
    struct stored_tensor *tensor; /* [count] in the order of their names */
};

/* Opens and checks a file. GDN_INPUT with one message that names it, and the tensor, where it is no
 * safetensors file or anything about its header is wrong: overlaps, gaps, lengths that do not fit, a name
 * twice, an unknown dtype, offsets that are no multiple of an element. On failure nothing is open. */
int safetensors_open(const char *path, struct safetensors *out);
void safetensors_close(struct safetensors *file);

/* All tensors of a model in a folder. */
struct safetensors_folder {
    int files;
    struct safetensors *file; /* [files] */
    int count;
    const struct stored_tensor **tensor; /* [count] of all files, in the order of their names */
};

/* Opens model.safetensors, or the files that model.safetensors.index.json names: each must have exactly the
 * tensors that the index says. GDN_INPUT as above. */
int safetensors_folder_open(const char *directory, struct safetensors_folder *out);
void safetensors_folder_close(struct safetensors_folder *folder);

/* The tensor of a name, NULL where there is none. */
const struct stored_tensor *safetensors_find(const struct safetensors_folder *folder, const char *name);

/* Elements [first, first + n) of a tensor of weights. The pages that they lie on are let go of, so that
 * reading a large file through does not fill memory with it. */
void safetensors_read(const struct stored_tensor *tensor, size_t first, size_t n, real *out);

#endif
