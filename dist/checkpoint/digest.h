/* The digest of a checkpoint.h5: a checksum over the whole file, kept in the first 512 bytes, which HDF5
 * leaves to the application (its "user block"). It finds every changed, missing or added bit before HDF5
 * looks at the file, and travels with the file when that is copied. Private to dist/.
 *
 * What follows the first 512 bytes is cut into blocks of DIGEST_BLOCK bytes, hashed by the ranks of a file
 * group between them (XXH3_128bits). The first 512 bytes are text, padded with zero bytes:
 * "gdn checkpoint\nxxh3-128-blocks <bytes of a block> <32 hex digits>\nbytes <length of the file>\n"; the
 * checksum is XXH3_128bits of the bytes of a block (8 bytes, lowest first) and the blocks' hashes (16 bytes
 * each, highest first). Files of version 1 have "xxh3-128 <32 hex digits>" in the second line, of all that
 * follows in one go; one rank verifies these. */
#ifndef GDN_DIGEST_H
#define GDN_DIGEST_H

#include <stdbool.h>

#include "dist/checkpoint/file_group.h"

enum { DIGEST_BYTES = 512, DIGEST_BLOCK = 4 << 20, DIGEST_HASH = 33 };

/* Computes and writes the digest of a file that all have closed, and syncs it to disk; `hash` [DIGEST_HASH]
 * receives the hex digits. Collective over the mesh; the same status on all. GDN_INTERNAL. */
int digest_write(const struct file_group *group, const char *path, char *hash);

/* Verifies the digest. *has_digest is false where the file begins as a plain HDF5 file does, without a user
 * block: it is from elsewhere, or was rewritten by an HDF5 tool. `hash` [DIGEST_HASH] receives the hex digits
 * (NULL: not wanted). Collective over the mesh; the same status on all. GDN_INPUT where the file cannot be
 * read or does not match. */
int digest_verify(const struct file_group *group, const char *path, bool *has_digest, char *hash);

#endif
