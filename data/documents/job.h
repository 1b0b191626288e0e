/* The writing of documents as a token file, in the hands of documents.c. Private to this folder. */
#ifndef GDN_DOCUMENTS_JOB_H
#define GDN_DOCUMENTS_JOB_H

#include <time.h>

#include "data/documents/batch.h"
#include "data/documents/conversation.h"
#include "data/documents/documents.h"
#include "data/documents/piece_file.h"
#include "data/documents/store.h"

struct job {
    const struct documents_options *options;
    struct documents_written *written;
    struct tokenizer *tokenizer;
    int32_t separator;
    enum element element;                         /* what the vocabulary needs */
    const struct conversation_template *template; /* NULL: documents are texts */
    int threads;
    void **encoder; /* [threads] */
    struct pieces pieces;
    struct store store;
    int *owner;                /* [pieces.count] the rank that does it */
    struct batch batch;        /* of the piece in work */
    struct piece_writer piece; /* the same */
    long done;                 /* bytes of pieces that are done, as far as this rank knows */
    time_t told;
};

/* Whether this process is rank 0, and a failure of any rank given to all. */
bool job_is_first(const struct job *job);
int job_agree(const struct job *job, int status);

/* Opens the tokenizer, cuts the files into pieces, finds which of them an earlier start has done and deals
 * the others out. Collective over the ranks; the same status on all. */
int job_prepare(struct job *job);

/* The format's file, of all pieces, and what they hold together; removes them. Rank 0. */
int job_write_output(struct job *job);

#endif
