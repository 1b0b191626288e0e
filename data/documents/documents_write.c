/* Each rank writes the tokens of its pieces to hidden files beside the output, since formats begin with how
 * many there are; then rank 0 has the format write them from there. */
#include "data/documents/documents.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "data/documents/job.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"

/* ------------------------------------------------------------------------------------------- progress */

/* Rank 0 sees by their files what others have done. */
static void look_around(struct job *job) {
    for (int i = 0; i < job->pieces.count; i++) {
        struct piece *piece = &job->pieces.piece[i];
        char *path = piece->done || !job->owner[i] ? NULL : store_path(&job->store, piece);
        if (path && !access(path, F_OK)) {
            piece->done = true;
            job->done += piece->bytes;
        }
        free(path);
    }
}

static void tell(struct job *job, long position) {
    time_t now = time(NULL);
    if (!job_is_first(job) || !job->options->progress || now == job->told) return;
    job->told = now;
    look_around(job);
    job->options->progress(job->options->input, job->done + position, job->pieces.bytes);
}

static void take_progress(void *input, long position) {
    tell(input, position);
}

static void tick(void *input) {
    tell(input, 0);
}

/* ------------------------------------------------------------------------------------------- the work */

static int take(void *state, struct document *document, const char *text, size_t length) {
    return encoder_encode(state, text, length, false, &document->ids);
}

static int take_messages(void *input, void *state, struct document *document, const json_t *value) {
    const struct job *job = input;
    return conversation_encode(job->template, job->tokenizer, state, value, &document->ids, &document->bytes);
}

static int flush(void *input, struct document *document, long count) {
    struct job *job = input;
    const int32_t separator = job->separator | (job->template ? MARK_UNCOUNTED : 0);
    for (struct document *d = document; d < document + count; d++) {
        if (job->separator >= 0) TRY(ids_add(&d->ids, &separator, 1));
        TRY(piece_writer_add(&job->piece, &d->ids, d->bytes));
    }
    return GDN_OK;
}

static int write_piece(struct job *job, const struct piece *piece) {
    char *path = store_path(&job->store, piece);
    if (!path) return gdn_fail(GDN_INTERNAL, "no memory for a path");
    int status = piece_writer_open(path, &job->piece);
    if (!status) status = batch_run(&job->batch, &piece->files, piece->range);
    if (!status) status = piece_writer_publish(&job->piece);
    piece_writer_close(&job->piece);
    free(path);
    return status;
}

static int write_pieces(struct job *job) {
    const struct documents_options *options = job->options;
    const int rank = options->ranks ? options->ranks->rank : 0;
    job->batch = (struct batch){.field = options->field,
                                .threads = job->threads,
                                .state = job->encoder,
                                .take = take,
                                .take_value = job->template ? take_messages : NULL,
                                .flush = flush,
                                .progress = take_progress,
                                .input = job,
                                .progress_input = job};
    if (rank == 0 && options->progress) options->progress(options->input, job->done, job->pieces.bytes);
    for (int i = 0; i < job->pieces.count; i++) {
        struct piece *piece = &job->pieces.piece[i];
        if (piece->done || job->owner[i] != rank) continue;
        TRY(write_piece(job, piece));
        piece->done = true;
        job->done += piece->bytes;
        tell(job, 0);
    }
    return GDN_OK;
}

static int write_all(struct job *job) {
    const struct documents_ranks *ranks = job->options->ranks;
    TRY(job_prepare(job));
    int status = write_pieces(job);
    if (status && store_keeps(&job->store))
        gdn_fail_in(status, "%s (what is done is kept, and the same command goes on)", job->options->output);
    if (status && ranks) ranks->abort(ranks->input, status); /* the others may be at work for long */
    TRY(status);
    if (ranks) TRY(ranks->wait(ranks->input, tick, job));
    status = job_is_first(job) ? job_write_output(job) : GDN_OK;
    if (ranks) TRY(ranks->wait(ranks->input, tick, job)); /* for rank 0, without keeping cores busy */
    return job_agree(job, status);
}

int documents_write(const struct documents_options *options, struct documents_written *out) {
    struct job job = {.options = options, .written = out, .store.descriptor = -1};
    *out = (struct documents_written){0};
    int status = write_all(&job);
    store_close(&job.store);
    for (int i = 0; job.encoder && i < job.threads; i++) encoder_free(job.encoder[i]);
    free(job.encoder);
    free(job.owner);
    free(job.pieces.piece);
    tokenizer_close(job.tokenizer);
    return status;
}
