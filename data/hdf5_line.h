/* A dataset of integers in one dimension, of an HDF5 file that somebody else has made. Where it lies in one
 * piece, unfiltered and in this machine's byte order, the library only tells where, and the file is mapped;
 * otherwise (chunks, compression, other byte orders, external or virtual storage) the library reads the
 * wanted range and converts it. Private to this room. */
#ifndef GDN_HDF5_LINE_H
#define GDN_HDF5_LINE_H

#include <hdf5.h>
#include <stdbool.h>

#include "data/elements.h"
#include "data/mapping.h"

struct hdf5_line {
    const char *path, *name; /* the file's and the dataset's, for messages; not owned */
    long count;
    struct mapping map; /* the file, where it is mapped */
    const uint8_t *raw; /* first element, in map; NULL: read through the library, while the file is open */
    enum element element;
    hid_t dataset, type, space; /* H5I_INVALID_HID where not open */
};

/* Whether the file has a member of that name. To be called with the lock of HDF5 (hdf5/lock.h), as
 * hdf5_line_open. */
bool hdf5_line_is_there(hid_t file, const char *name);

/* Opens the dataset `name` and checks that it is one of integers, not empty, and lies in the file.
 * hdf5_line_close follows, whatever this returns. GDN_INPUT naming file and dataset. */
int hdf5_line_open(hid_t file, const char *path, const char *name, struct hdf5_line *out);
void hdf5_line_close(struct hdf5_line *line);

/* Elements [first, first + count), which lie inside, to out. GDN_INPUT where one is no int32, or the file is
 * damaged. */
int hdf5_line_read(const struct hdf5_line *line, long first, long count, int32_t *out);

/* What its elements are, for people: "uint16". Open, or mapped. */
void hdf5_line_type(const struct hdf5_line *line, char *out, size_t size);

#endif
