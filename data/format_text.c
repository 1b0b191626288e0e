/* Text: a file's bytes are its tokens, read where they are mapped. A file is a document, and TEXT_SEPARATOR,
 * which is no byte, closes every document that another follows: stream.c counts it as the file's last token.
 *
 * A NUL byte is what no text has and nearly every other file: it is looked for in the first bytes of a file
 * when it is opened, and in all that is read from it, so that no model ever sees one. */
#include <stdio.h>
#include <string.h>

#include "data/format.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"

enum { LOOKED_AT = 1 << 20 }; /* bytes of a file, when it is opened */

/* Of bytes [first, first + count) of the file. */
static int refuse_nul(const struct token_file *file, long first, long count) {
    const uint8_t *raw = file->raw + first, *nul = memchr(raw, 0, (size_t)count);
    if (!nul) return GDN_OK;
    bool wide = file->bytes >= 2 && (!memcmp(file->raw, "\xff\xfe", 2) || !memcmp(file->raw, "\xfe\xff", 2));
    return gdn_fail(
        GDN_INPUT, "%s is no text: it has a NUL byte at position %ld; %s", file->path, nul - file->raw,
        wide ? "it looks like UTF-16, which iconv -f UTF-16 -t UTF-8 turns into text that can be read"
             : "for token files name their format: hdf5, llmc, megatron, or nanogpt (raw uint16 numbers)");
}

static int text_open(struct token_file *file) {
    TRY(mapping_open(file->path, &file->map));
    file->raw = file->map.bytes;
    file->element = ELEMENT_UINT8;
    file->count = file->bytes = (long)file->map.size;
    file->documents = 1;
    snprintf(file->stored_as, sizeof file->stored_as, "bytes");
    return refuse_nul(file, 0, file->bytes < LOOKED_AT ? file->bytes : LOOKED_AT);
}

static int text_read(struct token_file *file, long first, long count, int32_t *out) {
    bool separator = first + count > file->bytes;
    TRY(refuse_nul(file, first, count - separator));
    TRY(format_read_raw(file, first, count - separator, out));
    if (separator) out[count - 1] = TEXT_SEPARATOR;
    return GDN_OK;
}

/* A separator belongs to the document that it opens, the next file's. The first file has none before it. */
static int text_mark(struct token_file *file, long first, long count, int32_t *row) {
    if (first == 0 && file->first) row[0] |= MARK_DOCUMENT;
    if (first + count > file->bytes) row[count - 1] |= MARK_DOCUMENT;
    return GDN_OK;
}

const struct token_format text_format = {
    .name = "text",
    .about = "bytes",
    .text = true,
    .open = text_open,
    .read = text_read,
    .close = format_close_map,
    .mark_documents = text_mark,
};
