/* The training loop's care for its ranks: copies of weights that have come apart, ranks that have become
 * slow. */
#include "train/loop/loop.h"

#include "dist/mpi/activity.h"
#include "kernels/base/append.h"
#include "train/health/replicas.h"
#include "train/health/slow.h"

#include <stdlib.h>
#include <string.h>

struct health {
    struct replicas *replicas; /* NULL: not compared */
    int64_t replicated_at;     /* steps done when all copies were found the same; −1: not yet */

    bool watch_slow;
    struct slow slow;
    double computed;                              /* seconds in the steps since the last gathering */
    long steps;                                   /* of these */
    double *seconds;                              /* [ranks] */
    int *found;                                   /* [ranks] */
    char (*host)[sizeof((struct mesh *)0)->host]; /* [ranks] */
};

/* ------------------------------------------------------------------------------------------- creation */

/* Where exchanges go over device communicators, the host cannot tell a GPU that computes from one that waits
 * for others. */
static bool can_tell(const struct mesh *mesh) {
    for (int a = 0; a < axes_count(); a++)
        if (mesh->axis[a].device_comm) return false;
    return mesh->size > 1;
}

/* Ranks of one pipeline index have the same layers. */
static int create_slow(struct health *h, const struct mesh *mesh, double factor) {
    int *group = h->found;
    for (int r = 0; r < mesh->size; r++) {
        int index[AXES];
        axes_place(mesh->sizes.size, r, index);
        group[r] = index[AXIS_PIPELINE];
    }
    return slow_create(mesh->size, group, factor, &h->slow);
}

static int reserve(struct health *h, const struct run *run) {
    size_t ranks = (size_t)run->mesh.size;
    h->seconds = calloc(ranks, sizeof *h->seconds);
    h->found = calloc(ranks, sizeof *h->found);
    h->host = calloc(ranks, sizeof *h->host);
    if (!h->seconds || !h->found || !h->host)
        return gdn_fail(GDN_INTERNAL, "out of memory for what is known of %d ranks", run->mesh.size);
    return h->watch_slow ? create_slow(h, &run->mesh, run->config.watchdog.slow) : 0;
}

int loop_health_create(struct loop *loop) {
    struct run *run = loop->run;
    struct mesh *mesh = &run->mesh;
    struct health *h = loop->health = calloc(1, sizeof *h);
    int status = h ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for what is known of the ranks");
    if (h) {
        h->replicated_at = -1;
        h->watch_slow = run->config.watchdog.slow > 0 && can_tell(mesh);
        status = reserve(h, run);
    }
    TRY(mesh_agree(mesh, status));
    TRY(mesh_gather(mesh, mesh->host, sizeof *h->host, h->host));
    if (run->config.watchdog.replicas <= 0 || mesh->size == 1) return 0;
    return replicas_create(mesh, run->part.table, &run->part.global, run->ops, &h->replicas);
}

void loop_health_free(struct loop *loop) {
    struct health *h = loop->health;
    if (!h) return;
    replicas_free(h->replicas);
    slow_free(&h->slow);
    free(h->seconds);
    free(h->found);
    free(h->host);
    free(h);
    loop->health = NULL;
}

/* ------------------------------------------------------------------------------------------- replicas */

static void record_mismatch(struct loop *loop, const struct replicas_verdict *verdict) {
    struct metrics *metrics = &loop->rundir->metrics;
    for (int i = 0; i < verdict->count; i++) {
        metrics_begin(metrics, "replica_mismatch");
        metrics_integer(metrics, "step", loop->run->position.step);
        metrics_integer(metrics, "rank", verdict->rank[i]);
        metrics_text(metrics, "tensor", verdict->tensor);
        metrics_text(metrics, "host", loop->health->host[verdict->rank[i]]);
        metrics_end(metrics);
    }
}

/* "rank 1 on HOST, rank 3 on HOST" */
static void name_ranks(const struct health *h, const struct replicas_verdict *verdict, char text[1024]) {
    size_t used = 0;
    int max = verdict->count < 8 ? verdict->count : 8;
    for (int i = 0; i < max; i++)
        used = text_append(text, 1024, used, "%srank %d on %s", i ? ", " : "", verdict->rank[i],
                           h->host[verdict->rank[i]]);
    if (max < verdict->count) text_append(text, 1024, used, " and %d more", verdict->count - max);
}

static int mismatch(struct loop *loop, const struct replicas_verdict *verdict) {
    const struct run *run = loop->run;
    char names[1024], since[96] = "";
    record_mismatch(loop, verdict);
    name_ranks(loop->health, verdict, names);
    if (loop->health->replicated_at >= 0)
        snprintf(since, sizeof since, " (after %lld steps all were identical)",
                 (long long)loop->health->replicated_at);
    return gdn_fail(
        GDN_INTERNAL,
        "after %lld steps the copies of weights that ranks have are not the same any more%s: %s %s %s. "
        "Memory or arithmetic there may be faulty: have the machine tested, or leave it out. This state is "
        "not saved; the same command goes on from the newest checkpoint",
        (long long)run->position.step, since, verdict->tensor,
        verdict->undecided ? "differs between, and is wrong on one of," : "is wrong on", names);
}

int loop_health_replicas(struct loop *loop) {
    struct health *h = loop->health;
    struct replicas_verdict verdict;
    if (!h || !h->replicas || h->replicated_at == loop->run->position.step) return 0;
    TRY(replicas_compare(h->replicas, loop->run->training.state.weight, &verdict));
    if (verdict.count) return mismatch(loop, &verdict);
    h->replicated_at = loop->run->position.step;
    return 0;
}

/* ----------------------------------------------------------------------------------------- slow ranks */

static void tell_slow(struct loop *loop, int rank) {
    const struct health *h = loop->health;
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "slow_rank");
    metrics_integer(metrics, "step", loop->run->position.step);
    metrics_integer(metrics, "rank", rank);
    metrics_text(metrics, "host", h->host[rank]);
    metrics_number(metrics, "seconds", h->seconds[rank]);
    metrics_number(metrics, "median", h->slow.median[rank]);
    metrics_end(metrics);
    progress_note(&loop->progress,
                  "rank %d on %s is slow: it computes %.4g s a step, others with the same work %.4g s", rank,
                  h->host[rank], h->seconds[rank], h->slow.median[rank]);
}

static int gather_times(struct loop *loop) {
    struct health *h = loop->health;
    double mine = h->computed / (double)h->steps;
    h->computed = 0;
    h->steps = 0;
    TRY(mesh_gather(&loop->run->mesh, &mine, sizeof mine, h->seconds));
    int count = slow_judge(&h->slow, h->seconds, h->found);
    for (int i = 0; i < count; i++) tell_slow(loop, h->found[i]);
    return 0;
}

int loop_health_step(struct loop *loop) {
    struct health *h = loop->health;
    const struct config *config = &loop->run->config;
    const long compare = config->watchdog.replicas, monitor = config->monitor.interval;
    if (h->replicated_at > loop->run->position.step)
        h->replicated_at = -1; /* training went back (loop/spike.c) */
    h->computed += loop->last.step_seconds - loop->waited;
    h->steps++;
    if (h->watch_slow && h->steps >= (monitor > 0 ? monitor : 10)) TRY(gather_times(loop));
    return compare > 0 && loop->run->position.step % compare == 0 ? loop_health_replicas(loop) : 0;
}
