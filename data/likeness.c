#include "data/likeness.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/format_llmc.h"
#include "data/format_megatron.h"
#include "kernels/base/status.h"

enum { HEAD = 512 }; /* bytes that are looked at */

static const int32_t llmc_uint16 = LLMC_MAGIC_UINT16, llmc_uint32 = LLMC_MAGIC_UINT32;

/* Marks that no text begins with by chance. */
#define MARK(text) text, sizeof text - 1
static const struct likeness known[] = {
    {"an HDF5 file", TOKENS_HDF5, NULL, 0, MARK("\x89HDF\r\n\x1a\n")},
    {"a file of llm.c tokens", TOKENS_LLMC, NULL, 0, &llmc_uint16, sizeof llmc_uint16},
    {"a file of llm.c tokens", TOKENS_LLMC, NULL, 0, &llmc_uint32, sizeof llmc_uint32},
    {"the index of a Megatron pair", TOKENS_MEGATRON, NULL, 0, MEGATRON_MAGIC, MEGATRON_MAGIC_BYTES},
    {"compressed by gzip", NO_FORMAT, "unpack it with gzip -d", 0, MARK("\x1f\x8b\x08")},
    {"compressed by zstd", NO_FORMAT, "unpack it with zstd -d", 0, MARK("\x28\xb5\x2f\xfd")},
    {"compressed by xz", NO_FORMAT, "unpack it with xz -d", 0, MARK("\xfd\x37zXZ\0")},
    {"compressed by bzip2", NO_FORMAT, "unpack it with bzip2 -d", 4, MARK("\x31\x41\x59\x26\x53\x59")},
    {"compressed by lz4", NO_FORMAT, "unpack it with lz4 -d", 0, MARK("\x04\x22\x4d\x18")},
    {"a zip archive", NO_FORMAT, "unpack it with unzip", 0, MARK("PK\x03\x04")},
    {"a tar archive", NO_FORMAT, "unpack it with tar -xf", 257, MARK("ustar")},
    {"a Parquet file", NO_FORMAT, "write its text to plain files", 0, MARK("PAR1\x15")},
    {"a NumPy array", NO_FORMAT, "write its numbers without header (tofile, uint16) for format nanogpt", 0,
     MARK("\x93NUMPY")},
};
enum { NUM_KNOWN = sizeof known / sizeof *known };

static const struct likeness megatron_bin = {
    .what = "the .bin of a Megatron pair",
    .format = TOKENS_MEGATRON,
};

static const struct likeness *by_mark(const char *path) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return NULL;
    char head[HEAD];
    ssize_t length = read(descriptor, head, sizeof head);
    close(descriptor);
    for (int i = 0; i < NUM_KNOWN; i++)
        if (known[i].at + known[i].size <= length &&
            !memcmp(head + known[i].at, known[i].mark, (size_t)known[i].size))
            return &known[i];
    return NULL;
}

/* Whether the index of a pair lies beside `path`, which is its .bin or both files' name without suffix. */
static bool has_index(const char *path) {
    size_t length = strlen(path);
    bool bin = length >= 4 && !strcmp(path + length - 4, ".bin");
    if (!bin && !access(path, F_OK)) return false; /* a file of its own */
    char *index = megatron_path(path, ".idx");
    const struct likeness *found = index ? by_mark(index) : NULL;
    free(index);
    return found && found->format == TOKENS_MEGATRON;
}

const struct likeness *likeness_of(const char *path) {
    const struct likeness *found = by_mark(path);
    if (found && found->format != NO_FORMAT) return found;
    return has_index(path) ? &megatron_bin : found; /* a .bin's tokens may look like anything */
}

int likeness_verify(const char *path, const struct token_format *format) {
    const struct likeness *found = likeness_of(path);
    if (!found) return GDN_OK;
    if (found->format != NO_FORMAT) {
        const struct token_format *right = token_formats[found->format];
        if (format == right) return GDN_OK;
        return gdn_fail(GDN_INPUT, "%s is %s, which format %s cannot read; format %s is expected", path,
                        found->what, format->name, right->name);
    }
    if (format == &nanogpt_format) return GDN_OK; /* has no mark, and any two tokens may be its first */
    return gdn_fail(GDN_INPUT, "%s is %s, which no format reads; %s", path, found->what, found->advice);
}
