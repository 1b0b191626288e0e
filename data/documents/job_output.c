/* What comes after the work: pieces become one file. */
#include <stdlib.h>

#include "data/documents/job.h"
#include "data/output_tokens.h"
#include "data/stream.h"
#include "kernels/base/status.h"

/* What the pieces hold together. */
struct whole {
    const char **path; /* [count] of those that have tokens */
    int count;
    struct text ends; /* int64 [documents] */
};

static int add_ends(struct job *job, struct whole *whole, const char *path) {
    struct documents_written *written = job->written;
    struct mapping map;
    struct piece_end end;
    const int64_t *ends;
    TRY(piece_file_open(path, &map, &end, &ends));
    int status = GDN_OK;
    for (long d = 0; d < end.documents && !status; d++) {
        const int64_t at = written->tokens + ends[d];
        status = text_add(&whole->ends, (const char *)&at, sizeof at);
    }
    mapping_close(&map);
    written->documents += end.documents;
    written->tokens += end.tokens;
    written->bytes += end.bytes;
    if (end.tokens) whole->path[whole->count++] = path;
    return status;
}

static int write_format(struct job *job, const struct whole *whole) {
    const struct documents_options *options = job->options;
    struct written_tokens written = {
        .element = job->element,
        .masked = job->template != NULL,
        .tokenizer = tokenizer_hash(job->tokenizer),
        .documents = job->written->documents,
        .ends = (const int64_t *)(const void *)whole->ends.bytes,
        .separated = job->separator >= 0,
        .closing = -1,
    };
    char name[256];
    if (!whole->count)
        return gdn_fail(GDN_INPUT, "%s: the files have no documents, or none with a token",
                        path_list_name(&options->files, name, sizeof name));
    int status = tokens_open_files(whole->path, whole->count, &piece_format, &written.tokens);
    if (!status) status = options->format->write(options->output, &written);
    tokens_close(written.tokens);
    return status;
}

int job_write_output(struct job *job) {
    struct whole whole = {.path = calloc((size_t)job->pieces.count, sizeof *whole.path)};
    char **path = calloc((size_t)job->pieces.count, sizeof *path);
    int status = whole.path && path ? GDN_OK : gdn_fail(GDN_INTERNAL, "no memory for paths");
    for (int i = 0; i < job->pieces.count && !status; i++) {
        path[i] = store_path(&job->store, &job->pieces.piece[i]);
        status = path[i] ? add_ends(job, &whole, path[i]) : gdn_fail(GDN_INTERNAL, "no memory for a path");
    }
    if (!status) status = write_format(job, &whole);
    if (!status || !whole.count) store_remove(&job->store);
    for (int i = 0; path && i < job->pieces.count; i++) free(path[i]);
    free(path);
    free(whole.path);
    text_free(&whole.ends);
    return status;
}
