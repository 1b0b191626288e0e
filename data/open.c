/* Opens files as a stream, and tells their format. */
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
        file->first = i == 0;
        TRY(open_file(tokens, paths[i], file));
        if (tokens->format->text && i < num_files - 1) file->count++;
        if (__builtin_add_overflow(tokens->starts[i], file->count, &tokens->starts[i + 1]))
            return gdn_fail(GDN_INPUT, "%s: more than 2^63 tokens in the files up to this one", file->path);
    }
    return GDN_OK;
}

int tokens_open_files(const char *const *paths, int num_files, const struct token_format *format,
                      struct tokens **out) {
    *out = NULL;
    struct tokens *tokens = calloc(1, sizeof *tokens);
    if (!tokens) return gdn_fail(GDN_INTERNAL, "no memory for a token stream");
    tokens->format = format;
    int status = open_all(tokens, paths, num_files);
    if (status) {
        tokens_close(tokens);
        return status;
    }
    *out = tokens;
    return GDN_OK;
}

int tokens_open_list(const struct path_list *patterns, const struct token_format *format,
                     struct tokens **out) {
    *out = NULL;
    struct path_list files;
    int status = files_find(patterns, format, &files);
    if (!status) status = tokens_open_files((const char *const *)files.paths, files.count, format, out);
    path_list_free(&files);
    return status;
}

int tokens_open(const char *pattern, const struct token_format *format, struct tokens **out) {
    return tokens_open_list(&(struct path_list)ONE_PATH(pattern), format, out);
}

int tokens_detect(const char *pattern, const struct token_format **out) {
    struct path_list files;
    *out = &text_format;
    int status = files_find(&(struct path_list)ONE_PATH(pattern), &text_format, &files);
    const struct token_format *found = status ? NULL : likeness_of(files.paths[0]).format;
    if (found) *out = found;
    path_list_free(&files);
    return status;
}
