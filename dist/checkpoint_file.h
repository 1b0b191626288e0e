/* One checkpoint.h5: written, checked and read by one process. Private to dist/.
 *
 * Two kinds of checksums, each for what the other cannot see. The seal (seal.h) covers every byte of the
 * file, and is checked before HDF5 opens it: HDF5 1.10 can hang or crash on damaged metadata. Attribute
 * "xxh3" of each dataset covers its elements, computed from memory before they are written, so that checking
 * it after a save finds a faulty write; it also goes along where other programs copy datasets. */
#ifndef GDN_CHECKPOINT_FILE_H
#define GDN_CHECKPOINT_FILE_H

#include <hdf5.h>
#include <stdint.h>

#include "dist/checkpoint.h"

enum { FORMAT_VERSION = 1 };

#define CHECKPOINT_FILE "checkpoint.h5"

/* Writes, seals and syncs a new file. On failure a part of it may be left, for the caller to remove.
 * GDN_INTERNAL. */
int file_write(const char *path, const struct table *table, const struct state *state,
               const struct checkpoint_info *info);

/* Whether the file is whole, by its seal. GDN_INPUT where it is not, or has no seal. */
int file_check(const char *path);

/* Checks the seal, opens, and reads the root attributes: info->config is the caller's to free(), the file to
 * H5Fclose. GDN_INPUT; then nothing is open. */
int file_open(const char *path, hid_t *file, struct checkpoint_info *info);

/* What file_check_all has counted. */
struct file_size {
    int datasets;
    int64_t bytes; /* of the elements */
};

/* Checks the seal and every dataset's checksum. GDN_INPUT. */
int file_check_all(const char *path, struct file_size *out);

#endif
