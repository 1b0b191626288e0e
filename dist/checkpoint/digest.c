#include "dist/checkpoint/digest.h"
#include "kernels/base/status.h"
#include "kernels/base/write_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static const char MAGIC[] = "gdn checkpoint\n", BLOCKS[] = "xxh3-128-blocks ", FULL[] = "xxh3-128 ";
static const unsigned char HDF5_SIGNATURE[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

/* What a digest says, or should say. */
struct digest {
    int64_t bytes; /* of the file, its own included */
    int64_t block; /* bytes of a block; 0: hashed in one go */
    XXH128_hash_t hash;
};

static void format(const struct digest *digest, char text[DIGEST_BYTES], char hash[DIGEST_HASH]) {
    char kind[48];
    memset(text, 0, DIGEST_BYTES);
    snprintf(hash, DIGEST_HASH, "%016" PRIx64 "%016" PRIx64, digest->hash.high64, digest->hash.low64);
    if (digest->block)
        snprintf(kind, sizeof kind, "%s%" PRId64 " ", BLOCKS, digest->block);
    else
        strcpy(kind, FULL);
    snprintf(text, DIGEST_BYTES, "%s%s%s\nbytes %" PRId64 "\n", MAGIC, kind, hash, digest->bytes);
}

/* Reads [at, at + size) of the file. Returns 0 or errno; EIO where the file ends before. */
static int read_range(int fd, char *buffer, int64_t size, int64_t at) {
    for (int64_t done = 0; done < size;) {
        ssize_t n = pread(fd, buffer + done, (size_t)(size - done), at + done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? errno : EIO;
        done += n;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- hashing */

static int64_t blocks_of(const struct digest *digest) {
    return (digest->bytes - DIGEST_BYTES + digest->block - 1) / digest->block;
}

/* Hashes this rank's share of the blocks, low and high half into hashes [2·blocks]. 0 or errno. */
static int hash_share(const struct file_group *group, int fd, const struct digest *digest, char *buffer,
                      uint64_t *hashes) {
    int64_t blocks = blocks_of(digest), end = blocks * (group->rank + 1) / group->size;
    int error = 0;
    for (int64_t b = blocks * group->rank / group->size; b < end && !error; b++) {
        int64_t at = DIGEST_BYTES + b * digest->block, left = digest->bytes - at;
        int64_t size = left < digest->block ? left : digest->block;
        error = read_range(fd, buffer, size, at);
        if (error) break;
        XXH128_hash_t hash = XXH3_128bits(buffer, (size_t)size);
        hashes[2 * b] = hash.low64, hashes[2 * b + 1] = hash.high64;
    }
    return error;
}

/* Over the block's length too, so that a damaged one shows where all of the file is one block. */
static XXH128_hash_t hash_of_hashes(const struct digest *digest, const uint64_t *hashes,
                                    XXH3_state_t *state) {
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, &digest->block, sizeof digest->block); /* little-endian, as all of the file */
    int64_t blocks = blocks_of(digest);
    for (int64_t b = 0; b < blocks; b++) {
        XXH128_canonical_t bytes;
        XXH128_canonicalFromHash(&bytes, (XXH128_hash_t){hashes[2 * b], hashes[2 * b + 1]});
        XXH3_128bits_update(state, &bytes, sizeof bytes);
    }
    return XXH3_128bits_digest(state);
}

/* The form of version 1, by the first rank alone. 0 or errno. */
static int hash_full(int fd, struct digest *digest, char *buffer, XXH3_state_t *state) {
    XXH3_128bits_reset(state);
    for (int64_t at = DIGEST_BYTES; at < digest->bytes; at += DIGEST_BLOCK) {
        int64_t size = digest->bytes - at < DIGEST_BLOCK ? digest->bytes - at : DIGEST_BLOCK;
        int error = read_range(fd, buffer, size, at);
        if (error) return error;
        XXH3_128bits_update(state, buffer, (size_t)size);
    }
    digest->hash = XXH3_128bits_digest(state);
    return 0;
}

/* Computes digest->hash of the open file, the same on all ranks. `kind`: of a failure. */
static int compute(const struct file_group *group, const char *path, int fd, struct digest *digest,
                   int kind) {
    int64_t blocks = digest->block ? blocks_of(digest) : 0;
    char *buffer = malloc((size_t)(digest->block ? digest->block : DIGEST_BLOCK));
    uint64_t *hashes = calloc((size_t)(2 * blocks + 1), sizeof *hashes);
    XXH3_state_t *state = XXH3_createState();
    int error = 0, status;
    if (!buffer || !hashes || !state)
        error = ENOMEM;
    else if (digest->block)
        error = hash_share(group, fd, digest, buffer, hashes);
    else if (group->rank == 0)
        error = hash_full(fd, digest, buffer, state);
    status = error ? gdn_fail(kind, "%s cannot be read: %s", path, strerror(error)) : 0;
    status = file_group_agree(group, status);
    if (!status && digest->block) {
        status = file_group_sum(group, hashes, 2 * blocks);
        if (!status) digest->hash = hash_of_hashes(digest, hashes, state);
    }
    XXH3_freeState(state);
    free(hashes);
    free(buffer);
    return status;
}

/* Opens for reading, on every rank. */
static int open_all(const struct file_group *group, const char *path, int kind, int *fd) {
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait where it is a pipe */
    int status = *fd < 0 ? gdn_fail(kind, "%s cannot be opened: %s", path, strerror(errno)) : 0;
    status = file_group_agree(group, status);
    if (status && *fd >= 0) close(*fd);
    return status;
}

/* ------------------------------------------------------------------------------------------- writing */

static int write_first_bytes(const char *path, int64_t bytes, const char text[DIGEST_BYTES]) {
    int fd = open(path, O_WRONLY | O_CLOEXEC), error = fd < 0 ? errno : 0;
    if (!error && ftruncate(fd, bytes)) error = errno; /* gives back space that was reserved beyond the end */
    if (!error) error = write_whole_at(fd, text, DIGEST_BYTES, 0);
    if (!error && fsync(fd)) error = errno;
    if (fd >= 0 && close(fd) && !error) error = errno;
    return error ? gdn_fail(GDN_INTERNAL, "%s cannot be written: %s", path, strerror(error)) : 0;
}

int digest_write(const struct file_group *group, const char *path, char *hash) {
    char text[DIGEST_BYTES];
    struct digest digest = {.block = DIGEST_BLOCK};
    struct stat about;
    int fd, status = 0;
    TRY(open_all(group, path, GDN_INTERNAL, &fd));
    if (group->rank == 0 && fstat(fd, &about))
        status = gdn_fail(GDN_INTERNAL, "%s cannot be read: %s", path, strerror(errno));
    else if (group->rank == 0)
        digest.bytes = about.st_size;
    status = file_group_agree(group, status);
    if (!status) status = file_group_broadcast(group, &digest, sizeof digest);
    if (!status) status = compute(group, path, fd, &digest, GDN_INTERNAL);
    close(fd);
    if (status) return status;
    format(&digest, text, hash);
    return file_group_agree(group, group->rank == 0 ? write_first_bytes(path, digest.bytes, text) : 0);
}

/* ------------------------------------------------------------------------------------------ checking */

static int damaged_beginning(const char *path) {
    return gdn_fail(GDN_INPUT,
                    "%s is neither an HDF5 file nor a gdn checkpoint, or its first bytes are damaged", path);
}

/* What the first rank learns from the file's beginning. */
struct beginning {
    bool has_digest;
    struct digest digest; /* but for the hash */
    char text[DIGEST_BYTES + 1];
};

static int read_beginning(const char *path, int fd, struct beginning *out) {
    struct stat about;
    if (fstat(fd, &about)) return gdn_fail(GDN_INPUT, "%s cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode)) return gdn_fail(GDN_INPUT, "%s is not a file", path);
    ssize_t n = pread(fd, out->text, DIGEST_BYTES, 0);
    if (n < 0) return gdn_fail(GDN_INPUT, "%s cannot be read: %s", path, strerror(errno));
    out->has_digest = memcmp(out->text, HDF5_SIGNATURE, sizeof HDF5_SIGNATURE) != 0;
    if (!out->has_digest) return 0;
    if (memcmp(out->text, MAGIC, strlen(MAGIC))) return damaged_beginning(path);

    const char *kind = out->text + strlen(MAGIC), *length = strstr(out->text, "\nbytes ");
    out->digest.bytes = length ? strtoll(length + strlen("\nbytes "), NULL, 10) : 0;
    if (out->digest.bytes < DIGEST_BYTES) return damaged_beginning(path);
    if (out->digest.bytes != about.st_size)
        return gdn_fail(GDN_INPUT, "%s is damaged: %" PRId64 " bytes long where %" PRId64 " were written",
                        path, (int64_t)about.st_size, out->digest.bytes);
    if (!memcmp(kind, FULL, strlen(FULL))) return 0;
    out->digest.block = memcmp(kind, BLOCKS, strlen(BLOCKS)) ? 0 : strtoll(kind + strlen(BLOCKS), NULL, 10);
    return out->digest.block >= 1 << 12 && out->digest.block <= 1 << 30 ? 0 : damaged_beginning(path);
}

static int verify_open_file(const struct file_group *group, const char *path, int fd, bool *has_digest,
                            char *hash) {
    struct beginning found = {0};
    char right[DIGEST_BYTES], digits[DIGEST_HASH];
    TRY(file_group_agree(group, group->rank == 0 ? read_beginning(path, fd, &found) : 0));
    TRY(file_group_broadcast(group, &found, sizeof found));
    *has_digest = found.has_digest;
    if (!*has_digest) return 0;
    TRY(compute(group, path, fd, &found.digest, GDN_INPUT));
    format(&found.digest, right, digits);
    if (hash) memcpy(hash, digits, DIGEST_HASH);
    int status = 0;
    if (group->rank == 0 && memcmp(found.text, right, DIGEST_BYTES))
        status =
            gdn_fail(GDN_INPUT, "%s is damaged: its bytes do not match the checksum in its first %d bytes",
                     path, DIGEST_BYTES);
    return file_group_agree(group, status);
}

int digest_verify(const struct file_group *group, const char *path, bool *has_digest, char *hash) {
    int fd;
    *has_digest = false;
    TRY(open_all(group, path, GDN_INPUT, &fd));
    int status = verify_open_file(group, path, fd, has_digest, hash);
    close(fd);
    return status;
}
