#include "train/loop/saver.h"

#include "dist/checkpoint/snapshot.h"
#include "dist/mpi/activity.h"
#include "train/memory/saving.h"

#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum phase { IDLE, GIVEN, DONE, CLOSING };

struct saver {
    struct saver_setup setup;
    char *directory;
    struct snapshot *snapshot; /* NULL: saves in the foreground from the state itself */
    bool under_way;            /* begun, and not yet told of */
    double waited;             /* for the last one, which counts as the next one's stall */

    /* The save under way: the owner's while the phase is IDLE or DONE, the thread's while it is GIVEN. */
    struct checkpoint_info info;
    struct saver_report report;
    double began; /* seconds */

    /* Of the thread; there is none where `started` is false. */
    bool started;
    struct mesh duplicate;
    pthread_t thread;
    pthread_mutex_t lock; /* of the phase */
    pthread_cond_t changed;
    enum phase phase;
};

/* Whether a run saves on a thread. */
static bool in_background(const struct config *config) {
    return config->checkpoint.asynchronous == SAVE_BACKGROUND && saver_has_intervals(config);
}

/* ------------------------------------------------------------------------------------------- writing */

/* Writes `content` and fills the report. Takes what failed out of the thread's recorded words. */
static void write_content(struct saver *s, const struct mesh *mesh,
                          const struct checkpoint_content *content) {
    const struct checkpoint_config *config = &s->setup.config->checkpoint;
    const struct checkpoint_keep keep = {config->keep, config->keep_every};
    s->report.status =
        checkpoint_save(mesh, s->directory, content, &s->info, &keep, (enum checkpoint_files)config->files);
    s->report.bytes = checkpoint_bytes(content);
    s->report.seconds = MPI_Wtime() - s->began;
    if (!s->report.status) return;
    snprintf(s->report.text, sizeof s->report.text, "%.*s", (int)sizeof s->report.text - 1, gdn_failure());
    gdn_failure_clear();
}

static void enter_phase(struct saver *s, enum phase phase) {
    pthread_mutex_lock(&s->lock);
    s->phase = phase;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Waits until the phase is `a` or `b`, and returns it. */
static enum phase wait_for(struct saver *s, enum phase a, enum phase b) {
    pthread_mutex_lock(&s->lock);
    while (s->phase != a && s->phase != b) pthread_cond_wait(&s->changed, &s->lock);
    enum phase phase = s->phase;
    pthread_mutex_unlock(&s->lock);
    return phase;
}

static void *write_checkpoints(void *context) {
    struct saver *s = context;
    omp_set_num_threads(1); /* the cores are training's */
    activity_of_writer();
    while (wait_for(s, GIVEN, CLOSING) == GIVEN) {
        activity_phase(PHASE_CHECKPOINT, s->info.step);
        write_content(s, &s->duplicate, snapshot_content(s->snapshot));
        activity_phase(PHASE_NONE, s->info.step);
        enter_phase(s, DONE);
    }
    return NULL;
}

/* Signals are for the thread that trains. */
static int start(struct saver *s) {
    sigset_t all, before;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&s->thread, NULL, write_checkpoints, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->started = !error;
    return error ? gdn_fail(GDN_INTERNAL, "a thread that writes checkpoints cannot be started: %s",
                            strerror(error))
                 : 0;
}

/* ------------------------------------------------------------------------------------------ its owner */

/* What snapshots are taken of: where training has its state. */
static struct checkpoint_content live_content(const struct saver *s) {
    struct checkpoint_content content = s->setup.content;
    content.state = &s->setup.training->state;
    return content;
}

/* The copy: always where there is a device, whose memory files cannot be written from. */
static int create_snapshot(struct saver *s) {
    const struct saver_setup *setup = &s->setup;
    const bool host = setup->ops->device->host;
    struct checkpoint_content live = live_content(s);
    if (host && !in_background(setup->config)) return 0;
    return snapshot_create(setup->mesh, setup->ops, &live, host ? NULL : &setup->training->saved,
                           &s->snapshot);
}

static int create(struct saver *s) {
    const struct mesh *mesh = s->setup.mesh;
    TRY(mesh_agree(mesh, s->directory ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a path")));
    TRY(mesh_agree(mesh, create_snapshot(s)));
    if (!in_background(s->setup.config)) return 0;
    TRY(mesh_duplicate(mesh, "checkpoint.asynchronous", &s->duplicate));
    return mesh_agree(mesh, start(s));
}

int saver_create(const struct saver_setup *setup, struct saver **out) {
    struct saver *s = *out = calloc(1, sizeof *s);
    TRY(mesh_agree(setup->mesh, s ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for saving checkpoints")));
    s->setup = *setup;
    s->duplicate = mesh_alone();
    s->directory = strdup(setup->directory);
    int status = create(s);
    if (!status) return 0;
    saver_free(s, false);
    *out = NULL;
    return status;
}

int64_t saver_reserved(const struct saver *saver) {
    return saver->snapshot ? snapshot_reserved(saver->snapshot) : 0;
}

void saver_free(struct saver *saver, bool alone) {
    struct saver *s = saver;
    if (!s) return;
    if (s->started && alone) {
        pthread_detach(s->thread);
        return;
    }
    if (s->started) {
        wait_for(s, IDLE, DONE);
        enter_phase(s, CLOSING);
        pthread_join(s->thread, NULL);
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->lock);
    }
    mesh_free(&s->duplicate);
    snapshot_free(s->snapshot);
    free(s->directory);
    free(s);
}

/* Copies the state, on the host or from the device. */
static int take(struct saver *s) {
    struct checkpoint_content live = live_content(s);
    TRY(training_state_download(s->setup.training));
    return snapshot_take(s->snapshot, &live);
}

int saver_begin(struct saver *saver, const struct checkpoint_info *info, bool now) {
    struct saver *s = saver;
    struct mesh *mesh = s->setup.mesh;
    const bool host = s->setup.ops->device->host;
    if (s->under_way) return gdn_fail(GDN_INTERNAL, "a checkpoint was begun before the last one was told of");
    s->began = MPI_Wtime();
    s->info = *info;
    s->report = (struct saver_report){
        .step = info->step, .asynchronous = s->started && !now, .best_loss = info->best_loss};
    if (s->snapshot && (s->report.asynchronous || !host)) TRY(mesh_agree(mesh, take(s)));
    s->under_way = true;
    if (s->report.asynchronous) {
        s->report.stall_seconds = MPI_Wtime() - s->began + s->waited;
        enter_phase(s, GIVEN);
    } else {
        write_content(s, mesh, s->snapshot && !host ? snapshot_content(s->snapshot) : &s->setup.content);
        s->report.stall_seconds = s->report.seconds + s->waited;
    }
    s->waited = 0;
    return 0;
}

static bool is_busy(struct saver *s) {
    if (!s->report.asynchronous) return false;
    pthread_mutex_lock(&s->lock);
    bool busy = s->phase == GIVEN;
    pthread_mutex_unlock(&s->lock);
    return busy;
}

int saver_poll(struct saver *saver, bool wait, struct saver_report *out) {
    struct saver *s = saver;
    const struct mesh *mesh = s->setup.mesh;
    *out = (struct saver_report){0};
    if (!s->under_way) return 0;
    if (!wait) {
        int busy = mesh_any(mesh, is_busy(s));
        if (busy) return busy < 0 ? GDN_INTERNAL : 0;
    }
    double began = MPI_Wtime();
    if (s->report.asynchronous) {
        wait_for(s, DONE, IDLE);
        enter_phase(s, IDLE);
    }
    s->waited += MPI_Wtime() - began;
    s->under_way = false;
    *out = s->report;
    out->done = true;
    double seconds[] = {out->seconds, out->stall_seconds};
    TRY(mesh_reduce(mesh, seconds, 2, MPI_DOUBLE, MPI_MAX));
    out->seconds = seconds[0], out->stall_seconds = seconds[1];
    return 0;
}
