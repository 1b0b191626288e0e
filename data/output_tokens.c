#include "data/output_tokens.h"

#include <sys/stat.h>

#include "data/stream.h"
#include "kernels/base/status.h"

enum { BLOCK = 1 << 14 }; /* tokens at a time */

/* Reads up to BLOCK tokens from `first` on as uint16; their number goes to *count. */
static int read_block(struct tokens *text, long first, uint16_t block[BLOCK], long *count) {
    int32_t values[BLOCK];
    long rest = tokens_count(text) - first;
    *count = rest < BLOCK ? rest : BLOCK;
    TRY(tokens_read(text, first, *count, values));
    for (long i = 0; i < *count; i++) block[i] = (uint16_t)values[i];
    return GDN_OK;
}

int output_tokens(struct output *output, struct tokens *text) {
    uint16_t block[BLOCK];
    for (long first = 0, n; first < tokens_count(text); first += n) {
        TRY(read_block(text, first, block, &n));
        TRY(output_write(output, block, (size_t)n * sizeof *block));
    }
    return GDN_OK;
}

int output_refuse_own_input(const char *path, const struct tokens *text) {
    struct stat output, document;
    if (stat(path, &output)) return GDN_OK;
    for (int i = 0; i < text->num_files; i++)
        if (!stat(text->files[i].path, &document) && document.st_ino == output.st_ino &&
            document.st_dev == output.st_dev)
            return gdn_fail(GDN_INPUT, "%s is both a document and the output; choose another output", path);
    return GDN_OK;
}

int output_whole(const char *path, int (*fill)(struct output *, struct tokens *), struct tokens *text) {
    struct output output;
    TRY(output_refuse_own_input(path, text));
    int status = output_open(path, &output);
    if (!status) status = fill(&output, text);
    if (!status) status = output_sync(&output);
    if (!status) status = output_publish(&output);
    output_close(&output);
    return status;
}
