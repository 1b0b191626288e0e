/* Writing one checkpoint.h5. */
#include "dist/checkpoint_file.h"
#include "dist/h5.h"
#include "dist/h5_sink.h"
#include "dist/rows.h"
#include "dist/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "checksums are of little-endian numbers, as stored");

#ifdef GDN_DOUBLE
#define STORED H5T_IEEE_F64LE
#define MEMORY H5T_NATIVE_DOUBLE
#else
#define STORED H5T_IEEE_F32LE
#define MEMORY H5T_NATIVE_FLOAT
#endif

enum { METADATA = 2048 }; /* bytes that a dataset takes besides its elements, at most: names, checksum, … */

struct writer {
    const char *path;
    struct h5_sink sink;
    hid_t file;
    hid_t links;   /* creates groups on the way */
    hid_t dataset; /* creation properties */
    real *buffer;  /* [buffer_count] */
    long buffer_count;
    XXH3_state_t *hash;
};

/* Takes the disk space of the file before anything is written, so that a full disk is reported before time is
 * spent. */
static int reserve_space(const char *path, int fd, int64_t bytes) {
    double mib = (double)bytes / 1048576;
    struct rlimit limit;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < (rlim_t)bytes)
        return gdn_fail(GDN_INTERNAL,
                        "%s cannot be written: it needs %.1f MiB and the limit of a file's size is %.1f MiB; "
                        "raise it with ulimit -f",
                        path, mib, (double)limit.rlim_cur / 1048576);
    if (!fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes)) return 0;
    int error = errno;
    if (error == EOPNOTSUPP || error == ENOSYS) { /* some network file systems */
        struct statvfs disk;
        if (fstatvfs(fd, &disk) || disk.f_bavail >= (uint64_t)bytes / disk.f_frsize) return 0;
        error = ENOSPC;
    }
    return gdn_fail(GDN_INTERNAL, "%s cannot be written: %s; it needs %.1f MiB", path, strerror(error), mib);
}

/* Whether everything that HDF5 has written so far has got through. */
static int check_sink(const struct writer *w) {
    if (!w->sink.error) return 0;
    return gdn_fail(GDN_INTERNAL, "%s cannot be written: %s", w->path, strerror(w->sink.error));
}

static int write_blocks(struct writer *w, hid_t dataset, hid_t space, const char *name, const struct row *row,
                        const real *memory) {
    hsize_t width = (hsize_t)row->shape[1];
    long block = w->buffer_count / row->shape[1];
    for (long first = 0; first < row->shape[0]; first += block) {
        long n = row->shape[0] - first < block ? row->shape[0] - first : block;
        rows_pack(row, memory, first, n, w->buffer);
        XXH3_64bits_update(w->hash, w->buffer, (size_t)n * width * sizeof(real));
        hsize_t start[2] = {(hsize_t)first, 0}, count[2] = {(hsize_t)n, width};
        hid_t part = H5Screate_simple(2, count, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        herr_t rc = H5Dwrite(dataset, MEMORY, part, space, H5P_DEFAULT, w->buffer);
        int status =
            rc < 0 ? h5_fail(GDN_INTERNAL, w->path, "dataset %s cannot be written", name) : check_sink(w);
        H5Sclose(part);
        TRY(status);
    }
    return 0;
}

static int close_dataset(const struct writer *w, hid_t dataset, const char *name, int status) {
    if (H5Dclose(dataset) < 0 && !status)
        status = h5_fail(GDN_INTERNAL, w->path, "dataset %s cannot be closed", name);
    return status;
}

/* One tensor as group/layers/3/…, `memory` [row->count]. */
static int write_tensor(struct writer *w, const char *group, const struct row *row, const real *memory) {
    char name[ROWS_NAME];
    rows_dataset_name(row, group, name);
    hsize_t shape[2] = {(hsize_t)row->shape[0], (hsize_t)row->shape[1]};
    hid_t space = H5Screate_simple(row->ndim, shape, NULL);
    hid_t dataset = H5Dcreate2(w->file, name, STORED, space, w->links, w->dataset, H5P_DEFAULT);
    int status;
    if (dataset < 0) {
        status = h5_fail(GDN_INTERNAL, w->path, "dataset %s cannot be created", name);
    } else {
        XXH3_64bits_reset(w->hash);
        status = write_blocks(w, dataset, space, name, row, memory);
        if (!status) status = h5_write_sum(dataset, w->path, "xxh3", XXH3_64bits_digest(w->hash));
        status = close_dataset(w, dataset, name, status);
    }
    H5Sclose(space);
    return status;
}

/* A tensor's step count: one int64 without dimensions, which h5py gives as a number. */
static int write_steps(struct writer *w, const struct row *row, int64_t steps) {
    char name[ROWS_NAME];
    rows_dataset_name(row, "optimizer/step", name);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t dataset = H5Dcreate2(w->file, name, H5T_STD_I64LE, space, w->links, w->dataset, H5P_DEFAULT);
    int status = 0;
    if (dataset < 0 || H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &steps) < 0)
        status = h5_fail(GDN_INTERNAL, w->path, "dataset %s cannot be written", name);
    if (!status) status = h5_write_sum(dataset, w->path, "xxh3", XXH3_64bits(&steps, sizeof steps));
    if (dataset >= 0) status = close_dataset(w, dataset, name, status);
    H5Sclose(space);
    return status;
}

static int write_attributes(struct writer *w, const struct checkpoint_info *info) {
    TRY(h5_write_int(w->file, w->path, "format_version", FORMAT_VERSION));
    TRY(h5_write_int(w->file, w->path, "step", info->step));
    TRY(h5_write_int(w->file, w->path, "samples", info->samples));
    TRY(h5_write_text(w->file, w->path, "config", info->config));
    TRY(h5_write_double(w->file, w->path, "best_loss", info->best_loss));
    return h5_write_double(w->file, w->path, "loss", info->loss);
}

static int write_content(struct writer *w, const struct table *table, const struct state *state,
                         const struct checkpoint_info *info) {
    const struct {
        const char *group;
        const real *memory;
    } parts[] = {{"model", state->weight},
                 {"optimizer/exp_avg", state->exp_avg},
                 {"optimizer/exp_avg_sq", state->exp_avg_sq}};
    int num_parts = state->exp_avg ? 3 : 1;
    for (int p = 0; p < num_parts; p++)
        for (int i = 0; i < table->rows; i++)
            TRY(write_tensor(w, parts[p].group, &table->row[i], parts[p].memory + table->row[i].offset));
    if (state->exp_avg)
        for (int i = 0; i < table->rows; i++) TRY(write_steps(w, &table->row[i], state->steps[i]));
    return write_attributes(w, info);
}

/* Writes the HDF5 file into w->sink. */
static int write_hdf5(struct writer *w, const struct table *table, const struct state *state,
                      const struct checkpoint_info *info) {
    h5_quiet();
    hid_t access = h5_access(), creation = H5Pcreate(H5P_FILE_CREATE),
          driver = h5_sink_select(access, &w->sink);
    H5Pset_userblock(creation, SEAL_BYTES);
    w->file = driver < 0 ? -1 : H5Fcreate(w->path, H5F_ACC_TRUNC, creation, access);
    int status;
    if (w->file < 0) {
        status = h5_fail(GDN_INTERNAL, w->path, "cannot be created");
    } else {
        status = write_content(w, table, state, info);
        if (H5Fclose(w->file) < 0 && !status) status = h5_fail(GDN_INTERNAL, w->path, "cannot be closed");
        if (!status) status = check_sink(w);
    }
    if (driver >= 0) H5FDunregister(driver);
    H5Pclose(creation);
    H5Pclose(access);
    return status;
}

/* Writes into the open, empty file w->sink.fd. */
static int write_open_file(struct writer *w, const struct table *table, const struct state *state,
                           const struct checkpoint_info *info) {
    int groups = state->exp_avg ? 3 : 1;
    int64_t bytes = SEAL_BYTES + (1 << 20) + (int64_t)strlen(info->config);
    for (int i = 0; i < table->rows; i++)
        bytes += groups * (table->row[i].count * (int64_t)sizeof(real) + METADATA) + METADATA;
    TRY(reserve_space(w->path, w->sink.fd, bytes));
    TRY(write_hdf5(w, table, state, info));
    return seal_write(w->path, w->sink.fd);
}

int file_write(const char *path, const struct table *table, const struct state *state,
               const struct checkpoint_info *info) {
    struct writer w = {.path = path, .buffer_count = H5_BLOCK_BYTES / sizeof(real)};
    for (int i = 0; i < table->rows; i++)
        if (table->row[i].shape[1] > w.buffer_count) w.buffer_count = table->row[i].shape[1];
    w.links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(w.links, 1);
    w.dataset = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_time(w.dataset, H5D_FILL_TIME_NEVER); /* every element is written */
    w.buffer = malloc((size_t)w.buffer_count * sizeof(real));
    w.hash = XXH3_createState();
    w.sink.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int status;
    if (w.sink.fd < 0)
        status = gdn_fail(GDN_INTERNAL, "%s cannot be created: %s", path, strerror(errno));
    else if (!w.buffer || !w.hash)
        status = gdn_fail(GDN_INTERNAL, "out of memory for writing %s", path);
    else
        status = write_open_file(&w, table, state, info);
    if (w.sink.fd >= 0 && close(w.sink.fd) && !status)
        status = gdn_fail(GDN_INTERNAL, "%s cannot be closed: %s", path, strerror(errno));
    XXH3_freeState(w.hash);
    free(w.buffer);
    H5Pclose(w.dataset);
    H5Pclose(w.links);
    return status;
}
