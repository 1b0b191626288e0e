#include "dist/checkpoint/seal.h"
#include "kernels/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static const char MAGIC[] = "gdn checkpoint\n", BLOCKS[] = "xxh3-128-blocks ", WHOLE[] = "xxh3-128 ";
static const unsigned char HDF5_SIGNATURE[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

/* What a seal says, or should say. */
struct seal {
    int64_t bytes; /* of the file, its own included */
    int64_t block; /* bytes of a block; 0: hashed in one go */
    XXH128_hash_t hash;
};

static void format(const struct seal *seal, char text[SEAL_BYTES], char hash[SEAL_HASH]) {
    char kind[48];
    memset(text, 0, SEAL_BYTES);
    snprintf(hash, SEAL_HASH, "%016" PRIx64 "%016" PRIx64, seal->hash.high64, seal->hash.low64);
    if (seal->block)
        snprintf(kind, sizeof kind, "%s%" PRId64 " ", BLOCKS, seal->block);
    else
        strcpy(kind, WHOLE);
    snprintf(text, SEAL_BYTES, "%s%s%s\nbytes %" PRId64 "\n", MAGIC, kind, hash, seal->bytes);
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

static int64_t blocks_of(const struct seal *seal) {
    return (seal->bytes - SEAL_BYTES + seal->block - 1) / seal->block;
}

/* Hashes this rank's share of the blocks, low and high half into hashes [2·blocks]. 0 or errno. */
static int hash_share(const struct crew *crew, int fd, const struct seal *seal, char *buffer,
                      uint64_t *hashes) {
    int64_t blocks = blocks_of(seal), end = blocks * (crew->rank + 1) / crew->size;
    int error = 0;
    for (int64_t b = blocks * crew->rank / crew->size; b < end && !error; b++) {
        int64_t at = SEAL_BYTES + b * seal->block, left = seal->bytes - at;
        int64_t size = left < seal->block ? left : seal->block;
        error = read_range(fd, buffer, size, at);
        if (error) break;
        XXH128_hash_t hash = XXH3_128bits(buffer, (size_t)size);
        hashes[2 * b] = hash.low64, hashes[2 * b + 1] = hash.high64;
    }
    return error;
}

/* Over the block's length too, so that a damaged one shows where all of the file is one block. */
static XXH128_hash_t hash_of_hashes(const struct seal *seal, const uint64_t *hashes, XXH3_state_t *state) {
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, &seal->block, sizeof seal->block); /* little-endian, as all of the file */
    int64_t blocks = blocks_of(seal);
    for (int64_t b = 0; b < blocks; b++) {
        XXH128_canonical_t bytes;
        XXH128_canonicalFromHash(&bytes, (XXH128_hash_t){hashes[2 * b], hashes[2 * b + 1]});
        XXH3_128bits_update(state, &bytes, sizeof bytes);
    }
    return XXH3_128bits_digest(state);
}

/* The form of version 1, by the first rank alone. 0 or errno. */
static int hash_whole(int fd, struct seal *seal, char *buffer, XXH3_state_t *state) {
    XXH3_128bits_reset(state);
    for (int64_t at = SEAL_BYTES; at < seal->bytes; at += SEAL_BLOCK) {
        int64_t size = seal->bytes - at < SEAL_BLOCK ? seal->bytes - at : SEAL_BLOCK;
        int error = read_range(fd, buffer, size, at);
        if (error) return error;
        XXH3_128bits_update(state, buffer, (size_t)size);
    }
    seal->hash = XXH3_128bits_digest(state);
    return 0;
}

/* Computes seal->hash of the open file, the same on all ranks. `kind`: of a failure. */
static int compute(const struct crew *crew, const char *path, int fd, struct seal *seal, int kind) {
    int64_t blocks = seal->block ? blocks_of(seal) : 0;
    char *buffer = malloc((size_t)(seal->block ? seal->block : SEAL_BLOCK));
    uint64_t *hashes = calloc((size_t)(2 * blocks + 1), sizeof *hashes);
    XXH3_state_t *state = XXH3_createState();
    int error = 0, status;
    if (!buffer || !hashes || !state)
        error = ENOMEM;
    else if (seal->block)
        error = hash_share(crew, fd, seal, buffer, hashes);
    else if (crew->rank == 0)
        error = hash_whole(fd, seal, buffer, state);
    status = error ? gdn_fail(kind, "%s cannot be read: %s", path, strerror(error)) : 0;
    status = crew_agree(crew, status);
    if (!status && seal->block) {
        status = crew_sum(crew, hashes, 2 * blocks);
        if (!status) seal->hash = hash_of_hashes(seal, hashes, state);
    }
    XXH3_freeState(state);
    free(hashes);
    free(buffer);
    return status;
}

/* Opens for reading, on every rank. */
static int open_all(const struct crew *crew, const char *path, int kind, int *fd) {
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait where it is a pipe */
    int status = *fd < 0 ? gdn_fail(kind, "%s cannot be opened: %s", path, strerror(errno)) : 0;
    status = crew_agree(crew, status);
    if (status && *fd >= 0) close(*fd);
    return status;
}

/* ------------------------------------------------------------------------------------------- writing */

static int write_first_bytes(const char *path, int64_t bytes, const char text[SEAL_BYTES]) {
    int fd = open(path, O_WRONLY | O_CLOEXEC), error = fd < 0 ? errno : 0;
    if (!error && ftruncate(fd, bytes)) error = errno; /* gives back space that was reserved beyond the end */
    if (!error) {
        ssize_t n = pwrite(fd, text, SEAL_BYTES, 0);
        if (n != SEAL_BYTES) error = n < 0 ? errno : EIO;
    }
    if (!error && fsync(fd)) error = errno;
    if (fd >= 0 && close(fd) && !error) error = errno;
    return error ? gdn_fail(GDN_INTERNAL, "%s cannot be written: %s", path, strerror(error)) : 0;
}

int seal_write(const struct crew *crew, const char *path, char *hash) {
    char text[SEAL_BYTES];
    struct seal seal = {.block = SEAL_BLOCK};
    struct stat about;
    int fd, status = 0;
    TRY(open_all(crew, path, GDN_INTERNAL, &fd));
    if (crew->rank == 0 && fstat(fd, &about))
        status = gdn_fail(GDN_INTERNAL, "%s cannot be read: %s", path, strerror(errno));
    else if (crew->rank == 0)
        seal.bytes = about.st_size;
    status = crew_agree(crew, status);
    if (!status) status = crew_broadcast(crew, &seal, sizeof seal);
    if (!status) status = compute(crew, path, fd, &seal, GDN_INTERNAL);
    close(fd);
    if (status) return status;
    format(&seal, text, hash);
    return crew_agree(crew, crew->rank == 0 ? write_first_bytes(path, seal.bytes, text) : 0);
}

/* ------------------------------------------------------------------------------------------ checking */

static int damaged_beginning(const char *path) {
    return gdn_fail(GDN_INPUT,
                    "%s is neither an HDF5 file nor a gdn checkpoint, or its first bytes are damaged", path);
}

/* What the first rank learns from the file's beginning. */
struct beginning {
    bool sealed;
    struct seal seal; /* but for the hash */
    char text[SEAL_BYTES + 1];
};

static int read_beginning(const char *path, int fd, struct beginning *out) {
    struct stat about;
    if (fstat(fd, &about)) return gdn_fail(GDN_INPUT, "%s cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode)) return gdn_fail(GDN_INPUT, "%s is not a file", path);
    ssize_t n = pread(fd, out->text, SEAL_BYTES, 0);
    if (n < 0) return gdn_fail(GDN_INPUT, "%s cannot be read: %s", path, strerror(errno));
    out->sealed = memcmp(out->text, HDF5_SIGNATURE, sizeof HDF5_SIGNATURE) != 0;
    if (!out->sealed) return 0;
    if (memcmp(out->text, MAGIC, strlen(MAGIC))) return damaged_beginning(path);

    const char *kind = out->text + strlen(MAGIC), *length = strstr(out->text, "\nbytes ");
    out->seal.bytes = length ? strtoll(length + strlen("\nbytes "), NULL, 10) : 0;
    if (out->seal.bytes < SEAL_BYTES) return damaged_beginning(path);
    if (out->seal.bytes != about.st_size)
        return gdn_fail(GDN_INPUT, "%s is damaged: %" PRId64 " bytes long where %" PRId64 " were written",
                        path, (int64_t)about.st_size, out->seal.bytes);
    if (!memcmp(kind, WHOLE, strlen(WHOLE))) return 0;
    out->seal.block = memcmp(kind, BLOCKS, strlen(BLOCKS)) ? 0 : strtoll(kind + strlen(BLOCKS), NULL, 10);
    return out->seal.block >= 1 << 12 && out->seal.block <= 1 << 30 ? 0 : damaged_beginning(path);
}

static int check_open_file(const struct crew *crew, const char *path, int fd, bool *sealed, char *hash) {
    struct beginning found = {0};
    char right[SEAL_BYTES], digits[SEAL_HASH];
    TRY(crew_agree(crew, crew->rank == 0 ? read_beginning(path, fd, &found) : 0));
    TRY(crew_broadcast(crew, &found, sizeof found));
    *sealed = found.sealed;
    if (!*sealed) return 0;
    TRY(compute(crew, path, fd, &found.seal, GDN_INPUT));
    format(&found.seal, right, digits);
    if (hash) memcpy(hash, digits, SEAL_HASH);
    int status = 0;
    if (crew->rank == 0 && memcmp(found.text, right, SEAL_BYTES))
        status =
            gdn_fail(GDN_INPUT, "%s is damaged: its bytes do not match the checksum in its first %d bytes",
                     path, SEAL_BYTES);
    return crew_agree(crew, status);
}

int seal_check(const struct crew *crew, const char *path, bool *sealed, char *hash) {
    int fd;
    *sealed = false;
    TRY(open_all(crew, path, GDN_INPUT, &fd));
    int status = check_open_file(crew, path, fd, sealed, hash);
    close(fd);
    return status;
}
