#include "data/hdf5/h5_sink.h"

#include "kernels/base/write_whole.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h> /* where newer versions keep H5FD_class_t */
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sink_file {
    H5FD_t base; /* HDF5's part, first */
    struct h5_sink *sink;
    haddr_t allocated; /* end of what HDF5 has given out */
    haddr_t written;   /* end of the file */
};

static H5FD_t *sink_open(const char *name, unsigned flags, hid_t access, haddr_t max) {
    (void)name, (void)flags, (void)max;
    struct h5_sink *const *sink = H5Pget_driver_info(access);
    struct sink_file *file = sink ? calloc(1, sizeof *file) : NULL;
    if (!file) return NULL;
    file->sink = *sink;
    return &file->base;
}

static herr_t sink_close(H5FD_t *file) {
    free(file);
    return 0;
}

static herr_t sink_query(const H5FD_t *file, unsigned long *flags) {
    (void)file;
    /* As HDF5's own driver, but without its buffer for small pieces of data, which would delay writes. */
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t sink_get_eoa(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const struct sink_file *)file)->allocated;
}

static herr_t sink_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end) {
    (void)type;
    ((struct sink_file *)file)->allocated = end;
    return 0;
}

static haddr_t sink_get_eof(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const struct sink_file *)file)->written;
}

/* HDF5 reads back its own metadata; what lies behind the end is zero. */
static herr_t sink_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                        void *buffer) {
    (void)type, (void)transfer;
    struct h5_sink *sink = ((struct sink_file *)base)->sink;
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(sink->fd, (char *)buffer + done, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && !sink->error) sink->error = errno;
        if (n <= 0) break;
        done += (size_t)n;
    }
    memset((char *)buffer + done, 0, size - done);
    return 0;
}

static herr_t sink_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                         const void *buffer) {
    (void)type, (void)transfer;
    struct sink_file *file = (struct sink_file *)base;
    struct h5_sink *sink = file->sink;
    if (!sink->error) sink->error = write_whole_at(sink->fd, buffer, size, (int64_t)at);
    if (at + size > file->written) file->written = at + size;
    return 0;
}

static herr_t sink_truncate(H5FD_t *base, hid_t transfer, hbool_t closing) {
    (void)transfer, (void)closing;
    struct sink_file *file = (struct sink_file *)base;
    if (file->allocated == file->written) return 0;
    if (!file->sink->error && ftruncate(file->sink->fd, (off_t)file->allocated)) file->sink->error = errno;
    file->written = file->allocated;
    return 0;
}

static const H5FD_class_t sink_class = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* of the range that is free for applications */
#endif
    .name = "gdn_sink",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(struct h5_sink *),
    .open = sink_open,
    .close = sink_close,
    .query = sink_query,
    .get_eoa = sink_get_eoa,
    .set_eoa = sink_set_eoa,
    .get_eof = sink_get_eof,
    .read = sink_read,
    .write = sink_write,
    .truncate = sink_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t h5_sink_select(hid_t access, struct h5_sink *sink) {
    hid_t driver = H5FDregister(&sink_class);
    if (driver < 0) return -1;
    if (H5Pset_driver(access, driver, &sink) >= 0) return driver;
    H5FDunregister(driver);
    return -1;
}
