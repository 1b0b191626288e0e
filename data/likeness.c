#include "data/likeness.h"

#include "data/head.h"
#include "kernels/base/status.h"

/* Marks of files that no format reads, and that no text begins with by chance. */
#define MARK(text) text, sizeof text - 1
static const struct {
    const char *what, *advice;
    size_t at; /* where in the file the mark lies */
    const void *mark;
    size_t size;
} foreign[] = {
    {"compressed by gzip", "unpack it with gzip -d", 0, MARK("\x1f\x8b\x08")},
    {"compressed by zstd", "unpack it with zstd -d", 0, MARK("\x28\xb5\x2f\xfd")},
    {"compressed by xz", "unpack it with xz -d", 0, MARK("\xfd\x37zXZ\0")},
    {"compressed by bzip2", "unpack it with bzip2 -d", 4, MARK("\x31\x41\x59\x26\x53\x59")},
    {"compressed by lz4", "unpack it with lz4 -d", 0, MARK("\x04\x22\x4d\x18")},
    {"a zip archive", "unpack it with unzip", 0, MARK("PK\x03\x04")},
    {"a tar archive", "unpack it with tar -xf", 257, MARK("ustar")},
    {"a Parquet file", "write its text to plain files", 0, MARK("PAR1\x15")},
    {"a NumPy array", "write its numbers without header (tofile, uint16) for format nanogpt", 0,
     MARK("\x93NUMPY")},
};
enum { NUM_FOREIGN = sizeof foreign / sizeof *foreign };

struct likeness likeness_of(const char *path) {
    const struct head head = head_read(path);
    const struct token_format *format;
    for (int i = 0; (format = token_format_of(i)); i++) {
        const char *what = format->recognise ? format->recognise(path, &head) : NULL;
        if (what) return (struct likeness){.what = what, .format = format};
    }
    for (int i = 0; i < NUM_FOREIGN; i++)
        if (head_has(&head, foreign[i].at, foreign[i].mark, foreign[i].size))
            return (struct likeness){.what = foreign[i].what, .advice = foreign[i].advice};
    return (struct likeness){0};
}

int likeness_verify(const char *path, const struct token_format *format) {
    const struct likeness found = likeness_of(path);
    if (!found.what || found.format == format) return GDN_OK;
    if (found.format)
        return gdn_fail(GDN_INPUT, "%s is %s, which format %s cannot read; format %s is expected", path,
                        found.what, format->name, found.format->name);
    if (format->unmarked) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s is %s, which no format reads; %s", path, found.what, found.advice);
}
