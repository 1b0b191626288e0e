/* Datasets, read block by block with their checksum. */
#include "dist/h5.h"
#include "kernels/base/status.h"

#include <stdlib.h>

/* Shape, element and checksum of an open dataset. */
static int describe(struct h5_dataset *d) {
    hid_t space = H5Dget_space(d->id);
    d->ndim = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    if (d->ndim >= 0 && d->ndim <= 2) H5Sget_simple_extent_dims(space, d->shape, NULL);
    if (space >= 0) H5Sclose(space);
    d->type = H5Dget_type(d->id);
    if (d->ndim < 0 || d->type < 0) return h5_fail(GDN_INPUT, d->path, "dataset %s cannot be read", d->name);
    if (d->ndim > 2)
        return gdn_fail(GDN_INPUT, "%s: dataset %s has %d dimensions, at most 2 are expected", d->path,
                        d->name, d->ndim);

    H5T_class_t kind = H5Tget_class(d->type);
    if (kind != H5T_FLOAT && kind != H5T_INTEGER)
        return gdn_fail(GDN_INPUT, "%s: dataset %s does not hold numbers", d->path, d->name);
    d->integer = kind == H5T_INTEGER;
    d->element = H5Tget_size(d->type);
    size_t widest = d->element > sizeof(double) ? d->element : sizeof(double);
    if (d->shape[1] > (1u << 30) / widest || d->shape[0] > (hsize_t)1 << 60)
        return gdn_fail(GDN_INPUT, "%s: dataset %s has the shape [%llu, %llu], which is too large", d->path,
                        d->name, (unsigned long long)d->shape[0], (unsigned long long)d->shape[1]);
    size_t row_bytes = (d->shape[1] ? d->shape[1] : 1) * widest;
    d->block_rows = H5_BLOCK_BYTES / row_bytes ? (long)(H5_BLOCK_BYTES / row_bytes) : 1;
    d->block_bytes = (size_t)d->block_rows * row_bytes;

    d->has_sum = h5_has_attribute(d->id, "xxh3");
    return d->has_sum ? h5_read_sum(d->id, d->path, "xxh3", &d->sum) : 0;
}

int h5_dataset_open(hid_t file, const char *path, const char *name, struct h5_dataset *out) {
    *out = (struct h5_dataset){.path = path, .name = name, .type = -1, .shape = {1, 1}};
    out->id = H5Dopen2(file, name, H5P_DEFAULT);
    if (out->id < 0) return h5_fail(GDN_INPUT, path, "dataset %s cannot be opened", name);
    int status = describe(out);
    if (status) h5_dataset_close(out);
    return status;
}

void h5_dataset_close(struct h5_dataset *dataset) {
    if (dataset->type >= 0) H5Tclose(dataset->type);
    H5Dclose(dataset->id);
}

int h5_dataset_read(const struct h5_dataset *d, long first, long n, void *buffer) {
    hsize_t start[2] = {(hsize_t)first, 0}, count[2] = {(hsize_t)n, d->shape[1]};
    hid_t space = H5Dget_space(d->id), memory = H5Screate_simple(2, count, NULL);
    bool failed = space < 0 || memory < 0;
    if (!failed && d->ndim > 0)
        failed = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0;
    if (!failed) failed = H5Dread(d->id, d->type, memory, space, H5P_DEFAULT, buffer) < 0;
    int status = failed ? h5_fail(GDN_INPUT, d->path, "dataset %s cannot be read", d->name) : 0;
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    return status;
}

static int each_block(const struct h5_dataset *d, h5_take_block *take, void *context, XXH3_state_t *hash,
                      void *buffer) {
    long rows = (long)d->shape[0];
    for (long first = 0; first < rows; first += d->block_rows) {
        long n = rows - first < d->block_rows ? rows - first : d->block_rows;
        TRY(h5_dataset_read(d, first, n, buffer));
        XXH3_64bits_update(hash, buffer, (size_t)n * d->shape[1] * d->element);
        if (take) TRY(take(context, d, first, n, buffer));
    }
    if (d->has_sum && XXH3_64bits_digest(hash) != d->sum)
        return gdn_fail(GDN_INPUT, "%s is damaged: dataset %s does not match its checksum", d->path, d->name);
    return 0;
}

int h5_dataset_each(const struct h5_dataset *d, h5_take_block *take, void *context) {
    void *buffer = malloc(d->block_bytes);
    XXH3_state_t *hash = XXH3_createState();
    int status;
    if (!buffer || !hash) {
        status = gdn_fail(GDN_INTERNAL, "out of memory for reading dataset %s of %s", d->name, d->path);
    } else {
        XXH3_64bits_reset(hash);
        status = each_block(d, take, context, hash, buffer);
    }
    XXH3_freeState(hash);
    free(buffer);
    return status;
}
