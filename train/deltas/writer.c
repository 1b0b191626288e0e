#include "train/deltas/writer.h"

#include "kernels/base/status.h"
#include "train/deltas/file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct delta_writer {
    char directory[4096];
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct delta_job *job; /* [room] a ring; the job in hand stays in it */
    int room;
    long given, done; /* jobs */
    bool closing;
    struct delta_tally tally;
    struct delta_failure failure;
};

void delta_tally_add(struct delta_tally *sum, const struct delta_tally *tally) {
    sum->files += tally->files;
    sum->connections += tally->connections;
    sum->bytes += tally->bytes;
    sum->plain_bytes += tally->plain_bytes;
    sum->rank += tally->rank;
    sum->failed += tally->failed;
    if (tally->error > sum->error) sum->error = tally->error;
}

/* ---------------------------------------------------------------------------------------- the thread */

/* Notes a job's outcome; `error` of `path`, 0: none. The lock is held. */
static void note(struct delta_writer *w, const struct delta_job *job, int error, const char *path) {
    if (!error) {
        delta_tally_add(&w->tally, &job->tally);
        return;
    }
    w->tally.failed += job->tally.connections;
    if (w->failure.text[0]) return;
    char reason[128];
    w->failure.layer = job->layer, w->failure.distance = 0;
    snprintf(w->failure.text, sizeof w->failure.text, "%.800s cannot be written: %s", path,
             strerror_r(error, reason, sizeof reason));
}

static void *write_files(void *context) {
    struct delta_writer *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->done == w->given && !w->closing) pthread_cond_wait(&w->changed, &w->lock);
        if (w->done == w->given) break;
        struct delta_job job = w->job[w->done % w->room];
        pthread_mutex_unlock(&w->lock);
        char path[4096];
        int error = delta_file_write(w->directory, job.step, job.layer, job.image, job.bytes, path);
        free(job.image);
        pthread_mutex_lock(&w->lock);
        note(w, &job, error, path);
        w->done++;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals are for the thread that trains. */
static int start(struct delta_writer *w) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&w->thread, NULL, write_files, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* ---------------------------------------------------------------------------------------- its owner */

int delta_writer_create(const char *directory, int room, struct delta_writer **out) {
    struct delta_writer *w = *out = calloc(1, sizeof *w);
    struct delta_job *job = calloc((size_t)room, sizeof *job);
    int error = 0;
    if (w && job) {
        snprintf(w->directory, sizeof w->directory, "%s", directory);
        w->room = room, w->job = job;
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->changed, NULL);
        error = start(w);
        if (!error) return 0;
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
    }
    free(job);
    free(w);
    *out = NULL;
    return gdn_fail(GDN_INTERNAL, "a thread that writes differences to %s cannot be started: %s", directory,
                    strerror(error ? error : ENOMEM));
}

void delta_writer_free(struct delta_writer *writer) {
    if (!writer) return;
    pthread_mutex_lock(&writer->lock);
    writer->closing = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    free(writer->job);
    free(writer);
}

void delta_writer_give(struct delta_writer *writer, const struct delta_job *job) {
    pthread_mutex_lock(&writer->lock);
    while (writer->given - writer->done == writer->room) pthread_cond_wait(&writer->changed, &writer->lock);
    writer->job[writer->given++ % writer->room] = *job;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}

bool delta_writer_idle(struct delta_writer *writer) {
    pthread_mutex_lock(&writer->lock);
    bool idle = writer->done == writer->given;
    pthread_mutex_unlock(&writer->lock);
    return idle;
}

void delta_writer_take(struct delta_writer *writer, struct delta_tally *tally,
                       struct delta_failure *failure) {
    pthread_mutex_lock(&writer->lock);
    while (writer->done < writer->given) pthread_cond_wait(&writer->changed, &writer->lock);
    delta_tally_add(tally, &writer->tally);
    if (!failure->text[0] && writer->failure.text[0]) *failure = writer->failure;
    writer->tally = (struct delta_tally){0};
    writer->failure.text[0] = 0;
    pthread_mutex_unlock(&writer->lock);
}
