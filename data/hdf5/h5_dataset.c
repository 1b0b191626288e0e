/* Datasets, read block by block, and their checksums. */
#include "data/hdf5/sum.h"
#include "data/hdf5/h5.h"
#include "data/hdf5/lock.h"
#include "kernels/base/real.h"
#include "kernels/base/status.h"

#include <stdlib.h>
#include <xxhash.h>

/* Which checksum the dataset carries. */
static int find_sum(struct h5_dataset *d) {
    bool placed, xxh3;
    TRY(h5_has_attribute(d->id, d->path, "placed_sum", &placed));
    TRY(h5_has_attribute(d->id, d->path, "xxh3", &xxh3));
    d->kind = placed ? SUM_PLACED : xxh3 ? SUM_XXH3 : SUM_NONE;
    if (d->kind == SUM_NONE) return 0;
    if (placed && d->element != 1 && d->element != 4 && d->element != 8)
        return gdn_fail(GDN_INPUT, "%s: dataset %s has a checksum of numbers of other than %zu bytes",
                        d->path, d->name, d->element);
    return h5_read_sum(d->id, d->path, placed ? "placed_sum" : "xxh3", &d->sum);
}

/* HDF5 1.10 copies elements beyond the end of a compact dataset that has fewer bytes than its shape says, and
 * makes up those of one in a piece, however many, where it has none. Chunks and files that are joined it does
 * look after. */

/* Bytes of the elements that a virtual dataset has from others; the rest would be zeros without end. */
static hsize_t joined_bytes(const struct h5_dataset *d, hid_t how) {
    size_t parts = 0;
    hsize_t elements = 0;
    if (H5Pget_virtual_count(how, &parts) < 0) return 0;
    for (size_t i = 0; i < parts; i++) {
        hid_t part = H5Pget_virtual_vspace(how, i);
        hssize_t count = part >= 0 ? H5Sget_select_npoints(part) : 0;
        if (part >= 0) H5Sclose(part);
        if (count > 0) elements += (hsize_t)count;
    }
    return elements * d->element;
}

static int check_storage(const struct h5_dataset *d) {
    hid_t how = H5Dget_create_plist(d->id);
    H5D_layout_t layout = how >= 0 ? H5Pget_layout(how) : H5D_LAYOUT_ERROR;
    bool elsewhere = how >= 0 && H5Pget_external_count(how) != 0;
    hsize_t joined = layout == H5D_VIRTUAL ? joined_bytes(d, how) : 0;
    if (how >= 0) H5Pclose(how);
    if (layout < 0 || elsewhere)
        return gdn_fail(GDN_INPUT,
                        "%s: dataset %s keeps its elements in other files or in a way that is unknown",
                        d->path, d->name);
    hsize_t line = d->shape[1] * d->element,
            bytes = layout == H5D_VIRTUAL ? joined : H5Dget_storage_size(d->id);
    if (layout == H5D_CHUNKED || !line || d->shape[0] <= bytes / line) return 0;
    return gdn_fail(GDN_INPUT, "%s: dataset %s has the shape [%llu, %llu], but only %llu bytes of elements",
                    d->path, d->name, (unsigned long long)d->shape[0], (unsigned long long)d->shape[1],
                    (unsigned long long)bytes);
}

/* HDF5 1.10 converts numbers by the places of their bits, and writes beyond the element where these lie
 * outside. */
static bool bits_are_inside(const struct h5_dataset *d) {
    size_t bits = 8 * d->element, sign, exponent, exponent_bits, mantissa, mantissa_bits;
    int offset = H5Tget_offset(d->type);
    size_t precision = H5Tget_precision(d->type);
    if (offset < 0 || precision < 1 || precision > bits || (size_t)offset > bits - precision) return false;
    if (d->integer) return true;
    if (H5Tget_fields(d->type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) return false;
    return sign < bits && exponent < bits && mantissa < bits && exponent_bits >= 1 && exponent_bits < 32 &&
           mantissa_bits >= 1 && exponent_bits <= bits - exponent && mantissa_bits <= bits - mantissa;
}

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
    if (d->element < 1 || d->element > (d->integer ? sizeof(int64_t) : sizeof(long double)))
        return gdn_fail(GDN_INPUT, "%s: dataset %s holds numbers of %zu bytes, which is no usual width",
                        d->path, d->name, d->element);
    size_t widest = d->element > sizeof(double) ? d->element : sizeof(double);
    if (d->shape[1] > (1u << 30) / widest || d->shape[0] > (hsize_t)1 << 60)
        return gdn_fail(GDN_INPUT, "%s: dataset %s has the shape [%llu, %llu], which is too large", d->path,
                        d->name, (unsigned long long)d->shape[0], (unsigned long long)d->shape[1]);
    if (!bits_are_inside(d))
        return gdn_fail(GDN_INPUT, "%s: dataset %s holds numbers whose bits lie beyond their bytes", d->path,
                        d->name);
    TRY(check_storage(d));
    return find_sum(d);
}

int h5_dataset_open(hid_t file, const char *path, const char *name, struct h5_dataset *out) {
    HDF5_HOLD();
    *out = (struct h5_dataset){.path = path, .name = name, .type = -1, .shape = {1, 1}};
    out->id = H5Dopen2(file, name, H5P_DEFAULT);
    if (out->id < 0) return h5_fail(GDN_INPUT, path, "dataset %s cannot be opened", name);
    int status = describe(out);
    if (status) h5_dataset_close(out);
    return status;
}

void h5_dataset_close(struct h5_dataset *dataset) {
    HDF5_HOLD();
    if (dataset->type >= 0) H5Tclose(dataset->type);
    H5Dclose(dataset->id);
}

static int read_rectangle(const struct h5_dataset *d, const long at[2], const long size[2], void *buffer) {
    HDF5_HOLD();
    hsize_t start[2] = {(hsize_t)at[0], (hsize_t)at[1]}, count[2] = {(hsize_t)size[0], (hsize_t)size[1]};
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

int h5_dataset_each(const struct h5_dataset *d, const long at[2], const long size[2], h5_take_block *take,
                    void *context) {
    size_t widest = d->element > sizeof(double) ? d->element : sizeof(double);
    size_t line = (size_t)(size[1] ? size[1] : 1) * widest;
    long block = H5_BLOCK_BYTES / line ? (long)(H5_BLOCK_BYTES / line) : 1;
    if (block > size[0]) block = size[0];
    void *buffer = malloc((size_t)block * line + 1);
    if (!buffer)
        return gdn_fail(GDN_INTERNAL, "out of memory for reading dataset %s of %s", d->name, d->path);
    int status = 0;
    for (long first = 0; first < size[0] && !status; first += block) {
        long n = size[0] - first < block ? size[0] - first : block;
        long block_at[2] = {at[0] + first, at[1]}, block_size[2] = {n, size[1]};
        status = read_rectangle(d, block_at, block_size, buffer);
        if (!status) status = take(context, d, block_at, block_size, buffer);
    }
    free(buffer);
    return status;
}

uint64_t h5_dataset_sum(const struct h5_dataset *d, const long at[2], const long size[2],
                        const void *buffer) {
    long width = (long)d->shape[1], lines = size[0], length = size[1];
    if (length == width) length *= lines, lines = 1; /* consecutive elements */
    uint64_t sum = 0;
    for (long r = 0; r < lines; r++)
        sum += sum_elements((const char *)buffer + (size_t)(r * length) * d->element, d->element, length,
                            (uint64_t)((at[0] + r) * width + at[1]), 1);
    return sum;
}

int h5_dataset_to_real(const struct h5_dataset *d, long count, void *buffer) {
    HDF5_HOLD();
    if (H5Tconvert(d->type, H5_REAL_MEMORY, (size_t)count, buffer, NULL, H5P_DEFAULT) < 0)
        return h5_fail(GDN_INPUT, d->path, "dataset %s cannot be converted to " GDN_REAL_NAME, d->name);
    return 0;
}

static int take_hash(void *hash, const struct h5_dataset *d, const long at[2], const long size[2],
                     void *buffer) {
    (void)at;
    XXH3_64bits_update(hash, buffer, (size_t)(size[0] * size[1]) * d->element);
    return 0;
}

int h5_dataset_damaged(const char *path, const char *name) {
    return gdn_fail(GDN_INPUT, "%s is damaged: dataset %s does not match its checksum", path, name);
}

int h5_dataset_verify_xxh3(const struct h5_dataset *d) {
    const long at[2] = {0, 0}, size[2] = {(long)d->shape[0], (long)d->shape[1]};
    XXH3_state_t *hash = XXH3_createState();
    if (!hash) return gdn_fail(GDN_INTERNAL, "out of memory for reading dataset %s of %s", d->name, d->path);
    XXH3_64bits_reset(hash);
    int status = h5_dataset_each(d, at, size, take_hash, hash);
    if (!status && XXH3_64bits_digest(hash) != d->sum) status = h5_dataset_damaged(d->path, d->name);
    XXH3_freeState(hash);
    return status;
}
