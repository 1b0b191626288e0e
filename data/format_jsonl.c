/* Lines of JSON, each with a document's text: tokens only by way of a tokenizer, which makes a file of
 * another format of them (documents/cache.h). The row says that data.format may be so, and reads nothing
 * itself. */
#include "data/format.h"
#include "kernels/base/status.h"

static int jsonl_open(struct token_file *file) {
    return gdn_fail(
        GDN_INPUT,
        "%s: lines of JSON are no tokens; training and eval take them by data.tokenizer, and 'gdn "
        "data write --tokenizer' makes a token file of them",
        file->path);
}

const struct token_format jsonl_format = {
    .name = "jsonl",
    .about = "text in lines of JSON",
    .documents = true,
    .open = jsonl_open,
    .close = format_close_map,
};
