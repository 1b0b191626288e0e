#include "data/documents/batch.h"

#include <jansson.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "data/documents/reader.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/fields.h"
#include "kernels/base/status.h"

/* The line's number in the file. */
static long line_of(const struct document *d) {
    return d->line + reader_lines_before(d->path, d->range.from);
}

/* A line: the text, or whatever is taken, that a member of its object is. */
static int take_line(struct batch *batch, void *state, struct document *d) {
    struct text repaired = {0};
    json_error_t error;
    char words[QUOTED];
    TRY(characters_repair(d->text.bytes, d->text.length, &repaired));
    /* integers as reals: members beside the field may have some beyond 64 bits */
    json_t *object =
        json_loadb(repaired.bytes, repaired.length, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    const json_t *value = json_object_get(object, batch->field);
    int status;
    if (!object)
        status = gdn_fail(GDN_INPUT, "%s, line %ld: %s", d->path, line_of(d), quoted(error.text, words));
    else if (batch->take_value)
        status = gdn_fail_in(batch->take_value(batch->input, state, d, value), "%s, line %ld", d->path,
                             line_of(d));
    else if (!json_is_string(value))
        status = gdn_fail(GDN_INPUT, "%s, line %ld: there is no text under '%s' (--field)", d->path,
                          line_of(d), batch->field);
    else
        status = batch->take(state, d, json_string_value(value), json_string_length(value));
    if (status) d->bytes = 0;
    if (!status && !batch->take_value) d->bytes = (long)json_string_length(value);
    json_decref(object);
    text_free(&repaired);
    return status;
}

static void take_one(struct batch *batch, void *state, struct document *d) {
    d->ids.count = 0;
    d->bytes = (long)d->text.length;
    d->status = d->line ? take_line(batch, state, d) : batch->take(state, d, d->text.bytes, d->text.length);
    if (!d->status) return;
    d->failure = strdup(gdn_failure()); /* a thread's own; another one tells it */
    gdn_failure_clear();
}

static int run_batch(struct batch *batch) {
#pragma omp parallel for schedule(dynamic) num_threads(batch->threads)
    for (long i = 0; i < batch->count; i++)
        take_one(batch, batch->state[omp_get_thread_num()], &batch->document[i]);
    for (long i = 0; i < batch->count; i++) {
        const struct document *d = &batch->document[i];
        if (!d->status) continue;
        const char *words = d->failure ? d->failure : "no memory";
        return strstr(words, d->path) ? gdn_fail(d->status, "%s", words)
                                      : gdn_fail(d->status, "%s: %s", d->path, words);
    }
    if (batch->flush) TRY(batch->flush(batch->input, batch->document, batch->count));
    batch->count = 0;
    batch->bytes = 0;
    return GDN_OK;
}

static void tell(struct batch *batch, long position) {
    time_t now = time(NULL);
    if (!batch->progress || now == batch->told) return;
    batch->told = now;
    batch->progress(batch->progress_input, batch->done + position);
}

static int read_file(struct batch *batch, const char *path, struct range range, struct reader *reader) {
    for (bool found;;) {
        struct document *d = &batch->document[batch->count];
        TRY(reader_next(reader, &d->text, &d->line, &found));
        if (!found) return GDN_OK;
        d->path = path;
        d->range = range;
        batch->count++;
        batch->bytes += d->text.length;
        if (batch->count < BATCH_DOCUMENTS && batch->bytes < BATCH_BYTES) continue;
        TRY(run_batch(batch));
        tell(batch, reader_position(reader));
    }
}

static int read_files(struct batch *batch, const struct path_list *files, struct range range) {
    if (!batch->told) batch->told = time(NULL);
    for (int i = 0; i < files->count; i++) {
        struct reader *reader;
        TRY(reader_open(files->paths[i], range, &reader));
        int status = read_file(batch, files->paths[i], range, reader);
        if (!status) batch->done += reader_position(reader);
        reader_close(reader);
        TRY(status);
    }
    return run_batch(batch);
}

int batch_run(struct batch *batch, const struct path_list *files, struct range range) {
    batch->document = calloc(BATCH_DOCUMENTS, sizeof *batch->document);
    if (!batch->document) return gdn_fail(GDN_INTERNAL, "no memory for documents");
    batch->count = batch->done = 0;
    batch->bytes = 0;
    int status = read_files(batch, files, range);
    for (long i = 0; i < BATCH_DOCUMENTS; i++) {
        text_free(&batch->document[i].text);
        ids_free(&batch->document[i].ids);
        free(batch->document[i].failure);
    }
    free(batch->document);
    return status;
}
