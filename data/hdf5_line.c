#include "data/hdf5_line.h"

#include <stdio.h>

#include "data/hdf5/lock.h"
#include "kernels/base/status.h"

enum { BLOCK = 8192 };                             /* elements converted at a time */
enum { CACHE_MIN = 1 << 20, CACHE_MAX = 1 << 28 }; /* bytes of the library's chunk cache */

bool hdf5_line_is_there(hid_t file, const char *name) {
    return H5Lexists(file, name, H5P_DEFAULT) > 0;
}

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

/* Opens it and checks that it is a line of integers. */
static int open_dataset(hid_t file, struct hdf5_line *h) {
    const char *path = h->path, *name = h->name;
    if (!hdf5_line_is_there(file, name)) return gdn_fail(GDN_INPUT, "%s has no dataset `%s`", path, name);
    if ((h->dataset = H5Oopen(file, name, H5P_DEFAULT)) < 0 || H5Iget_type(h->dataset) != H5I_DATASET)
        return gdn_fail(GDN_INPUT, "%s: `%s` is not a dataset", path, name);
    if ((h->type = H5Dget_type(h->dataset)) < 0 || (h->space = H5Dget_space(h->dataset)) < 0)
        return gdn_fail(GDN_INPUT, "%s: the dataset `%s` cannot be opened", path, name);
    if (H5Tget_class(h->type) != H5T_INTEGER)
        return gdn_fail(GDN_INPUT, "%s: the dataset `%s` holds %s, and integers are expected", path, name,
                        H5Tget_class(h->type) == H5T_FLOAT ? "floating-point numbers" : "no integers");
    size_t width = H5Tget_size(h->type); /* the library would make room for one, however wide */
    if (width < 1 || width > sizeof(int64_t))
        return gdn_fail(GDN_INPUT, "%s: the dataset `%s` has integers of %zu bytes, and 1 to 8 are expected",
                        path, name, width);
    int offset = H5Tget_offset(h->type);
    size_t precision = H5Tget_precision(h->type);
    if (offset < 0 || precision < 1 || precision > 8 * width || (size_t)offset > 8 * width - precision)
        return gdn_fail(GDN_INPUT, "%s: the dataset `%s` has integers whose bits lie beyond their %zu bytes",
                        path, name, width);
    if (H5Sget_simple_extent_ndims(h->space) != 1)
        return gdn_fail(GDN_INPUT, "%s: the dataset `%s` has %d dimensions, and 1 is expected", path, name,
                        H5Sget_simple_extent_ndims(h->space));
    h->count = (long)H5Sget_simple_extent_npoints(h->space);
    if (h->count <= 0)
        return gdn_fail(GDN_INPUT, "%s is empty: its dataset `%s` has no elements", path, name);
    return GDN_OK;
}

/* HDF5 1.10 copies elements beyond the end of a compact dataset that has fewer than it says. */
static int validate_compact(const struct hdf5_line *h) {
    size_t width = H5Tget_size(h->type);
    if ((hsize_t)h->count <= H5Dget_storage_size(h->dataset) / width) return GDN_OK;
    return gdn_fail(GDN_INPUT,
                    "%s is damaged: `%s` has %ld elements of %zu bytes, but only %llu bytes of them", h->path,
                    h->name, h->count, width, (unsigned long long)H5Dget_storage_size(h->dataset));
}

/* Maps the dataset where it can be read without the library, leaving h->raw NULL where it cannot. */
static int map_dataset(struct hdf5_line *h) {
    enum element element = native_element(h->type);
    hid_t plist = H5Dget_create_plist(h->dataset);
    bool plain = plist >= 0 && H5Pget_layout(plist) == H5D_CONTIGUOUS && H5Pget_external_count(plist) == 0;
    bool compact = plist >= 0 && H5Pget_layout(plist) == H5D_COMPACT;
    H5Pclose(plist);
    if (compact) return validate_compact(h);
    haddr_t offset =
        plain ? H5Dget_offset(h->dataset) : HADDR_UNDEF; /* undefined, too, where never written */
    if (element == NUM_ELEMENTS || offset == HADDR_UNDEF) return GDN_OK;
    TRY(mapping_open(h->path, &h->map));
    if (offset > h->map.size || (size_t)h->count > (h->map.size - offset) / element_size(element))
        return gdn_fail(
            GDN_INPUT,
            "%s is truncated: `%s` has %ld elements of %zu bytes from byte %llu on, but the file has %zu "
            "bytes",
            h->path, h->name, h->count, element_size(element), (unsigned long long)offset, h->map.size);
    h->element = element;
    h->raw = h->map.bytes + offset;
    return GDN_OK;
}

/* Reopens a chunked dataset with a cache of two chunks, as samples seldom end where chunks do, and a smaller
 * cache would unpack the same chunk for every sample. */
static int enlarge_cache(hid_t file, struct hdf5_line *h) {
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
    h->dataset = H5Dopen(file, h->name, access);
    H5Pclose(access);
    if (h->dataset < 0) return gdn_fail(GDN_INPUT, "%s: the dataset `%s` cannot be opened", h->path, h->name);
    return GDN_OK;
}

static void close_ids(struct hdf5_line *h) {
    if (h->space >= 0) H5Sclose(h->space);
    if (h->type >= 0) H5Tclose(h->type);
    if (h->dataset >= 0) H5Oclose(h->dataset); /* a group, perhaps, where opening failed */
    h->dataset = h->type = h->space = H5I_INVALID_HID;
}

int hdf5_line_open(hid_t file, const char *path, const char *name, struct hdf5_line *out) {
    *out = (struct hdf5_line){.path = path,
                              .name = name,
                              .dataset = H5I_INVALID_HID,
                              .type = H5I_INVALID_HID,
                              .space = H5I_INVALID_HID};
    TRY(open_dataset(file, out));
    TRY(map_dataset(out));
    if (!out->raw) return enlarge_cache(file, out);
    close_ids(out);
    return GDN_OK;
}

void hdf5_line_close(struct hdf5_line *line) {
    mapping_close(&line->map);
    HDF5_HOLD();
    close_ids(line);
}

/* One block through the library, which turns any integer type into a 64-bit one of the same sign. */
static int read_block(const struct hdf5_line *h, long first, long count, int32_t *out) {
    HDF5_HOLD();
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
        return gdn_fail(GDN_INPUT, "%s: HDF5 cannot read %s %ld to %ld; the file may be damaged", h->path,
                        h->name, first, first + count - 1);
    return elements_read(h->path, first, is_unsigned ? ELEMENT_UINT64 : ELEMENT_INT64, values, count, out);
}

int hdf5_line_read(const struct hdf5_line *line, long first, long count, int32_t *out) {
    if (line->raw)
        return elements_read(line->path, first, line->element,
                             line->raw + (size_t)first * element_size(line->element), count, out);
    for (long done = 0; done < count; done += BLOCK)
        TRY(read_block(line, first + done, count - done < BLOCK ? count - done : BLOCK, out + done));
    return GDN_OK;
}

void hdf5_line_type(const struct hdf5_line *line, char *out, size_t size) {
    if (line->raw) {
        snprintf(out, size, "%s", element_name(line->element));
        return;
    }
    const char *name = H5Tget_sign(line->type) == H5T_SGN_NONE ? "uint" : "int";
    snprintf(out, size, "%s%zu", name, 8 * H5Tget_size(line->type));
}
