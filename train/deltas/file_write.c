/* Making files of stored differences in memory, and bringing them to disk. */
#include "data/hdf5/h5.h"
#include "data/hdf5/lock.h"
#include "kernels/base/status.h"
#include "kernels/base/write_whole.h"
#include "train/deltas/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers are stored as memory has them, little-endian");

enum {
    FORMAT_VERSION = 1,
    BESIDES = 8192, /* bytes of a record, and of a file, besides what it holds, at most */
};

#ifdef GDN_DOUBLE
#define REAL_TYPE H5T_NATIVE_DOUBLE
#else
#define REAL_TYPE H5T_NATIVE_FLOAT
#endif

/* HDF5's driver for files in memory looks for a file of the name first: there can be none of this one. */
static const char NO_FILE[] = "/dev/null/differences";

/* ------------------------------------------------------------------------------------------ the image */

struct image {
    char name[64]; /* for messages */
    hid_t file;
    hid_t groups,
        datasets; /* creation properties: without times, so that the same content gives the same bytes */
};

/* A dataset of `ndim` lengths, with its checksum. */
static int write_dataset(const struct image *image, hid_t group, const char *name, int ndim,
                         const hsize_t shape[2], hid_t type, const void *elements) {
    size_t bytes = H5Tget_size(type);
    for (int i = 0; i < ndim; i++) bytes *= shape[i];
    hid_t space = H5Screate_simple(ndim, shape, NULL);
    hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, image->datasets, H5P_DEFAULT);
    int status = 0;
    if (dataset < 0 || H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements) < 0)
        status = h5_fail(GDN_INTERNAL, image->name, "dataset %s cannot be written", name);
    if (!status) status = h5_write_sum(dataset, image->name, "xxh3", XXH3_64bits(elements, bytes));
    if (dataset >= 0) H5Dclose(dataset);
    H5Sclose(space);
    return status;
}

static int write_shape(const struct image *image, hid_t group, const struct delta_record *r) {
    const int64_t shape[3] = {r->batch, r->length, r->factors.D};
    hid_t space = H5Screate_simple(1, &(hsize_t){3}, NULL);
    hid_t attribute = H5Acreate2(group, "original_shape", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    int status = 0;
    if (attribute < 0 || H5Awrite(attribute, H5T_NATIVE_INT64, shape) < 0)
        status = h5_fail(GDN_INTERNAL, image->name, "attribute original_shape cannot be written");
    if (attribute >= 0) H5Aclose(attribute);
    H5Sclose(space);
    return status;
}

static int write_group(const struct image *image, hid_t group, const struct delta_record *r) {
    const struct factors *f = &r->factors;
    const hsize_t T = (hsize_t)f->T, D = (hsize_t)f->D, rank = (hsize_t)f->rank;
    TRY(write_dataset(image, group, "U", 2, (const hsize_t[]){T, rank}, REAL_TYPE, f->u));
    TRY(write_dataset(image, group, "sigma", 1, (const hsize_t[]){rank, 1}, REAL_TYPE, f->sigma));
    TRY(write_dataset(image, group, "Vt", 2, (const hsize_t[]){rank, D}, REAL_TYPE, f->vt));
    TRY(write_dataset(image, group, "gate_histogram", 1, (const hsize_t[]){DELTA_BINS, 1}, H5T_NATIVE_INT64,
                      r->gate_histogram));
    TRY(write_shape(image, group, r));
    TRY(h5_write_int(group, image->name, "distance", r->distance));
    TRY(h5_write_int(group, image->name, "source", r->source));
    TRY(h5_write_int(group, image->name, "rank", f->rank));
    TRY(h5_write_double(group, image->name, "relative_error", f->error));
    TRY(h5_write_double(group, image->name, "norm", f->norm));
    TRY(h5_write_double(group, image->name, "gate_mean", r->gate_mean));
    TRY(h5_write_double(group, image->name, "gate_deviation", r->gate_deviation));
    TRY(h5_write_double(group, image->name, "gate_least", r->gate_least));
    return h5_write_double(group, image->name, "gate_most", r->gate_most);
}

static int write_record(const struct image *image, const struct delta_record *record) {
    char name[32];
    snprintf(name, sizeof name, "distance_%d", record->distance);
    hid_t group = H5Gcreate2(image->file, name, H5P_DEFAULT, image->groups, H5P_DEFAULT);
    if (group < 0) return h5_fail(GDN_INTERNAL, image->name, "group %s cannot be created", name);
    int status = write_group(image, group, record);
    H5Gclose(group);
    return status;
}

static int write_records(const struct image *image, const struct delta_record *record, int count) {
    TRY(h5_write_int(image->file, image->name, "format_version", FORMAT_VERSION));
    TRY(h5_write_int(image->file, image->name, "step", record->step));
    TRY(h5_write_int(image->file, image->name, "layer", record->layer));
    for (int i = 0; i < count; i++) TRY(write_record(image, &record[i]));
    return 0;
}

/* The memory of HDF5's file is kept when it closes the file, instead of a copy before: H5Fget_file_image of
 * HDF5 1.10 clears flags in the first block and leaves its checksum as it was. */
static void *take_memory(size_t size, H5FD_file_image_op_t op, void *kept) {
    (void)op, (void)kept;
    return malloc(size);
}

static void *resize_memory(void *memory, size_t size, H5FD_file_image_op_t op, void *kept) {
    (void)op, (void)kept;
    return realloc(memory, size);
}

static herr_t free_memory(void *memory, H5FD_file_image_op_t op, void *kept) {
    if (op == H5FD_FILE_IMAGE_OP_FILE_CLOSE)
        *(void **)kept = memory;
    else
        free(memory);
    return 0;
}

static void *same_kept(void *kept) {
    return kept;
}

static herr_t leave_kept(void *kept) {
    (void)kept;
    return 0;
}

/* Access to a file in memory, which *kept will point to; `max` bytes are taken at once. */
static hid_t access_to_memory(void **kept, long max) {
    hid_t access = h5_access();
    H5FD_file_image_callbacks_t calls = {.image_malloc = take_memory,
                                         .image_realloc = resize_memory,
                                         .image_free = free_memory,
                                         .udata_copy = same_kept,
                                         .udata_free = leave_kept,
                                         .udata = kept};
    H5Pset_fapl_core(access, (size_t)max, false);
    H5Pset_file_image_callbacks(access, &calls);
    return access;
}

/* Closes the file, of `bytes` bytes. Its length is asked of H5Fget_file_image, which knows of no padding. */
static int finish(const struct image *image, size_t *bytes) {
    ssize_t size = H5Fflush(image->file, H5F_SCOPE_LOCAL) < 0 ? -1 : H5Fget_file_image(image->file, NULL, 0);
    int status = size > 0 ? 0 : h5_fail(GDN_INTERNAL, image->name, "cannot be finished in memory");
    if (H5Fclose(image->file) < 0 && !status)
        status = h5_fail(GDN_INTERNAL, image->name, "cannot be closed in memory");
    if (!status) *bytes = (size_t)size;
    return status;
}

long delta_file_max(long count, long T, long D, long rank) {
    return BESIDES + count * ((T + 1 + D) * rank * (long)sizeof(real) + BESIDES);
}

int delta_file_image(const struct delta_record *record, int count, void **image, size_t *bytes) {
    HDF5_HOLD();
    h5_quiet();
    *image = NULL, *bytes = 0;
    long max = 0;
    for (int i = 0; i < count; i++)
        max += delta_file_max(1, record[i].factors.T, record[i].factors.D, record[i].factors.rank);
    hid_t access = access_to_memory(image, max), creation = H5Pcreate(H5P_FILE_CREATE);
    struct image m = {.groups = H5Pcreate(H5P_GROUP_CREATE), .datasets = H5Pcreate(H5P_DATASET_CREATE)};
    snprintf(m.name, sizeof m.name, "the file of step %lld, layer %d", (long long)record->step,
             record->layer);
    H5Pset_obj_track_times(creation, false);
    H5Pset_obj_track_times(m.groups, false);
    H5Pset_obj_track_times(m.datasets, false);
    m.file = H5Fcreate(NO_FILE, H5F_ACC_TRUNC, creation, access);
    int status = m.file < 0 ? h5_fail(GDN_INTERNAL, m.name, "cannot be begun in memory")
                            : write_records(&m, record, count);
    if (m.file >= 0) {
        int finished = finish(&m, bytes);
        if (!status) status = finished;
    }
    void *trimmed = status ? NULL : realloc(*image, *bytes);
    if (trimmed) *image = trimmed;
    if (status) free(*image), *image = NULL;
    H5Pclose(m.datasets);
    H5Pclose(m.groups);
    H5Pclose(creation);
    H5Pclose(access);
    return status;
}

/* ------------------------------------------------------------------------------------------- the disk */

/* Writes and syncs a new file. 0 or errno. */
static int write_synced(int folder, const char *name, const char *bytes, size_t count) {
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int error = fd < 0 ? errno : 0;
    if (!error) error = write_whole(fd, bytes, count);
    if (!error && fsync(fd)) error = errno;
    if (fd >= 0 && close(fd) && !error) error = errno;
    return error;
}

static int sync_directory(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = fsync(fd) ? errno : 0;
    close(fd);
    return error;
}

/* In the open folder of the step. 0 or errno. */
static int write_layer(int folder, int layer, const void *image, size_t bytes) {
    char name[32], temporary[40];
    snprintf(name, sizeof name, "layer_%03d.h5", layer);
    snprintf(temporary, sizeof temporary, ".%s.tmp", name);
    int error = write_synced(folder, temporary, image, bytes);
    if (!error && renameat(folder, temporary, folder, name)) error = errno;
    if (error)
        unlinkat(folder, temporary, 0);
    else if (fsync(folder))
        error = errno;
    return error;
}

int delta_file_write(const char *directory, int64_t step, int layer, const void *image, size_t bytes,
                     char path[4096]) {
    char step_directory[4096], parent[4096];
    int length = snprintf(path, 4096, "%s/step_%08lld/layer_%03d.h5", directory, (long long)step, layer);
    if (length < 0 || length >= 4096) return ENAMETOOLONG;
    snprintf(step_directory, sizeof step_directory, "%.*s", (int)(strrchr(path, '/') - path), path);
    snprintf(parent, sizeof parent, "%s/..", directory);
    if (mkdir(directory, 0777) && errno != EEXIST) return errno;
    if (mkdir(step_directory, 0777) && errno != EEXIST) return errno;
    int folder = open(step_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return errno;
    int error = write_layer(folder, layer, image, bytes);
    close(folder);
    /* Another rank may have made the directories and not have synced them yet. */
    if (!error) error = sync_directory(directory);
    return error ? error : sync_directory(parent);
}
