/* One checkpoint.h5: written, checked and read by one process. Private to dist/.
 *
 * Three checksums, each for what the others cannot see: the seal (seal.h) covers every byte of the file; attribute "xxh3"
 * of a dataset covers its elements, computed from memory before they were written, so that checking it after a
 * save finds a faulty write; attribute "xxh3" of the root covers the other root attributes and the list of datasets
 * with their checksums, for files without a seal. */
#ifndef GDN_CHECKPOINT_FILE_H
#define GDN_CHECKPOINT_FILE_H

#include <hdf5.h>
#include <stdint.h>

#include "dist/checkpoint.h"

enum { FORMAT_VERSION = 1 };

#define CHECKPOINT_FILE "checkpoint.h5"

/* Writes, seals and syncs a new file. On failure a part of it may be left, for the caller to remove. GDN_INTERNAL. */
int file_write(const char *path, const struct table *table, const struct state *state,
               const struct checkpoint_info *info);

/* Whether the file is whole: its seal or, where it has none, all checksums. GDN_INPUT. */
int file_check(const char *path);

/* What file_check_all has counted. */
struct file_size {
    int datasets;
    int64_t bytes; /* of the elements */
};

/* Checks the seal and all checksums, whether there is a seal or not. GDN_INPUT. */
int file_check_all(const char *path, struct file_size *out);

/* The root attributes of an open file; out->config is the caller's to free(). GDN_INPUT. */
int file_info(hid_t file, const char *path, struct checkpoint_info *out);

/* The checksum that attribute "xxh3" of the root should have, from `info` and the datasets' attributes. GDN_INPUT. */
int file_manifest(hid_t file, const char *path, const struct checkpoint_info *info, uint64_t *sum);

/* Compares that with the attribute. GDN_INPUT where it differs. */
int file_check_manifest(hid_t file, const char *path, const struct checkpoint_info *info);

/* Reads dataset `name` into `memory` [row->count], converting floats of any width, and checks its checksum where it has
 * one. GDN_INPUT where it is not of the row's shape. */
int file_read_tensor(hid_t file, const char *path, const char *name, const struct row *row, real *memory);

#endif
