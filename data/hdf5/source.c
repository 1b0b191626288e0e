#include "data/hdf5/source.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h> /* where newer versions keep H5FD_class_t */
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct source_file {
    H5FD_t base; /* HDF5's part, first */
    int fd;
    haddr_t length;    /* bytes */
    haddr_t allocated; /* end of what the file says that it uses */
};

static H5FD_t *source_open(const char *name, unsigned flags, hid_t access, haddr_t max) {
    (void)access, (void)max;
    if (flags & (H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC)) return NULL;
    struct stat about;
    struct source_file *file = calloc(1, sizeof *file);
    if (!file) return NULL;
    file->fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait where it is a pipe */
    if (file->fd >= 0 && !fstat(file->fd, &about) && S_ISREG(about.st_mode)) {
        file->length = (haddr_t)about.st_size;
        return &file->base;
    }
    if (file->fd >= 0) close(file->fd);
    free(file);
    return NULL;
}

static herr_t source_close(H5FD_t *base) {
    struct source_file *file = (struct source_file *)base;
    int error = close(file->fd);
    free(file);
    return error ? -1 : 0;
}

static herr_t source_query(const H5FD_t *file, unsigned long *flags) {
    (void)file;
    *flags = H5FD_FEAT_IGNORE_DRVRINFO; /* what a file says of its driver; and no buffers */
    return 0;
}

static haddr_t source_get_eoa(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const struct source_file *)file)->allocated;
}

static herr_t source_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end) {
    (void)type;
    ((struct source_file *)file)->allocated = end;
    return 0;
}

static haddr_t source_get_eof(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const struct source_file *)file)->length;
}

/* The system's reason goes where HDF5's own driver puts it, in the words that it has there. */
static herr_t system_failed(void) {
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR,
             "error message = '%s'", strerror(errno));
    return -1;
}

static herr_t read_all(const struct source_file *file, haddr_t at, size_t size, void *buffer) {
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(file->fd, (char *)buffer + done, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return system_failed();
        if (n == 0) return -1;
        done += (size_t)n;
    }
    return 0;
}

/* ------------------------------------------------------------------------ heaps of texts of any length */

/* As the file format has it where lengths take 8 bytes, which is what HDF5 writes unless told otherwise. */
enum { HEAP_LENGTH_AT = 8, HEAP_HEADER = 16, OBJECT_LENGTH_AT = 8, OBJECT_HEADER = 16 };

static uint64_t number(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value); /* little-endian, as this machine */
    return value;
}

/* Whether one can go from object to object to the end. Object 0 is what is free, and counts its header. */
static bool heap_is_whole(const uint8_t *heap, uint64_t length) {
    for (uint64_t at = HEAP_HEADER; length - at >= OBJECT_HEADER;) {
        uint64_t size = number(heap + at + OBJECT_LENGTH_AT), left = length - at;
        bool is_free = !heap[at] && !heap[at + 1];
        if (size > left || (is_free && size < OBJECT_HEADER)) return false;
        uint64_t step = is_free ? size : OBJECT_HEADER + ((size + 7) & ~(uint64_t)7);
        if (step > left) return false;
        at += step;
    }
    return true;
}

/* `beginning` [size] is what was read of the heap at `at`. */
static herr_t validate_heap(const struct source_file *file, haddr_t at, size_t size,
                            const uint8_t *beginning) {
    if (size < HEAP_HEADER) return -1;
    uint64_t length = number(beginning + HEAP_LENGTH_AT);
    if (length < HEAP_HEADER || length > file->length - at) return -1;
    uint8_t *whole = malloc(length);
    if (!whole) return -1;
    bool right = !read_all(file, at, length, whole) && heap_is_whole(whole, length);
    free(whole);
    return right ? 0 : -1;
}

/* --------------------------------------------------------------- groups and attributes in great number */

static uint64_t bytes_at(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    memcpy(&value, at, (size_t)bytes);
    return value;
}

/* A B-tree's header: HDF5 divides by the length of a record, and by how many a node holds, and believes how
 * many the first one has. */
static bool tree_is_sane(const uint8_t *at, size_t size) {
    enum { NODE = 6, RECORD = 10, DEPTH = 12, ROOT = 24, LENGTH = 26, OVERHEAD = 64, GREATEST = 1 << 24 };
    if (size < LENGTH) return false;
    uint64_t node = bytes_at(at + NODE, 4), record = bytes_at(at + RECORD, 2);
    if (bytes_at(at + ROOT, 2) * record > node) return false;
    return record > 0 && node >= OVERHEAD + 4 * record && node <= GREATEST && bytes_at(at + DEPTH, 2) <= 16;
}

static int bits(uint64_t power) {
    return power && !(power & (power - 1)) ? __builtin_ctzll(power) : -1;
}

/* The header of a heap of objects, in which blocks double from row to row: HDF5 makes tables of as many rows
 * as these numbers come to. */
static bool rows_are_sane(const uint8_t *at, size_t size) {
    enum { WIDTH = 110, FIRST = 112, DIRECT = 120, INDEX = 128, NEXT = 130 };
    if (size < NEXT) return false;
    int width = bits(bytes_at(at + WIDTH, 2)), first = bits(bytes_at(at + FIRST, 8));
    int direct = bits(bytes_at(at + DIRECT, 8)), index = (int)bytes_at(at + INDEX, 2);
    return width >= 0 && first >= 0 && direct >= first && direct < 32 && index <= 64 &&
           index >= first + width && direct - first + 2 <= index - first - width + 1;
}

/* What HDF5 has just read of a block of metadata from its beginning. */
static bool block_is_sane(const uint8_t *at, size_t size) {
    if (size < 5) return true;
    if (!memcmp(at, "BTHD", 5)) return tree_is_sane(at, size);
    if (!memcmp(at, "FRHP", 5)) return rows_are_sane(at, size);
    return true;
}

static herr_t source_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                          void *buffer) {
    (void)transfer;
    const struct source_file *file = (const struct source_file *)base;
    if (at > file->length || size > file->length - at || read_all(file, at, size, buffer)) return -1;
    /* HDF5 says of heaps that they are data, so they are known by their first eight bytes alone. */
    if (size >= 8 && !memcmp(buffer, "GCOL\1\0\0", 8)) return validate_heap(file, at, size, buffer);
    return type == H5FD_MEM_DRAW || block_is_sane(buffer, size) ? 0 : -1;
}

static herr_t source_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                           const void *buffer) {
    (void)base, (void)type, (void)transfer, (void)at, (void)size, (void)buffer;
    return -1;
}

static const H5FD_class_t source_class = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)601, /* of the range that is free for applications */
#endif
    .name = "gdn_source",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .open = source_open,
    .close = source_close,
    .query = source_query,
    .get_eoa = source_get_eoa,
    .set_eoa = source_set_eoa,
    .get_eof = source_get_eof,
    .read = source_read,
    .write = source_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

herr_t hdf5_source_select(hid_t access) {
    static hid_t driver = H5I_INVALID_HID; /* for all files; HDF5 forgets it when it ends */
    if (driver < 0 || H5Iget_type(driver) != H5I_VFL) driver = H5FDregister(&source_class);
    return driver < 0 ? -1 : H5Pset_driver(access, driver, NULL);
}
