#include "dist/seal.h"
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

static const char MAGIC[] = "gdn checkpoint\n";
static const unsigned char HDF5_SIGNATURE[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

/* Hashes a file from the end of the block on, counting its bytes. Returns 0 or errno. */
static int hash_file(int fd, XXH3_state_t *hash, char *buffer, size_t size, int64_t *bytes) {
    *bytes = SEAL_BYTES;
    for (;;) {
        ssize_t n = pread(fd, buffer, size, *bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return 0;
        XXH3_128bits_update(hash, buffer, (size_t)n);
        *bytes += n;
    }
}

/* The block that a file should have. Returns 0 or errno. */
static int compute(int fd, char block[SEAL_BYTES]) {
    enum { BUFFER = 4 << 20 };
    char *buffer = malloc(BUFFER);
    XXH3_state_t *hash = XXH3_createState();
    int error = ENOMEM;
    if (buffer && hash) {
        int64_t bytes;
        XXH3_128bits_reset(hash);
        error = hash_file(fd, hash, buffer, BUFFER, &bytes);
        XXH128_hash_t sum = XXH3_128bits_digest(hash);
        memset(block, 0, SEAL_BYTES);
        snprintf(block, SEAL_BYTES, "%sxxh3-128 %016" PRIx64 "%016" PRIx64 "\nbytes %" PRId64 "\n", MAGIC,
                 sum.high64, sum.low64, bytes);
    }
    XXH3_freeState(hash);
    free(buffer);
    return error;
}

int seal_write(const char *path, int fd) {
    char block[SEAL_BYTES];
    struct stat about;
    int error = compute(fd, block);
    if (!error && fstat(fd, &about)) error = errno;
    if (!error && ftruncate(fd, about.st_size))
        error = errno; /* gives back space that was reserved beyond the end */
    if (!error) {
        ssize_t n = pwrite(fd, block, SEAL_BYTES, 0);
        if (n != SEAL_BYTES) error = n < 0 ? errno : EIO;
    }
    if (!error && fsync(fd)) error = errno;
    return error ? gdn_fail(GDN_INTERNAL, "%s cannot be written: %s", path, strerror(error)) : 0;
}

static int check_open_file(const char *path, int fd, bool *sealed) {
    char block[SEAL_BYTES] = {0}, right[SEAL_BYTES];
    struct stat about;
    if (fstat(fd, &about)) return gdn_fail(GDN_INPUT, "%s cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode)) return gdn_fail(GDN_INPUT, "%s is not a file", path);
    ssize_t n = pread(fd, block, SEAL_BYTES, 0);
    if (n < 0) return gdn_fail(GDN_INPUT, "%s cannot be read: %s", path, strerror(errno));
    *sealed = memcmp(block, HDF5_SIGNATURE, sizeof HDF5_SIGNATURE) != 0;
    if (!*sealed) return 0;
    if (memcmp(block, MAGIC, strlen(MAGIC)))
        return gdn_fail(GDN_INPUT,
                        "%s is neither an HDF5 file nor a gdn checkpoint, or its first bytes are damaged",
                        path);

    int64_t bytes = 0;
    const char *length = memmem(block, SEAL_BYTES, "bytes ", 6);
    if (length) bytes = strtoll(length + 6, NULL, 10);
    if (bytes > about.st_size)
        return gdn_fail(GDN_INPUT, "%s is damaged: %" PRId64 " bytes long where %" PRId64 " were written",
                        path, (int64_t)about.st_size, bytes);
    int error = compute(fd, right);
    if (error) return gdn_fail(GDN_INPUT, "%s cannot be read: %s", path, strerror(error));
    if (memcmp(block, right, SEAL_BYTES))
        return gdn_fail(GDN_INPUT, "%s is damaged: its bytes do not match the checksum in its first %d bytes",
                        path, SEAL_BYTES);
    return 0;
}

int seal_check(const char *path, bool *sealed) {
    *sealed = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait where it is a pipe */
    if (fd < 0) return gdn_fail(GDN_INPUT, "%s cannot be opened: %s", path, strerror(errno));
    int status = check_open_file(path, fd, sealed);
    close(fd);
    return status;
}
