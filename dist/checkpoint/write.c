/* Making and filling one checkpoint.h5. One rank lets HDF5 lay the file out, with all datasets in one piece
 * each and nothing in them; then every rank writes its elements to their places with system calls. */
#include "dist/checkpoint/file.h"
#include "data/hdf5/sum.h"
#include "data/hdf5/h5.h"
#include "data/hdf5/h5_sink.h"
#include "dist/checkpoint/digest.h"
#include "data/hdf5/lock.h"
#include "kernels/base/write_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "elements are written as memory has them, and stored little-endian");

/* ------------------------------------------------------------------------------------------- making */

struct maker {
    const char *path;
    struct h5_sink sink;
    hid_t driver, file;
    hid_t links;   /* creates groups on the way */
    hid_t dataset; /* creation properties */
};

static int cannot_write(const char *path, int error) {
    return gdn_fail(GDN_INTERNAL, "%s cannot be written: %s", path, strerror(error));
}

int file_verify_limit(const char *path, int64_t bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= (rlim_t)bytes)
        return 0;
    return gdn_fail(GDN_INTERNAL,
                    "%s cannot be written: it needs %.1f MiB and the limit of a file's size is %.1f MiB; "
                    "raise it with ulimit -f",
                    path, (double)bytes / 1048576, (double)limit.rlim_cur / 1048576);
}

/* Takes the disk space of the file before anything is written, so that a full disk is reported before time is
 * spent. */
static int reserve_space(const char *path, int fd, int64_t bytes) {
    if (!fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes)) return 0;
    int error = errno;
    if (error == EOPNOTSUPP || error == ENOSYS) { /* some network file systems */
        struct statvfs disk;
        if (fstatvfs(fd, &disk) || disk.f_bavail >= (uint64_t)bytes / disk.f_frsize) return 0;
        error = ENOSPC;
    }
    return gdn_fail(GDN_INTERNAL, "%s cannot be written: %s; it needs %.1f MiB", path, strerror(error),
                    (double)bytes / 1048576);
}

/* Whether everything that HDF5 has written so far has got through. */
static int check_sink(const struct maker *m) {
    return m->sink.error ? cannot_write(m->path, m->sink.error) : 0;
}

static int close_dataset(const struct maker *m, hid_t dataset, const char *name, int status) {
    if (H5Dclose(dataset) < 0 && !status)
        status = h5_fail(GDN_INTERNAL, m->path, "dataset %s cannot be closed", name);
    return status ? status : check_sink(m);
}

/* Properties of a dataset whose elements are in other files: `pieces` of them. */
static int join_pieces(const struct maker *m, const struct file_dataset *d, const struct file_piece *piece,
                       int pieces, hid_t space, hid_t properties) {
    int status = 0;
    for (int i = 0; i < pieces && !status; i++) {
        hsize_t at[2] = {(hsize_t)piece[i].at[0], (hsize_t)piece[i].at[1]},
                size[2] = {(hsize_t)piece[i].size[0], (hsize_t)piece[i].size[1]};
        char file[FILE_PART_NAME], name[FILE_NAME + 16];
        snprintf(file, sizeof file, "part_%05d.h5", piece[i].node);
        snprintf(name, sizeof name, "/%s/%d", d->name, piece[i].index);
        hid_t source = H5Screate_simple(d->ndim, size, NULL);
        if (source < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, size, NULL) < 0 ||
            H5Pset_virtual(properties, space, file, name, source) < 0)
            status = h5_fail(GDN_INTERNAL, m->path, "dataset %s cannot be joined from its parts", d->name);
        if (source >= 0) H5Sclose(source);
    }
    H5Sselect_all(space);
    return status;
}

/* Where an open dataset's elements are. */
static int find_offset(const struct maker *m, hid_t dataset, const char *name, int64_t *offset) {
    haddr_t at = H5Dget_offset(dataset);
    if (at == HADDR_UNDEF) return h5_fail(GDN_INTERNAL, m->path, "dataset %s has no place in the file", name);
    *offset = (int64_t)at;
    return 0;
}

/* A dataset with its checksum, and with space but no elements, or joined from `pieces`. */
static int make_dataset(struct maker *m, const struct file_dataset *d, const struct file_piece *piece,
                        int pieces, int64_t *offset) {
    HDF5_HOLD();
    hsize_t shape[2] = {(hsize_t)d->shape[0], (hsize_t)d->shape[1]};
    hid_t space = H5Screate_simple(d->ndim, shape, NULL), dataset = -1;
    hid_t properties = pieces ? H5Pcreate(H5P_DATASET_CREATE) : H5Pcopy(m->dataset);
    int status = join_pieces(m, d, piece, pieces, space, properties);
    if (!status) {
        dataset = H5Dcreate2(m->file, d->name, H5_REAL_STORED, space, m->links, properties, H5P_DEFAULT);
        if (dataset < 0) status = h5_fail(GDN_INTERNAL, m->path, "dataset %s cannot be created", d->name);
    }
    H5Pclose(properties);
    H5Sclose(space);
    TRY(status);
    if (!pieces) status = find_offset(m, dataset, d->name, offset);
    if (!status && d->has_sum) status = h5_write_sum(dataset, m->path, "placed_sum", d->sum);
    return close_dataset(m, dataset, d->name, status);
}

static int make_datasets(struct maker *m, const struct file_plan *plan, int64_t *offset) {
    int next = 0;
    for (int i = 0; i < plan->datasets; i++) {
        int first = next;
        while (next < plan->pieces && plan->piece[next].dataset == i) next++;
        TRY(make_dataset(m, &plan->dataset[i], plan->piece ? plan->piece + first : NULL, next - first,
                         &offset[i]));
    }
    return 0;
}

/* A small dataset of n elements as `stored`, with its checksum. */
static int write_small(struct maker *m, const char *name, hid_t stored, hid_t space, const void *elements,
                       long n) {
    hid_t dataset = H5Dcreate2(m->file, name, stored, space, m->links, m->dataset, H5P_DEFAULT);
    int status = 0;
    if (dataset < 0 || H5Dwrite(dataset, stored, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements) < 0)
        status = h5_fail(GDN_INTERNAL, m->path, "dataset %s cannot be written", name);
    if (!status)
        status = h5_write_sum(dataset, m->path, "placed_sum",
                              sum_elements(elements, H5Tget_size(stored), n, 0, 1));
    if (dataset >= 0) status = close_dataset(m, dataset, name, status);
    H5Sclose(space);
    return status;
}

/* A tensor's step count: one int64 without dimensions, which h5py gives as a number. */
static int write_steps(struct maker *m, const struct row *row, int64_t steps) {
    HDF5_HOLD();
    char name[ROWS_NAME];
    rows_dataset_name(row, "optimizer/step", name);
    return write_small(m, name, H5T_STD_I64LE, H5Screate(H5S_SCALAR), &steps, 1);
}

static int write_scales(struct maker *m, const struct file_plan *plan) {
    HDF5_HOLD();
    const hsize_t num_scales = (hsize_t)plan->num_scales;
    if (!num_scales) return 0;
    return write_small(m, FILE_SCALES, H5T_STD_U32LE, H5Screate_simple(1, &num_scales, NULL), plan->scales,
                       plan->num_scales);
}

static int write_spikes(struct maker *m, const struct file_plan *plan) {
    HDF5_HOLD();
    const hsize_t values = (hsize_t)plan->spike_values;
    if (!values) return 0;
    return write_small(m, FILE_SPIKES, H5T_IEEE_F64LE, H5Screate_simple(1, &values, NULL), plan->spikes,
                       plan->spike_values);
}

/* A text as its bytes; NULL: nothing. */
static int write_bytes(struct maker *m, const char *name, const char *text) {
    HDF5_HOLD();
    const hsize_t length = text ? strlen(text) : 0;
    if (!length) return 0;
    return write_small(m, name, H5T_STD_U8LE, H5Screate_simple(1, &length, NULL), text, (long)length);
}

static size_t length_of(const char *text) {
    return text ? strlen(text) : 0;
}

int64_t file_text_bytes(const struct checkpoint_info *info) {
    return (int64_t)(length_of(info->config) + length_of(info->configured) + length_of(info->data) +
                     length_of(info->tokenizer) + length_of(info->tokenizer_config) +
                     length_of(info->pruning));
}

static int write_attributes(struct maker *m, const struct checkpoint_info *info) {
    TRY(h5_write_int(m->file, m->path, "format_version", FORMAT_VERSION));
    TRY(h5_write_int(m->file, m->path, "step", info->step));
    TRY(h5_write_int(m->file, m->path, "samples", info->samples));
    if (info->tokens >= 0) TRY(h5_write_int(m->file, m->path, "tokens", info->tokens));
    TRY(h5_write_text(m->file, m->path, "config", info->config));
    if (info->configured) TRY(h5_write_text(m->file, m->path, "configured", info->configured));
    if (info->data) TRY(h5_write_text(m->file, m->path, "data", info->data));
    TRY(write_bytes(m, FILE_TOKENIZER, info->tokenizer));
    TRY(write_bytes(m, FILE_TOKENIZER_CONFIG, info->tokenizer_config));
    TRY(write_bytes(m, FILE_PRUNING, info->pruning));
    TRY(h5_write_double(m->file, m->path, "best_loss", info->best_loss));
    TRY(h5_write_double(m->file, m->path, "loss", info->loss));
    if (info->evaluation_due) TRY(h5_write_int(m->file, m->path, "evaluation_due", 1));
    if (info->loss_scale == 0) return 0;
    TRY(h5_write_double(m->file, m->path, "loss_scale", info->loss_scale));
    return h5_write_int(m->file, m->path, "loss_scale_good", info->loss_scale_good);
}

static int make_content(struct maker *m, const struct file_plan *plan, int64_t *offset) {
    TRY(make_datasets(m, plan, offset));
    if (plan->steps)
        for (int i = 0; i < plan->global->rows; i++)
            TRY(write_steps(m, &plan->global->row[i], plan->steps[i]));
    TRY(write_scales(m, plan));
    TRY(write_spikes(m, plan));
    if (plan->digests) TRY(h5_write_text(m->file, m->path, FILE_PARTS, plan->digests));
    return plan->info ? write_attributes(m, plan->info) : 0;
}

/* Creates the HDF5 file in m->sink, empty. */
static int create_hdf5(struct maker *m, const struct file_plan *plan) {
    HDF5_HOLD();
    h5_quiet();
    m->links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(m->links, 1);
    m->dataset = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(m->dataset, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(m->dataset, H5D_FILL_TIME_NEVER); /* every element is written */
    hid_t access = h5_access(), creation = H5Pcreate(H5P_FILE_CREATE);
    m->driver = h5_sink_select(access, &m->sink);
    H5Pset_userblock(creation, DIGEST_BYTES);
    if (plan->pieces) H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST); /* virtual datasets */
    H5Pset_alignment(access, 512, sizeof(double)); /* elements at multiples of their size */
    m->file = m->driver < 0 ? -1 : H5Fcreate(m->path, H5F_ACC_TRUNC, creation, access);
    int status = m->file < 0 ? h5_fail(GDN_INTERNAL, m->path, "cannot be created") : 0;
    H5Pclose(creation);
    H5Pclose(access);
    return status;
}

/* Closes what create_hdf5 has opened; returns `status`, or the first failure after it. */
static int close_hdf5(struct maker *m, int status) {
    HDF5_HOLD();
    if (m->file >= 0) {
        if (H5Fclose(m->file) < 0 && !status) status = h5_fail(GDN_INTERNAL, m->path, "cannot be closed");
        if (!status) status = check_sink(m);
    }
    if (m->driver >= 0) H5FDunregister(m->driver);
    H5Pclose(m->dataset);
    H5Pclose(m->links);
    return status;
}

int file_make(const char *path, const struct file_plan *plan, int64_t *offset) {
    struct maker m = {.path = path};
    m.sink.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (m.sink.fd < 0) return gdn_fail(GDN_INTERNAL, "%s cannot be created: %s", path, strerror(errno));
    int status = reserve_space(path, m.sink.fd, plan->bytes);
    if (!status) {
        status = create_hdf5(&m, plan);
        if (!status) status = make_content(&m, plan, offset);
        status = close_hdf5(&m, status);
    }
    if (!status && fsync(m.sink.fd)) status = cannot_write(path, errno);
    if (close(m.sink.fd) && !status) status = cannot_write(path, errno);
    return status;
}

/* ------------------------------------------------------------------------------------------- filling */

struct filler {
    const struct parts *parts;
    const struct file_places *places;
    int fd;
    const char *path;
};

/* Byte of the file at which an element of a part lies, counted from its rectangle's corner. */
static int64_t place_of(const struct filler *f, const struct part *part, long line, long width) {
    const struct rectangle *where = &part->where;
    int64_t element = f->places->own ? line * width : (where->at[0] + line) * width + where->at[1];
    long dataset = f->places->own ? part - f->parts->part : part->dataset;
    return f->places->offset[dataset] + element * (int64_t)sizeof(real);
}

static int fill_block(void *context, const struct part *part, long first, long n, const real *buffer) {
    const struct filler *f = context;
    long lines = n, length = part->where.size[1];
    long width = f->places->own ? length : parts_row(f->parts, part->dataset)->shape[1];
    if (length == width) length *= lines, lines = 1; /* consecutive in the file */
    for (long r = 0; r < lines; r++) {
        int error = write_whole_at(f->fd, buffer + r * length, (size_t)length * sizeof(real),
                                   place_of(f, part, first + r, width));
        if (error) return cannot_write(f->path, error);
    }
    return 0;
}

int file_fill(const char *path, const struct parts *parts, const struct file_places *places) {
    struct filler f = {.parts = parts, .places = places, .path = path};
    f.fd = open(path, O_WRONLY | O_CLOEXEC);
    if (f.fd < 0) return gdn_fail(GDN_INTERNAL, "%s cannot be opened: %s", path, strerror(errno));
    int status = parts_each(parts, fill_block, &f);
    if (!status && fsync(f.fd)) status = cannot_write(path, errno);
    if (close(f.fd) && !status) status = cannot_write(path, errno);
    return status;
}
