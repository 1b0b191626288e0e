/* The seal of a checkpoint.h5: a checksum over the whole file, kept in the first 512 bytes, which HDF5 leaves
 * to the application (its "user block"). It finds every changed, missing or added bit before HDF5 looks at
 * the file, and travels with the file when that is copied. Private to dist/.
 *
 * What follows the first 512 bytes is cut into blocks of SEAL_BLOCK bytes, which the ranks of a crew hash
 * between them (XXH3_128bits). The first 512 bytes are text, padded with zero bytes:
 * "gdn checkpoint\nxxh3-128-blocks <bytes of a block> <32 hex digits>\nbytes <length of the file>\n"; the
 * checksum is XXH3_128bits of the bytes of a block (8 bytes, lowest first) and the blocks' hashes (16 bytes
 * each, highest first). Files of version 1 have
 * "xxh3-128 <32 hex digits>" in the second line, of all that follows in one go; one rank checks these. */
#ifndef GDN_SEAL_H
#define GDN_SEAL_H

#include <stdbool.h>

#include "dist/checkpoint/crew.h"

enum { SEAL_BYTES = 512, SEAL_BLOCK = 4 << 20, SEAL_HASH = 33 };

/* Computes and writes the seal of a file that all have closed, and syncs it to disk; `hash` [SEAL_HASH]
 * receives the hex digits. Collective over the mesh; the same status on all. GDN_INTERNAL. */
int seal_write(const struct crew *crew, const char *path, char *hash);

/* Checks the seal. *sealed is false where the file begins as a plain HDF5 file does, without a user block: it
 * is from elsewhere, or was rewritten by an HDF5 tool. `hash` [SEAL_HASH] receives the hex digits (NULL: not
 * wanted). Collective over the mesh; the same status on all. GDN_INPUT where the file cannot be read or does
 * not match. */
int seal_check(const struct crew *crew, const char *path, bool *sealed, char *hash);

#endif
