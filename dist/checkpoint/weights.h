/* Weights alone, tensor by tensor: into a checkpoint from files of another kind, and out of one. No more than
 * a block of a tensor is in memory at a time. */
#ifndef GDN_CHECKPOINT_WEIGHTS_H
#define GDN_CHECKPOINT_WEIGHTS_H

#include "dist/checkpoint/checkpoint.h"

/* Where weights come from. */
struct weight_source {
    const char *name; /* for messages */
    /* Whether it has a tensor. */
    bool (*has)(void *context, const struct row *row);
    /* Lines [first, first + n) of a tensor that it has, row-major, to out [n, row->shape[1]]. */
    int (*read)(void *context, const struct row *row, long first, long n, real *out);
    void *context;
};

/* Lines [first, first + n) of a tensor [n, row->shape[1]], to be used or spoilt. Returns a status. */
typedef int weight_lines(void *context, const struct row *row, long first, long n, real *lines);

/* Reads lines [from, from + size) of a tensor that the source has, block by block, each given to `take`. What
 * `read` or `take` returned; GDN_INTERNAL without memory. */
int weight_source_each(const struct weight_source *source, const struct row *row, long from, long size,
                       weight_lines *take, void *context);

/* GDN_INPUT unless the source has a tensor. */
int weight_source_need(const struct weight_source *source, const struct row *row);

/* Writes a checkpoint.h5 of weights alone (no /optimizer), `global` being the table of the whole model: under
 * another name, with its digest, read back and renamed. One process. GDN_INPUT where it cannot be written or
 * is there already, or a tensor is missing; what `read` returned. Then no file is left. */
int weights_write(const char *path, const struct table *global, const struct checkpoint_info *info,
                  const struct weight_source *source);

/* Fills the weights that a rank holds, as checkpoint_load_initial does from HDF5: tensors of delta
 * connections may be missing and are counted. Moments are left alone. Collective; every rank reads for
 * itself. */
int weights_load(const struct mesh *mesh, const struct checkpoint_content *content,
                 const struct weight_source *source, int *missing);

/* A checkpoint whose weights are read. */
struct weights {
    struct checkpoint checkpoint;
    int64_t file; /* HDF5's */
};

/* Opens a checkpoint.h5, verifying its digest. GDN_INPUT. One process. weights_close. */
int weights_open(const char *path, struct weights *out);
void weights_close(struct weights *weights);

/* Takes `n` elements of a tensor, behind those before. Returns a status. */
typedef int weights_take(void *context, const real *values, size_t n);

/* Reads a tensor from its first element to its last, and verifies its checksum. GDN_INPUT where it is not
 * there, has another shape or is damaged; what `take` returned. */
int weights_read(const struct weights *weights, const struct row *row, weights_take *take, void *context);

/* How many tensors it has. */
int weights_count(const struct weights *weights, int *count);

#endif
