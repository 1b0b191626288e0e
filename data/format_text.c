/* Text: a file's bytes are its tokens, read where they are mapped. A file is a document, and TEXT_SEPARATOR,
 * which is no byte, closes every document that another follows: tokens.c counts it as the file's last token.
 */
#include <stdio.h>

#include "data/format.h"
#include "kernels/base/status.h"

static int text_open(struct token_file *file) {
    TRY(mapping_open(file->path, &file->map));
    file->raw = file->map.bytes;
    file->element = ELEMENT_UINT8;
    file->count = file->bytes = (long)file->map.size;
    file->documents = 1;
    snprintf(file->stored_as, sizeof file->stored_as, "bytes");
    return GDN_OK;
}

static int text_read(struct token_file *file, long first, long count, int32_t *out) {
    bool separator = first + count > file->bytes;
    TRY(format_read_raw(file, first, count - separator, out));
    if (separator) out[count - 1] = TEXT_SEPARATOR;
    return GDN_OK;
}

const struct token_format text_format = {
    .name = "text",
    .suffix = "",
    .separated = true,
    .open = text_open,
    .read = text_read,
    .close = format_close_map,
};
