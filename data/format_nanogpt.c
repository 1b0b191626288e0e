/* nanoGPT's train.bin: uint16 tokens from the first byte to the last, as numpy's tofile() writes them.
 * Nothing in such a file tells what it is, so it is read only where its format is named. */
#include <stdio.h>

#include "data/format.h"
#include "data/output_tokens.h"
#include "kernels/base/status.h"

static int nanogpt_open(struct token_file *file) {
    TRY(mapping_open(file->path, &file->map));
    file->raw = file->map.bytes;
    file->element = ELEMENT_UINT16;
    file->bytes = (long)file->map.size;
    if (file->bytes % 2)
        return gdn_fail(GDN_INPUT,
                        "%s has %ld bytes, an odd number, and nanogpt's tokens have two bytes each: it is "
                        "truncated or in another format",
                        file->path, file->bytes);
    file->count = file->bytes / 2;
    file->documents = NOT_RECORDED;
    snprintf(file->stored_as, sizeof file->stored_as, "%s", element_name(file->element));
    return GDN_OK;
}

static int nanogpt_write(const char *path, const struct written_tokens *written) {
    return output_whole(path, output_tokens, written);
}

const struct token_format nanogpt_format = {
    .name = "nanogpt",
    .about = "raw uint16",
    .unmarked = true,
    .narrow = true,
    .open = nanogpt_open,
    .read = format_read_raw,
    .close = format_close_map,
    .write = nanogpt_write,
};
