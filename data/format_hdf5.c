/* HDF5: the one-dimensional integer dataset `tokens`. Where it lies in one piece, unfiltered and in this
 * machine's byte order, the library only tells where, and the file is mapped; otherwise (chunks, compression,
 * other byte orders, external or virtual storage) the library reads the wanted range and converts it. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "data/format.h"
#include "data/hdf5/lock.h"
#include "data/hdf5/source.h"
#include "data/output_tokens.h"
#include "kernels/base/status.h"

enum { BLOCK = 8192 };                             /* tokens converted at a time */
enum { CACHE_MIN = 1 << 20, CACHE_MAX = 1 << 28 }; /* bytes of the library's chunk cache */

struct hdf5 {
    hid_t file, dataset, type, space; /* H5I_INVALID_HID where not open */
};

/* The type of this machine that equals `type` bit for bit; NUM_ELEMENTS where there is none. */
static enum element native_element(hid_t type) {
    const hid_t natives[NUM_ELEMENTS] = {
        [ELEMENT_UINT8] = H5T_NATIVE_UINT8,   [ELEMENT_INT8] = H5T_NATIVE_INT8,
        [ELEMENT_UINT16] = H5T_NATIVE_UINT16, [ELEMENT_INT16] = H5T_NATIVE_INT16,
        [ELEMENT_UINT32] = H5T_NATIVE_UINT32, [ELEMENT_INT32] = H5T_NATIVE_INT32,
        [ELEMENT_UINT64] = H5T_NATIVE_UINT64, [ELEMENT_INT64] = H5T_NATIVE_INT64,
    };
    for (int i = 0; i < NUM_ELEMENTS; i++)
        if (H5Tequal(type, natives[i]) > 0) return (enum element)i;
    return NUM_ELEMENTS;
}

/* Opens `tokens` and checks that it is a line of integers. */
static int open_dataset(struct token_file *file, struct hdf5 *h) {
    if (H5Lexists(h->file, "tokens", H5P_DEFAULT) <= 0)
        return gdn_fail(GDN_INPUT, "%s has no dataset `tokens`", file->path);
    if ((h->dataset = H5Oopen(h->file, "tokens", H5P_DEFAULT)) < 0 || H5Iget_type(h->dataset) != H5I_DATASET)
        return gdn_fail(GDN_INPUT, "%s: `tokens` is not a dataset", file->path);
    if ((h->type = H5Dget_type(h->dataset)) < 0 || (h->space = H5Dget_space(h->dataset)) < 0)
        return gdn_fail(GDN_INPUT, "%s: the dataset `tokens` cannot be opened", file->path);
    if (H5Tget_class(h->type) != H5T_INTEGER)
        return gdn_fail(GDN_INPUT, "%s: the dataset `tokens` holds %s, and integers are expected", file->path,
                        H5Tget_class(h->type) == H5T_FLOAT ? "floating-point numbers" : "no integers");
    size_t width = H5Tget_size(h->type); /* the library would make room for one, however wide */
    if (width < 1 || width > sizeof(int64_t))
        return gdn_fail(GDN_INPUT,
                        "%s: the dataset `tokens` has integers of %zu bytes, and 1 to 8 are expected",
                        file->path, width);
    int offset = H5Tget_offset(h->type);
    size_t precision = H5Tget_precision(h->type);
    if (offset < 0 || precision < 1 || precision > 8 * width || (size_t)offset > 8 * width - precision)
        return gdn_fail(GDN_INPUT,
                        "%s: the dataset `tokens` has integers whose bits lie beyond their %zu bytes",
                        file->path, width);
    if (H5Sget_simple_extent_ndims(h->space) != 1)
        return gdn_fail(GDN_INPUT, "%s: the dataset `tokens` has %d dimensions, and 1 is expected",
                        file->path, H5Sget_simple_extent_ndims(h->space));
    file->count = (long)H5Sget_simple_extent_npoints(h->space);
    if (file->count <= 0)
        return gdn_fail(GDN_INPUT, "%s is empty: its dataset `tokens` has no elements", file->path);
    return GDN_OK;
}

/* HDF5 1.10 copies elements beyond the end of a compact dataset that has fewer than it says. */
static int validate_compact(const struct token_file *file, const struct hdf5 *h) {
    size_t width = H5Tget_size(h->type);
    if ((hsize_t)file->count <= H5Dget_storage_size(h->dataset) / width) return GDN_OK;
    return gdn_fail(GDN_INPUT,
                    "%s is damaged: `tokens` has %ld elements of %zu bytes, but only %llu bytes of them",
                    file->path, file->count, width, (unsigned long long)H5Dget_storage_size(h->dataset));
}

/* Maps the dataset where it can be read without the library, leaving file->raw NULL where it cannot. */
static int map_dataset(struct token_file *file, struct hdf5 *h) {
    enum element element = native_element(h->type);
    hid_t plist = H5Dget_create_plist(h->dataset);
    bool plain = plist >= 0 && H5Pget_layout(plist) == H5D_CONTIGUOUS && H5Pget_external_count(plist) == 0;
    bool compact = plist >= 0 && H5Pget_layout(plist) == H5D_COMPACT;
    H5Pclose(plist);
    if (compact) return validate_compact(file, h);
    haddr_t offset =
        plain ? H5Dget_offset(h->dataset) : HADDR_UNDEF; /* undefined, too, where never written */
    if (element == NUM_ELEMENTS || offset == HADDR_UNDEF) return GDN_OK;
    TRY(mapping_open(file->path, &file->map));
    if (offset > file->map.size || (size_t)file->count > (file->map.size - offset) / element_size(element))
        return gdn_fail(
            GDN_INPUT,
            "%s is truncated: `tokens` has %ld elements of %zu bytes from byte %llu on, but the file has %zu "
            "bytes",
            file->path, file->count, element_size(element), (unsigned long long)offset, file->map.size);
    file->element = element;
    file->raw = file->map.bytes + offset;
    return GDN_OK;
}

/* Reopens a chunked dataset with a cache of two chunks, as samples seldom end where chunks do, and a smaller
 * cache would unpack the same chunk for every sample. */
static int enlarge_cache(struct token_file *file, struct hdf5 *h) {
    hid_t plist = H5Dget_create_plist(h->dataset);
    hsize_t chunk = 0;
    if (plist >= 0 && H5Pget_layout(plist) == H5D_CHUNKED) H5Pget_chunk(plist, 1, &chunk);
    H5Pclose(plist);
    if (chunk == 0) return GDN_OK;
    size_t bytes = 2 * (size_t)chunk * H5Tget_size(h->type);
    bytes = bytes < CACHE_MIN ? CACHE_MIN : bytes > CACHE_MAX ? CACHE_MAX : bytes;
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(access, H5D_CHUNK_CACHE_NSLOTS_DEFAULT, bytes, H5D_CHUNK_CACHE_W0_DEFAULT);
    H5Dclose(h->dataset);
    h->dataset = H5Dopen(h->file, "tokens", access);
    H5Pclose(access);
    if (h->dataset < 0) return gdn_fail(GDN_INPUT, "%s: the dataset `tokens` cannot be opened", file->path);
    return GDN_OK;
}

static void close_ids(struct hdf5 *h) {
    if (h->space >= 0) H5Sclose(h->space);
    if (h->type >= 0) H5Tclose(h->type);
    if (h->dataset >= 0) H5Oclose(h->dataset); /* a group, perhaps, where opening failed */
    if (h->file >= 0) H5Fclose(h->file);
    h->file = h->dataset = h->type = h->space = H5I_INVALID_HID;
}

static const char *hdf5_recognise(const char *path, const struct head *head) {
    (void)path;
    return head_has(head, 0, "\x89HDF\r\n\x1a\n", 8) ? "an HDF5 file" : NULL;
}

static int hdf5_open(struct token_file *file) {
    HDF5_HOLD();
    struct hdf5 *h = malloc(sizeof *h);
    if (!h) return gdn_fail(GDN_INTERNAL, "%s: no memory", file->path);
    h->file = h->dataset = h->type = h->space = H5I_INVALID_HID;
    file->state = h;

    struct mapping probe = {
        0}; /* first, since its messages about missing and empty files are the better ones */
    TRY(mapping_open(file->path, &probe));
    file->bytes = (long)probe.size;
    mapping_close(&probe);
    H5Eset_auto(H5E_DEFAULT, NULL, NULL); /* the library's own words would come between ours */
    if (H5Fis_hdf5(file->path) <= 0) return gdn_fail(GDN_INPUT, "%s is not an HDF5 file", file->path);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (hdf5_source_select(access) >= 0) h->file = H5Fopen(file->path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (h->file < 0)
        return gdn_fail(GDN_INPUT, "%s: HDF5 cannot open it; it is truncated, damaged or being written",
                        file->path);

    TRY(open_dataset(file, h));
    TRY(map_dataset(file, h));
    file->documents = NOT_RECORDED;
    const char *name = H5Tget_sign(h->type) == H5T_SGN_NONE ? "uint" : "int";
    snprintf(file->stored_as, sizeof file->stored_as, "%s%zu%s", name, 8 * H5Tget_size(h->type),
             file->raw ? "" : ", read through the HDF5 library");
    if (!file->raw) return enlarge_cache(file, h);
    close_ids(h);
    return GDN_OK;
}

/* One block through the library, which turns any integer type into a 64-bit one of the same sign. */
static int read_block(struct token_file *file, long first, long count, int32_t *out) {
    HDF5_HOLD();
    const struct hdf5 *h = file->state;
    bool is_unsigned = H5Tget_sign(h->type) == H5T_SGN_NONE;
    int64_t values[BLOCK];
    hsize_t start = (hsize_t)first, size = (hsize_t)count;
    hid_t memory = H5Screate_simple(1, &size, NULL);
    herr_t failed = H5Sselect_hyperslab(h->space, H5S_SELECT_SET, &start, NULL, &size, NULL);
    if (failed >= 0)
        failed = H5Dread(h->dataset, is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, memory, h->space,
                         H5P_DEFAULT, values);
    H5Sclose(memory);
    if (failed < 0)
        return gdn_fail(GDN_INPUT, "%s: HDF5 cannot read tokens %ld to %ld; the file may be damaged",
                        file->path, first, first + count - 1);
    return elements_read(file->path, first, is_unsigned ? ELEMENT_UINT64 : ELEMENT_INT64, values, count, out);
}

static int hdf5_read(struct token_file *file, long first, long count, int32_t *out) {
    if (file->raw) return format_read_raw(file, first, count, out);
    for (long done = 0; done < count; done += BLOCK)
        TRY(read_block(file, first + done, count - done < BLOCK ? count - done : BLOCK, out + done));
    return GDN_OK;
}

static void hdf5_close(struct token_file *file) {
    struct hdf5 *h = file->state;
    mapping_close(&file->map);
    if (!h) return;
    HDF5_HOLD();
    close_ids(h);
    free(h);
}

/* Creates the HDF5 file with room for `count` tokens; where they belong in the file goes to *offset. */
static int create_dataset(struct output *output, hsize_t count, haddr_t *offset) {
    H5Eset_auto(H5E_DEFAULT, NULL, NULL); /* the library's own words would come between ours */
    hid_t file = H5Fcreate(output->partial, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &count, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    hid_t dataset = H5Dcreate(file, "tokens", H5T_STD_U16LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    *offset = H5Dget_offset(dataset);
    H5Pclose(how);
    H5Sclose(space);
    /* the library writes its buffers when it closes, so closing can fail as well */
    if ((H5Dclose(dataset) < 0) | (H5Fclose(file) < 0) || *offset == HADDR_UNDEF)
        return gdn_fail(GDN_INPUT, "%s: cannot be written as an HDF5 file", output->path);
    return GDN_OK;
}

/* The library only makes the file's frame, and the tokens are written past it. A disk that fills up while
 * HDF5 1.10 writes leaves a file that it cannot close, and then it crashes at the program's end. */
static int hdf5_fill(struct output *output, struct tokens *text) {
    haddr_t offset;
    long count = tokens_count(text);
    TRY(output_try(output, count * (long)sizeof(uint16_t)));
    TRY(create_dataset(output, (hsize_t)count, &offset));
    TRY(output_seek(output, (long)offset));
    return output_tokens(output, text);
}

static int hdf5_write(const char *path, struct tokens *text) {
    return output_whole(path, hdf5_fill, text);
}

const struct token_format hdf5_format = {
    .name = "hdf5",
    .about = "dataset `tokens`",
    .recognise = hdf5_recognise,
    .open = hdf5_open,
    .read = hdf5_read,
    .close = hdf5_close,
    .write = hdf5_write,
};
