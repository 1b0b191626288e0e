/* The seal of a checkpoint.h5: a checksum over the whole file, kept in the first 512 bytes, which HDF5 leaves
 * to the application (its "user block"). It finds every changed, missing or added bit before HDF5 looks at
 * the file, and travels with the file when that is copied. Private to dist/.
 *
 * The block is text, padded with zero bytes: "gdn checkpoint\nxxh3-128 <32 hex digits>\nbytes <length of the
 * file>\n"; the checksum is XXH3_128bits of all that follows the block. */
#ifndef GDN_SEAL_H
#define GDN_SEAL_H

#include <stdbool.h>

enum { SEAL_BYTES = 512 };

/* Computes and writes the seal of a file that HDF5 has closed, open as `fd`, and syncs it to disk.
 * GDN_INTERNAL. */
int seal_write(const char *path, int fd);

/* Checks the seal. *sealed is false where the file begins as a plain HDF5 file does, without a user block: it
 * is from elsewhere, or was rewritten by an HDF5 tool. GDN_INPUT where the file cannot be read or does not
 * match. */
int seal_check(const char *path, bool *sealed);

#endif
