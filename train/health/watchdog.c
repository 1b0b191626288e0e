#include "train/health/watchdog.h"

#include "dist/mpi/mpi_error.h"
#include "train/health/hang.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* All in seconds. */
static const double LOOK = 0.2;   /* between two looks */
static const double ANSWERS = 3;  /* that answers are waited for */
static const double PRINTING = 5; /* that a lower rank has to print and end the job, before the next does */
static const double ASLEEP = 2;   /* more between two looks: this process was stopped, not the run */

/* What is remembered of an activity. */
struct seen {
    uint64_t begun, moves;
    double phase_seconds, seconds;
};

struct watchdog {
    int rank, ranks;
    MPI_Comm comm;
    struct hang hang;
    struct station *station; /* [ranks] */
    char (*host)[64];        /* [ranks] */
    char *culprit, *text;    /* [ranks], [hang_room] */
    size_t room;
    MPI_Request *request; /* [ranks] */
    struct station mine;  /* as it was sent */
    struct seen seen[ACTIVITIES];
    bool told;
    double since; /* it told the others */
    double hold;  /* seconds of silence left after it was stopped: others may be ending the job already */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool end;
    bool begun; /* on all ranks */
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ------------------------------------------------------------------------------------ what is seen here */

/* Looks at one thread; whether it is late. */
static bool look_at(struct watchdog *w, enum activity_thread thread, double passed) {
    struct activity p;
    struct seen *seen = &w->seen[thread];
    activity_read(thread, &p);
    seen->phase_seconds = p.begun == seen->begun ? seen->phase_seconds + passed : 0;
    seen->seconds = p.moves == seen->moves ? seen->seconds + passed : 0;
    seen->begun = p.begun, seen->moves = p.moves;
    double limit = w->hang.limit[p.phase];
    return limit > 0 && seen->phase_seconds > limit;
}

/* 1 + the thread that is late, or 0. */
static int look(struct watchdog *w, double passed) {
    int late = 0;
    for (int t = ACTIVITIES; t-- > 0;)
        if (look_at(w, (enum activity_thread)t, passed)) late = 1 + t;
    return late;
}

static void describe(struct watchdog *w, int late) {
    w->mine = (struct station){.answered = 1, .late = late};
    for (int t = 0; t < ACTIVITIES; t++) {
        struct activity p;
        struct station_thread *s = &w->mine.thread[t];
        activity_read((enum activity_thread)t, &p);
        s->phase = p.phase;
        s->step = p.step;
        s->phase_seconds = w->seen[t].phase_seconds;
        s->seconds = w->seen[t].seconds;
        activity_action_text(&p, s->action);
        activity_wait_text(&p, s->wait);
    }
}

/* --------------------------------------------------------------------------------- what ranks tell others */

/* Small messages, which leave without the receiver's help; nobody waits for them. */
static void tell(struct watchdog *w, int late) {
    describe(w, late);
    w->station[w->rank] = w->mine;
    w->told = true;
    w->since = 0;
    for (int r = 0; r < w->ranks; r++)
        if (r != w->rank) MPI_Isend(&w->mine, sizeof w->mine, MPI_BYTE, r, 0, w->comm, &w->request[r]);
}

/* Whether anything came. */
static bool listen(struct watchdog *w) {
    bool any = false;
    for (int there = 1; w->ranks > 1;) {
        MPI_Status status;
        if (MPI_Iprobe(MPI_ANY_SOURCE, 0, w->comm, &there, &status) != MPI_SUCCESS || !there) break;
        MPI_Recv(&w->station[status.MPI_SOURCE], sizeof *w->station, MPI_BYTE, status.MPI_SOURCE, 0, w->comm,
                 MPI_STATUS_IGNORE);
        any = true;
    }
    return any;
}

static int answers(const struct watchdog *w, int below) {
    int count = 0;
    for (int r = 0; r < below; r++) count += w->station[r].answered != 0;
    return count;
}

/* Straight to the descriptor: a main thread that hangs may hold the stream's lock. */
static void print(const char *text, size_t length) {
    while (length) {
        ssize_t n = write(STDERR_FILENO, text, length);
        if (n <= 0) return;
        text += n, length -= (size_t)n;
    }
}

static void end_job(struct watchdog *w) {
    print(w->text, hang_report(&w->hang, w->culprit, w->text, w->room));
    MPI_Abort(MPI_COMM_WORLD, GDN_INTERNAL);
}

/* Whether it is this rank's turn to end the job. */
static bool is_turn(const struct watchdog *w) {
    if (w->hold > 0) return false;
    if (w->since < ANSWERS && answers(w, w->ranks) < w->ranks) return false;
    int before = answers(w, w->rank);
    return before == 0 || w->since > ANSWERS + PRINTING * (before < 2 ? before : 2);
}

static void look_and_act(struct watchdog *w, double passed) {
    int late = look(w, passed);
    bool heard = listen(w);
    w->since += passed;
    w->hold -= passed;
    if (!w->told && (late || heard)) tell(w, late);
    if (w->told && is_turn(w)) end_job(w);
}

/* --------------------------------------------------------------------------------------------- the thread */

/* Sleeps; whether it is over. */
static bool rest(struct watchdog *w) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(LOOK * 1e9);
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    pthread_mutex_lock(&w->lock);
    while (!w->end && !pthread_cond_timedwait(&w->wake, &w->lock, &until)) continue;
    bool end = w->end;
    pthread_mutex_unlock(&w->lock);
    return end;
}

static void *watch(void *watchdog) {
    struct watchdog *w = watchdog;
    for (double last = seconds(); !rest(w);) {
        double now = seconds(), passed = now - last;
        last = now;
        if (passed > ASLEEP) passed = LOOK, w->hold = ANSWERS + PRINTING;
        look_and_act(w, passed);
    }
    return NULL;
}

static int start_thread(struct watchdog *w) {
    pthread_condattr_t attributes;
    sigset_t all, before;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&w->thread, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) pthread_setname_np(w->thread, "watchdog"); /* for top, debuggers and tests */
    if (!failed) return 0;
    return gdn_fail(GDN_INTERNAL, "the watchdog's thread cannot be started: %s", strerror(failed));
}

/* ------------------------------------------------------------------------------------ beginning and end */

static int need_threads(const struct mesh *mesh) {
    int provided = MPI_THREAD_SINGLE;
    if (mesh->size == 1) return 0;
    MPI_TRY(MPI_Query_thread(&provided));
    if (provided == MPI_THREAD_MULTIPLE) return 0;
    return gdn_fail(GDN_INPUT,
                    "watchdog.start, watchdog.step and watchdog.checkpoint on several ranks need an MPI with "
                    "MPI_THREAD_MULTIPLE, which this one does not give; use another, or set all three to 0");
}

static void release(struct watchdog *w) {
    free(w->station);
    free(w->host);
    free(w->culprit);
    free(w->text);
    free(w->request);
    free(w);
}

static struct watchdog *reserve(const struct mesh *mesh, const struct watchdog_config *config) {
    struct watchdog *w = calloc(1, sizeof *w);
    size_t ranks = (size_t)mesh->size;
    if (!w) return NULL;
    *w = (struct watchdog){
        .rank = mesh->rank, .ranks = mesh->size, .comm = MPI_COMM_NULL, .room = hang_room(mesh->size)};
    w->station = calloc(ranks, sizeof *w->station);
    w->host = calloc(ranks, sizeof *w->host);
    w->culprit = calloc(ranks, 1);
    w->text = malloc(w->room);
    w->request = calloc(ranks, sizeof *w->request);
    w->hang = (struct hang){
        .ranks = mesh->size,
        .station = w->station,
        .host = (const char(*)[64])w->host,
        .limit = {[PHASE_START] = config->start,
                  [PHASE_STEP] = config->step,
                  [PHASE_EVALUATION] = config->step,
                  [PHASE_CHECKPOINT] = config->checkpoint,
                  [PHASE_END] = config->checkpoint},
    };
    if (w->station && w->host && w->culprit && w->text && w->request) return w;
    release(w);
    return NULL;
}

static int open_comm(struct watchdog *w, const struct mesh *mesh) {
    if (mesh->size == 1) {
        memcpy(w->host[0], mesh->host, sizeof w->host[0]);
        return 0;
    }
    MPI_TRY(MPI_Comm_dup(mesh->world, &w->comm));
    MPI_TRY(MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN));
    return mesh_gather(mesh, mesh->host, sizeof w->host[0], w->host);
}

int watchdog_begin(const struct mesh *mesh, const struct watchdog_config *config, struct watchdog **out) {
    *out = NULL;
    activity_phase(PHASE_START, 0);
    if (config->start <= 0 && config->step <= 0 && config->checkpoint <= 0) return 0;
    TRY(mesh_agree(mesh, need_threads(mesh)));
    struct watchdog *w = reserve(mesh, config);
    TRY(mesh_agree(mesh, w ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the watchdog")));
    TRY(open_comm(w, mesh));
    int status = start_thread(w);
    if (!status) *out = w; /* to be ended in any case */
    TRY(mesh_agree(mesh, status));
    w->begun = true;
    return 0;
}

void watchdog_end(struct watchdog *w) {
    if (!w) return;
    if (w->ranks > 1 && w->begun) {
        activity_enter("mesh", "end", -1, -1);
        MPI_Barrier(w->comm);
        activity_leave();
    }
    pthread_mutex_lock(&w->lock);
    w->end = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    if (w->comm != MPI_COMM_NULL) MPI_Comm_free(&w->comm);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    release(w);
}
