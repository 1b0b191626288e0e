/* What comes before the work: what is to be done, what is done already, and who does the rest. */
#include "data/documents/job.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/documents/separator.h"
#include "data/output_tokens.h"
#include "kernels/base/status.h"

bool job_is_first(const struct job *job) {
    return !job->options->ranks || !job->options->ranks->rank;
}

int job_agree(const struct job *job, int status) {
    const struct documents_ranks *ranks = job->options->ranks;
    return ranks ? ranks->agree(ranks->input, status) : status;
}

static int create_encoders(struct job *job) {
    job->threads = omp_get_max_threads();
    job->encoder = calloc((size_t)job->threads, sizeof *job->encoder);
    if (!job->encoder) return gdn_fail(GDN_INTERNAL, "no memory for %d encoders", job->threads);
    for (int i = 0; i < job->threads; i++)
        TRY(encoder_create(job->tokenizer, (struct encoder **)&job->encoder[i]));
    return GDN_OK;
}

/* What tokens depend on, besides the text: another version of this program that reads documents in another
 * way says another number. */
static int cut(struct job *job) {
    char *words;
    if (asprintf(&words, "2 tokenizer %016" PRIx64 " separator %" PRId32 " field %s%s%s",
                 tokenizer_hash(job->tokenizer), job->separator, job->options->field,
                 job->template ? " messages " : "", job->template ? job->template->name : "") < 0)
        return gdn_fail(GDN_INTERNAL, "%s: no memory", job->options->output);
    int status = pieces_cut(&job->options->files, words, &job->pieces);
    free(words);
    return status;
}

/* What conversations need. */
static int prepare_messages(struct job *job) {
    const struct documents_options *options = job->options;
    if (!options->messages) return GDN_OK;
    job->template = conversation_template_named(options->messages);
    if (!job->template)
        return gdn_fail(GDN_INPUT, "--messages %s: %s is expected", options->messages,
                        conversation_template_words());
    if (!options->format->counted)
        return gdn_fail(GDN_INPUT, "%s: %s cannot say which tokens count, as --messages wants; write hdf5",
                        options->output, options->format->name);
    for (int i = 0; i < options->files.count; i++)
        if (!reader_is_lines(options->files.paths[i]))
            return gdn_fail(GDN_INPUT, "%s: --messages takes lines of JSON, .jsonl", options->files.paths[i]);
    return conversation_verify(job->template, job->tokenizer, job->encoder[0]);
}

static int open_job(struct job *job) {
    const struct documents_options *options = job->options;
    char list[FORMAT_LIST];
    TRY(carried_open(options->tokenizer, &job->tokenizer));
    if (!options->format->write)
        return gdn_fail(GDN_INPUT, "%s: text is no format for a tokenizer's tokens; write %s",
                        options->output, token_format_list(FORMATS_WRITTEN, " or ", list));
    job->element = tokenizer_vocab(job->tokenizer) > UINT16_MAX + 1 ? ELEMENT_UINT32 : ELEMENT_UINT16;
    if (options->format->narrow && job->element != ELEMENT_UINT16)
        return gdn_fail(GDN_INPUT,
                        "%s: %s's tokens are at most 65535, and the tokenizer has more; write hdf5, llmc or "
                        "megatron",
                        options->output, options->format->name);
    TRY(separator_find(job->tokenizer, options->tokenizer, options->separator, &job->separator));
    job->written->separated = job->separator >= 0;
    TRY(create_encoders(job));
    TRY(prepare_messages(job));
    TRY(cut(job));
    if (!(job->owner = calloc((size_t)job->pieces.count, sizeof *job->owner)))
        return gdn_fail(GDN_INTERNAL, "no memory for %d pieces", job->pieces.count);
    return store_name(options->output, &job->store);
}

static int is_whole(const struct job *job, const struct piece *piece, bool *whole) {
    char *path = store_path(&job->store, piece);
    if (!path) return gdn_fail(GDN_INTERNAL, "no memory for a path");
    *whole = piece_file_whole(path);
    free(path);
    return GDN_OK;
}

/* `what` is input too. */
static int refuse(const struct documents_options *options, const char *const *path, int count,
                  const char *what) {
    const struct output_inputs inputs = {options->option, path, count, what};
    return output_tokens_verify(options->format, options->output, &inputs);
}

static int verify_output(const struct documents_options *options) {
    const struct carried *tokenizer = options->tokenizer;
    TRY(refuse(options, (const char *const *)options->files.paths, options->files.count, "a document"));
    if (!tokenizer->file) return GDN_OK;
    TRY(refuse(options, (const char *const[]){tokenizer->name}, 1, "the tokenizer"));
    if (!tokenizer->configuration) return GDN_OK;
    char *beside = carried_configuration_path(tokenizer->name);
    if (!beside) return gdn_fail(GDN_INTERNAL, "no memory for a path");
    int status = refuse(options, (const char *const[]){beside}, 1, "the tokenizer's configuration");
    free(beside);
    return status;
}

/* Rank 0 looks at the output, and finds which pieces an earlier start has done. */
static int look_back(struct job *job) {
    if (!job_is_first(job)) return GDN_OK;
    TRY(verify_output(job->options));
    TRY(store_take(&job->store));
    for (int i = 0; i < job->pieces.count; i++)
        TRY(is_whole(job, &job->pieces.piece[i], &job->pieces.piece[i].done));
    return GDN_OK;
}

/* Refuses ranks that see other files than rank 0. */
static int compare_files(const struct job *job) {
    const struct documents_ranks *ranks = job->options->ranks;
    const long here[] = {job->pieces.count, job->pieces.bytes};
    long first[] = {here[0], here[1]};
    TRY(ranks->broadcast(ranks->input, first, sizeof first));
    return job_agree(job, !memcmp(first, here, sizeof first)
                              ? GDN_OK
                              : gdn_fail(GDN_INPUT, "%s: the files have %ld bytes here and %ld on rank 0",
                                         job->options->output, here[1], first[1]));
}

/* All have rank 0's names and what it found. */
static int share(struct job *job) {
    const struct documents_ranks *ranks = job->options->ranks;
    const long count = job->pieces.count;
    struct piece *piece = job->pieces.piece;
    struct {
        char name[PIECE_NAME];
        bool done;
    } * all;
    if (!ranks) return GDN_OK;
    TRY(compare_files(job));
    all = calloc((size_t)count, sizeof *all);
    int status = job_agree(job, all ? GDN_OK : gdn_fail(GDN_INTERNAL, "no memory for %ld pieces", count));
    for (long i = 0; i < count && !status; i++) {
        memcpy(all[i].name, piece[i].name, sizeof piece[i].name);
        all[i].done = piece[i].done;
    }
    if (!status) status = ranks->broadcast(ranks->input, all, count * (long)sizeof *all);
    for (long i = 0; i < count && !status; i++) {
        memcpy(piece[i].name, all[i].name, sizeof piece[i].name);
        piece[i].done = all[i].done;
    }
    free(all);
    return status;
}

/* Each piece goes to the rank that has the fewest bytes so far, so that all are at work in the same part of
 * the files. */
static int deal(struct job *job) {
    const int ranks = job->options->ranks ? job->options->ranks->size : 1;
    long *bytes = calloc((size_t)ranks, sizeof *bytes);
    if (!bytes) return gdn_fail(GDN_INTERNAL, "no memory for %d ranks", ranks);
    for (int i = 0; i < job->pieces.count; i++) {
        const struct piece *piece = &job->pieces.piece[i];
        int least = 0;
        if (piece->done) job->done += piece->bytes;
        if (piece->done) continue;
        for (int r = 1; r < ranks; r++)
            if (bytes[r] < bytes[least]) least = r;
        job->owner[i] = least;
        bytes[least] += piece->bytes;
    }
    free(bytes);
    return GDN_OK;
}

int job_prepare(struct job *job) {
    TRY(job_agree(job, open_job(job)));
    TRY(job_agree(job, look_back(job)));
    TRY(share(job));
    return job_agree(job, deal(job));
}
