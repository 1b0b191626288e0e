/* What checkpoints need of HDF5, with errors as statuses: opening files, attributes, and datasets that are
 * read block by block with their checksum. Functions hold the lock of HDF5 while they are in it
 * (data/hdf5/lock.h); others must be held by who calls HDF5 itself. Works on one process without MPI.
 * Private to dist/ and to train's files of stored differences. */
#ifndef GDN_H5_H
#define GDN_H5_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

/* The number type of this build, in files and in memory. */
#ifdef GDN_DOUBLE
#define H5_REAL_STORED H5T_IEEE_F64LE
#define H5_REAL_MEMORY H5T_NATIVE_DOUBLE
#else
#define H5_REAL_STORED H5T_IEEE_F32LE
#define H5_REAL_MEMORY H5T_NATIVE_FLOAT
#endif

enum { H5_BLOCK_BYTES = 1 << 20 }; /* tensors are read and written in blocks of about this size */

/* Records "PATH: WHAT: <HDF5's innermost reason>" and returns `status`. To be called right after the HDF5
 * call that failed, since the next one forgets the reason. */
int h5_fail(int status, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* HDF5's innermost reason for its last failure, in words. */
void h5_reason(char text[256]);

/* Turns off HDF5's own printing of errors and its file locks. Called before a file is opened or created. */
void h5_quiet(void);

/* Access properties of every file here: the 1.8 format, whose metadata blocks carry checksums of their own,
 * and closing that takes still-open objects along. Close with H5Pclose. */
hid_t h5_access(void);

/* Opens for reading. GDN_INPUT where the file is missing, unreadable or not HDF5. Close with h5_close. */
int h5_open(const char *path, hid_t *file);
void h5_close(hid_t file);

/* Whether a dataset or group is there: "model/layers/3/…". GDN_INPUT where a group above it cannot be
 * read. */
int h5_exists(hid_t file, const char *path, const char *name, bool *there);

/* Attributes of `object`. Reading fails with GDN_INPUT where one is missing or of another kind, writing with
 * GDN_INTERNAL; `path` is for messages. A text that was read is the caller's to free(). */
int h5_write_int(hid_t object, const char *path, const char *name, int64_t value);
int h5_write_double(hid_t object, const char *path, const char *name, double value);
int h5_write_sum(hid_t object, const char *path, const char *name, uint64_t value);
int h5_write_text(hid_t object, const char *path, const char *name, const char *value);
int h5_read_int(hid_t object, const char *path, const char *name, int64_t *value);
int h5_read_double(hid_t object, const char *path, const char *name, double *value);
int h5_read_sum(hid_t object, const char *path, const char *name, uint64_t *value);
int h5_read_text(hid_t object, const char *path, const char *name, char **value);
int h5_has_attribute(hid_t object, const char *path, const char *name, bool *there);

/* The checksum that a dataset carries as an attribute. */
enum h5_sum {
    SUM_NONE,
    SUM_PLACED, /* "placed_sum": data/hdf5/sum.h */
    SUM_XXH3,   /* "xxh3", of files of version 1: XXH3_64bits of the stored elements in row-major order */
};

/* A dataset open for reading as [shape[0], shape[1]] elements. */
struct h5_dataset {
    const char *path, *name; /* for messages; the caller's */
    hid_t id, type;          /* type: as stored */
    int ndim;                /* 0, 1 or 2; the missing of the two lengths below are 1 */
    hsize_t shape[2];
    size_t element; /* bytes of one stored element */
    bool integer;   /* else floating point */
    enum h5_sum kind;
    uint64_t sum;
};

/* Opens a dataset; GDN_INPUT where it is no array of numbers of at most two dimensions. On failure nothing is
 * open. */
int h5_dataset_open(hid_t file, const char *path, const char *name, struct h5_dataset *out);
void h5_dataset_close(struct h5_dataset *dataset);

/* What is done with a rectangle of a dataset, as stored in `buffer` [size[0], size[1]], which it may convert
 * in place to elements of up to 8 bytes. Returns a status. */
typedef int h5_take_block(void *context, const struct h5_dataset *dataset, const long at[2],
                          const long size[2], void *buffer);

/* Reads the rectangle of `size` from `at` on in blocks of whole lines, from the first line to the last, and
 * hands each to `take`. GDN_INPUT where it cannot be read, GDN_INTERNAL without memory, and what `take`
 * returned. */
int h5_dataset_each(const struct h5_dataset *dataset, const long at[2], const long size[2],
                    h5_take_block *take, void *context);

/* Turns `count` elements as stored in `buffer`, which has room for them in either form, into real in their
 * place. GDN_INPUT where HDF5 cannot. */
int h5_dataset_to_real(const struct h5_dataset *dataset, long count, void *buffer);

/* The part of the dataset's SUM_PLACED that comes from a rectangle as stored in `buffer`. */
uint64_t h5_dataset_sum(const struct h5_dataset *dataset, const long at[2], const long size[2],
                        const void *buffer);

/* Reads a whole dataset and checks its SUM_XXH3. GDN_INPUT where that differs. */
int h5_dataset_verify_xxh3(const struct h5_dataset *dataset);

/* GDN_INPUT, in the words that a wrong checksum has. */
int h5_dataset_damaged(const char *path, const char *name);

/* The names of all datasets of a file, from the root without a leading '/', sorted within each group: *text,
 * of *length bytes, has one after the other, each with its final zero; free() it. GDN_INPUT where groups hold
 * each other, or a name has control characters; then *text is NULL. */
int h5_names(hid_t file, const char *path, char **text, size_t *length);

/* What is done with one dataset, by its name as h5_names has it. Returns a status. */
typedef int h5_take_name(void *context, hid_t file, const char *path, const char *name);

/* Visits all datasets of a file in h5_names' order. Returns the first status that is not 0, its own or
 * `take`'s. */
int h5_each_name(hid_t file, const char *path, h5_take_name *take, void *context);

#endif
