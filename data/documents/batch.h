/* Documents of files, taken by all threads, some at a time. Private to this folder. */
#ifndef GDN_DOCUMENTS_BATCH_H
#define GDN_DOCUMENTS_BATCH_H

#include <jansson.h>
#include <time.h>

#include "data/documents/reader.h"
#include "data/paths.h"

enum { BATCH_DOCUMENTS = 4096, BATCH_BYTES = 1 << 25 }; /* a batch is full with either */

struct document {
    const char *path;
    struct range range; /* that it was read in */
    long line;          /* in the range; 0: the text is what was read; else it is JSON */
    struct text text;   /* as it was read */
    struct ids ids;     /* what became of it */
    long bytes;         /* of the text */
    int status;
    char *failure; /* words, where status is not 0 */
};

struct batch {
    const char *field; /* of lines of JSON */
    int threads;
    void *const *state; /* [threads] */
    /* Takes a document's text, on any thread, with its state. */
    int (*take)(void *state, struct document *document, const char *text, size_t length);
    /* In its place, where it is not NULL: takes what a line has under `field`, whatever it is, and says the
     * document's bytes. Files are of lines then. */
    int (*take_value)(void *input, void *state, struct document *document, const json_t *value);
    /* Called with the documents of a batch, which were all taken, in order; may be NULL. */
    int (*flush)(void *input, struct document *document, long count);
    /* Told once a second how many bytes of the files are read; may be NULL. */
    void (*progress)(void *input, long done);
    void *input, *progress_input;

    struct document *document; /* from here on batch_run's own, zeros at first: [BATCH_DOCUMENTS] */
    long count, done;          /* documents of the batch; bytes of files that are read */
    size_t bytes;
    time_t told;
};

/* All documents that begin in the range of each file, in order. A failure is that of the first document that
 * has one. May be called again, for others. */
int batch_run(struct batch *batch, const struct path_list *files, struct range range);

#endif
