#include "data/output_tokens.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "data/format.h"
#include "kernels/base/status.h"

enum { BLOCK = 1 << 14 }; /* tokens at a time */

int output_borders(const struct written_tokens *written, struct borders *out) {
    const long tokens = tokens_count(written->tokens);
    int64_t *at = malloc((size_t)(written->documents + 1) * sizeof *at);
    if (!at) return gdn_fail(GDN_INTERNAL, "no memory for where %ld documents start", written->documents);
    *out = (struct borders){at, 0};
    at[out->count++] = 0;
    for (long i = 0; i + 1 < written->documents; i++) {
        int64_t border = written->ends[i] - written->separated;
        if (border > at[out->count - 1] && border < tokens) at[out->count++] = border;
    }
    at[out->count++] = tokens;
    return GDN_OK;
}

int output_tokens(struct output *output, const struct written_tokens *written) {
    int32_t values[BLOCK];
    uint16_t narrow[BLOCK];
    long count = tokens_count(written->tokens);
    bool whole = element_size(written->element) == sizeof *values;
    for (long first = 0, n; first < count; first += n) {
        n = count - first < BLOCK ? count - first : BLOCK;
        TRY(tokens_read(written->tokens, first, n, values));
        for (long i = 0; i < n && !whole; i++) narrow[i] = (uint16_t)values[i];
        TRY(output_write(output, whole ? (void *)values : narrow,
                         (size_t)n * element_size(written->element)));
    }
    return GDN_OK;
}

int output_counted(struct output *output, const struct written_tokens *written) {
    int32_t marks[BLOCK];
    uint8_t counted[BLOCK];
    long count = tokens_count(written->tokens);
    for (long first = 0, n; first < count; first += n) {
        n = count - first < BLOCK ? count - first : BLOCK;
        memset(marks, 0, sizeof marks);
        TRY(tokens_mark_uncounted(written->tokens, first, n, marks));
        for (long i = 0; i < n; i++) counted[i] = !marks[i];
        TRY(output_write(output, counted, (size_t)n));
    }
    return GDN_OK;
}

int output_file_verify(const char *path, const struct output_inputs *inputs) {
    TRY(output_verify(inputs->option, path));
    for (int i = 0; i < inputs->count; i++) TRY(output_refuse_input(path, inputs->path[i], inputs->what));
    return GDN_OK;
}

int output_tokens_verify(const struct token_format *format, const char *path,
                         const struct output_inputs *inputs) {
    if (format->verify_output && *path) return format->verify_output(path, inputs);
    return output_file_verify(path, inputs);
}

int output_whole(const char *path, int (*fill)(struct output *, const struct written_tokens *),
                 const struct written_tokens *written) {
    struct output output;
    int status = output_open(path, &output);
    if (!status) status = fill(&output, written);
    return output_finish(&output, status);
}
