#include "data/tokens.h"

#include <stdlib.h>

#include "data/stream.h"
#include "kernels/base/status.h"

void tokens_close(struct tokens *tokens) {
    if (!tokens) return;
    for (int i = 0; i < tokens->num_files; i++) {
        tokens->format->close(&tokens->files[i]);
        free(tokens->files[i].path);
    }
    free(tokens->files);
    free(tokens->starts);
    free(tokens);
}

long tokens_count(const struct tokens *tokens) {
    return tokens->starts[tokens->num_files];
}

/* The file that `position` lies in; the position must be in the stream. */
static int find_file(const struct tokens *tokens, long position) {
    int low = 0, high = tokens->num_files - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (tokens->starts[middle] <= position)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

int tokens_read(struct tokens *tokens, long first, long count, int32_t *out) {
    long total = tokens_count(tokens);
    if (first < 0 || count < 0 || first > total || count > total - first)
        return gdn_fail(GDN_INTERNAL, "tokens %ld to %ld were asked for from a stream of %ld", first,
                        first + count - 1, total);
    while (count > 0) {
        int i = find_file(tokens, first);
        long rest = tokens->starts[i + 1] - first, n = count < rest ? count : rest;
        TRY(tokens->format->read(&tokens->files[i], first - tokens->starts[i], n, out));
        first += n;
        count -= n;
        out += n;
    }
    return GDN_OK;
}

const char *tokens_place(const struct tokens *tokens, long position, long *in_file) {
    int i = find_file(tokens, position);
    *in_file = position - tokens->starts[i];
    return tokens->files[i].path;
}
