#include "data/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "data/files.h"
#include "data/likeness.h"
#include "data/stream.h"
#include "kernels/base/status.h"

static int open_file(struct tokens *tokens, const char *path, struct token_file *file) {
    file->path = strdup(path);
    if (!file->path) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    TRY(likeness_verify(path, tokens->format));
    return tokens->format->open(file);
}

static int open_all(struct tokens *tokens, const char *const *paths, int num_files) {
    tokens->files = calloc((size_t)num_files, sizeof *tokens->files);
    tokens->starts = calloc((size_t)num_files + 1, sizeof *tokens->starts);
    if (!tokens->files || !tokens->starts)
        return gdn_fail(GDN_INTERNAL, "no memory for %d token files", num_files);
    for (int i = 0; i < num_files; i++) {
        struct token_file *file = &tokens->files[i];
        tokens->num_files = i + 1;
        TRY(open_file(tokens, paths[i], file));
        if (tokens->format->separated && i < num_files - 1) file->count++;
        if (__builtin_add_overflow(tokens->starts[i], file->count, &tokens->starts[i + 1]))
            return gdn_fail(GDN_INPUT, "%s: more than 2^63 tokens in the files up to this one", file->path);
    }
    return GDN_OK;
}

int tokens_open_files(const char *const *paths, int num_files, enum tokens_format format,
                      struct tokens **out) {
    *out = NULL;
    struct tokens *tokens = calloc(1, sizeof *tokens);
    if (!tokens) return gdn_fail(GDN_INTERNAL, "no memory for a token stream");
    tokens->format = token_formats[format];
    int status = open_all(tokens, paths, num_files);
    if (status) {
        tokens_close(tokens);
        return status;
    }
    *out = tokens;
    return GDN_OK;
}

int tokens_open_list(const struct path_list *patterns, enum tokens_format format, struct tokens **out) {
    *out = NULL;
    struct path_list files;
    int status = files_find(patterns, format, &files);
    if (!status) status = tokens_open_files((const char *const *)files.paths, files.count, format, out);
    path_list_free(&files);
    return status;
}

int tokens_open(const char *pattern, enum tokens_format format, struct tokens **out) {
    return tokens_open_list(&(struct path_list)ONE_PATH(pattern), format, out);
}

int tokens_detect(const char *pattern, enum tokens_format *out) {
    struct path_list files;
    *out = TOKENS_TEXT;
    int status = files_find(&(struct path_list)ONE_PATH(pattern), TOKENS_TEXT, &files);
    const struct likeness *found = status ? NULL : likeness_of(files.paths[0]);
    if (found && found->format != NO_FORMAT) *out = (enum tokens_format)found->format;
    path_list_free(&files);
    return status;
}

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
