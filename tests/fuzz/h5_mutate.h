/* Changes HDF5 files for fuzzing. Blocks of metadata in files of the 1.8 format and later end in a checksum,
 * which would stop nearly every change at the library's door: it is computed anew for the blocks that were
 * whole before. */
#ifndef GDN_TEST_H5_MUTATE_H
#define GDN_TEST_H5_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes the `size` bytes of an HDF5 file, which may become at most `max`; returns how many there are
 * then. */
size_t h5_mutate(uint8_t *file, size_t size, size_t max, unsigned seed);

/* What libFuzzer does without a mutator of one's own. */
size_t h5_mutate_plainly(uint8_t *data, size_t size, size_t max);

#endif
