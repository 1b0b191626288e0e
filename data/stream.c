#include "data/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/stream.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"

enum { BLOCK = 4096 }; /* tokens marked at a time */

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

/* What is done to the tokens `first` … of one file, of which `out` is the place. */
typedef int visit(const struct token_format *format, struct token_file *file, long first, long count,
                  int32_t *out);

/* The same to all files that tokens of a range of the stream lie in. */
static int visit_range(struct tokens *tokens, long first, long count, int32_t *out, visit *each) {
    long total = tokens_count(tokens);
    if (first < 0 || count < 0 || first > total || count > total - first)
        return gdn_fail(GDN_INTERNAL, "tokens %ld to %ld were asked for from a stream of %ld", first,
                        first + count - 1, total);
    while (count > 0) {
        int i = find_file(tokens, first);
        long rest = tokens->starts[i + 1] - first, n = count < rest ? count : rest;
        TRY(each(tokens->format, &tokens->files[i], first - tokens->starts[i], n, out));
        first += n;
        count -= n;
        out += n;
    }
    return GDN_OK;
}

static int read_file(const struct token_format *format, struct token_file *file, long first, long count,
                     int32_t *out) {
    return format->read(file, first, count, out);
}

int tokens_read(struct tokens *tokens, long first, long count, int32_t *out) {
    return visit_range(tokens, first, count, out, read_file);
}

bool tokens_masked(const struct tokens *tokens) {
    bool any = false;
    for (int i = 0; i < tokens->num_files; i++) any |= tokens->files[i].masked;
    return any;
}

static int mark_file(const struct token_format *format, struct token_file *file, long first, long count,
                     int32_t *row) {
    bool counted[BLOCK];
    if (!file->masked) return GDN_OK;
    for (long done = 0, n; done < count; done += n) {
        n = count - done < BLOCK ? count - done : BLOCK;
        TRY(format->counted(file, first + done, n, counted));
        for (long i = 0; i < n; i++)
            if (!counted[i]) row[done + i] |= MARK_UNCOUNTED;
    }
    return GDN_OK;
}

int tokens_mark_uncounted(struct tokens *tokens, long first, long count, int32_t *row) {
    return visit_range(tokens, first, count, row, mark_file);
}

int tokens_find_documents(struct tokens *tokens) {
    const struct token_format *format = tokens->format;
    if (!format->mark_documents)
        return gdn_fail(GDN_INPUT,
                        "%s: files of format %s do not tell where documents start, which data.documents: "
                        "mask and data.packing: best_fit need",
                        tokens->files[0].path, format->name);
    for (int i = 0; format->find_documents && i < tokens->num_files; i++)
        TRY(format->find_documents(&tokens->files[i]));
    return GDN_OK;
}

static int mark_file_documents(const struct token_format *format, struct token_file *file, long first,
                               long count, int32_t *row) {
    return format->mark_documents(file, first, count, row);
}

int tokens_mark_documents(struct tokens *tokens, long first, long count, int32_t *row) {
    return visit_range(tokens, first, count, row, mark_file_documents);
}

static const char *tokenizer_text(uint64_t hash, char out[32]) {
    snprintf(out, 32, hash ? "xxh3 %016" PRIx64 : "bytes", hash);
    return out;
}

int tokens_verify_tokenizer(const struct tokens *tokens, uint64_t hash, const char *name) {
    char made[32], other[32];
    for (int i = 0; i < tokens->num_files; i++) {
        const struct token_file *file = &tokens->files[i];
        if (file->has_tokenizer && file->tokenizer != hash)
            return gdn_fail(GDN_INPUT, "%s was made by another tokenizer (%s) than %s (%s)", file->path,
                            tokenizer_text(file->tokenizer, made), name, tokenizer_text(hash, other));
    }
    return GDN_OK;
}

const char *tokens_place(const struct tokens *tokens, long position, long *in_file) {
    int i = find_file(tokens, position);
    *in_file = position - tokens->starts[i];
    return tokens->files[i].path;
}
