#include "train/health/hang.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------ who it is */

/* The thread that is looked at: whichever took too long on the lowest rank. */
static int thread_of(const struct hang *h) {
    for (int r = 0; r < h->ranks; r++)
        if (h->station[r].answered && h->station[r].late) return h->station[r].late - 1;
    return ACTIVITY_MAIN;
}

static const struct station_thread *at(const struct hang *h, int rank) {
    return &h->station[rank].thread[thread_of(h)];
}

static bool waits(const struct hang *h, int rank) {
    return h->station[rank].answered && at(h, rank)->wait[0];
}

/* The first whose phase lasted too long; else the first that answers. */
static int witness(const struct hang *h) {
    int first = 0;
    for (int r = h->ranks; r-- > 0;)
        if (h->station[r].answered) first = r;
    for (int r = 0; r < h->ranks; r++)
        if (h->station[r].answered && h->station[r].late) return r;
    return first;
}

static bool same_place(const struct hang *h, int a, int b) {
    return at(h, a)->step == at(h, b)->step && at(h, a)->phase == at(h, b)->phase &&
           !strcmp(at(h, a)->wait, at(h, b)->wait);
}

static int company(const struct hang *h, int rank) {
    int count = 0;
    for (int r = 0; r < h->ranks; r++) count += same_place(h, r, rank);
    return count;
}

/* All wait: those that are not where most are; of two equal halves, both. */
static enum hang_kind find_apart(const struct hang *h, char *culprit) {
    int max = 0, found = 0;
    for (int r = 0; r < h->ranks; r++)
        if (company(h, r) > max) max = company(h, r);
    if (max == h->ranks) return HANG_TOGETHER;
    for (int r = 0; r < h->ranks; r++) found += culprit[r] = company(h, r) < max;
    for (int r = 0; !found && r < h->ranks; r++) culprit[r] = 1;
    return HANG_APART;
}

/* Of those that wait for nobody, the ones that have come least far. */
static void find_busy(const struct hang *h, char *culprit) {
    int64_t min = INT64_MAX;
    for (int r = 0; r < h->ranks; r++)
        if (!waits(h, r) && at(h, r)->step < min) min = at(h, r)->step;
    for (int r = 0; r < h->ranks; r++) culprit[r] = !waits(h, r) && at(h, r)->step == min;
}

enum hang_kind hang_judge(const struct hang *h, char *culprit) {
    int silent = 0, waiting = 0;
    for (int r = 0; r < h->ranks; r++) {
        silent += culprit[r] = !h->station[r].answered;
        waiting += waits(h, r);
    }
    if (silent) return HANG_SILENT;
    if (!waiting) return HANG_SLOW;
    if (waiting == h->ranks) return find_apart(h, culprit);
    find_busy(h, culprit);
    return HANG_BUSY;
}

/* ----------------------------------------------------------------------------------------------- words */

struct text {
    char *text;
    size_t size, used;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(t->text + t->used, t->size - t->used, format, list);
    va_end(list);
    size_t room = t->size - t->used - 1;
    t->used += n > 0 && (size_t)n < room ? (size_t)n : n > 0 ? room : 0;
}

enum { NAMED = 8 }; /* ranks that a sentence names; the table has all */

/* "rank 2 on HOST", "ranks 0, 1 and 3"; returns how many. */
static int add_ranks(struct text *t, const struct hang *h, const char *chosen, bool hosts) {
    int count = 0, said = 0;
    for (int r = 0; r < h->ranks; r++) count += chosen[r] != 0;
    add(t, count > 1 ? "ranks " : "rank ");
    for (int r = 0; r < h->ranks && said < NAMED; r++) {
        if (!chosen[r]) continue;
        add(t, "%s%d", !said ? "" : said + 1 == count ? " and " : ", ", r);
        if (said++, hosts) add(t, " on %s", h->host[r]);
    }
    if (count > NAMED) add(t, " and %d more", count - NAMED);
    return count;
}

static void add_phase(struct text *t, const struct station_thread *s) {
    switch (s->phase) {
    case PHASE_START:
        add(t, "the start");
        break;
    case PHASE_STEP:
        add(t, "step %lld", (long long)s->step);
        break;
    case PHASE_EVALUATION:
        add(t, "the evaluation after %lld steps", (long long)s->step);
        break;
    case PHASE_CHECKPOINT:
        add(t, "the checkpoint of step %lld", (long long)s->step);
        break;
    default:
        add(t, "the end");
    }
}

static const char *key(enum run_phase phase) {
    return phase == PHASE_START                               ? "watchdog.start"
           : phase == PHASE_STEP || phase == PHASE_EVALUATION ? "watchdog.step"
                                                              : "watchdog.checkpoint";
}

/* "ranks 0, 1 and 3 wait in the data axis's sum …": those that are where the first of the others is. */
static bool add_others(struct text *t, const struct hang *h, const char *culprit) {
    enum { MAX = 4096 };
    char together[MAX] = {0};
    int first = -1, elsewhere = 0;
    for (int r = 0; r < h->ranks && r < MAX; r++) {
        if (culprit[r] || !waits(h, r)) continue;
        if (first < 0) first = r;
        together[r] = same_place(h, first, r);
        elsewhere += !together[r];
    }
    if (first < 0) return false;
    struct hang some = *h;
    if (some.ranks > MAX) some.ranks = MAX;
    bool several = add_ranks(t, &some, together, false) > 1;
    add(t, " %s in %s", several ? "wait" : "waits", at(h, first)->wait);
    if (elsewhere) add(t, ", %d elsewhere", elsewhere);
    return true;
}

static void add_first_line(struct text *t, const struct hang *h, const char *culprit, enum hang_kind kind) {
    int seen = witness(h);
    const struct station_thread *s = at(h, seen);
    int first = 0;
    while (first < h->ranks - 1 && !culprit[first]) first++;
    const struct station_thread *c = at(h, first);
    add(t, "gdn: ");
    switch (kind) {
    case HANG_SILENT:
        add(t, add_ranks(t, h, culprit, true) > 1 ? " do not answer" : " does not answer");
        add(t, "; ");
        if (!add_others(t, h, culprit)) add(t, "rank %d does not get on", seen);
        break;
    case HANG_BUSY:
        add(t, add_ranks(t, h, culprit, true) > 1 ? " hold" : " holds");
        add(t, " the others up: in ");
        add_phase(t, c);
        if (c->action[0]) add(t, " at \"%s\"", c->action);
        add(t, ", waiting for no rank but computing, reading or writing, for %.1f s; ", c->seconds);
        add_others(t, h, culprit);
        break;
    case HANG_APART:
        add(t, add_ranks(t, h, culprit, true) > 1 ? " wait" : " waits");
        add(t, " in %s", c->wait);
        add(t, "; ");
        if (!add_others(t, h, culprit)) add(t, "no two halves of the ranks wait in the same place");
        break;
    case HANG_TOGETHER:
        add(t, "all ranks wait in %s, but nothing moves", s->wait);
        break;
    case HANG_SLOW:
        add(t, "no rank waits for another, but ");
        add_phase(t, s);
        add(t, " does not end on rank %d on %s", seen, h->host[seen]);
        if (s->action[0]) add(t, ", at \"%s\"", s->action);
        break;
    }
    add(t, " (");
    add_phase(t, s);
    add(t, ", for %.1f s; %s is %g)\n", s->phase_seconds, key(s->phase), h->limit[s->phase]);
}

static void add_advice(struct text *t, const struct hang *h, enum hang_kind kind) {
    static const char *const advice[] = {
        [HANG_SILENT] = "a rank that does not answer was stopped or has died, or its machine or network has",
        [HANG_BUSY] = "a file system, a GPU or a machine there hangs",
        [HANG_APART] = "messages got lost, or it is a fault of the program",
        [HANG_TOGETHER] = "messages got lost: the network between them, or MPI, is at fault",
        [HANG_SLOW] = "a file system, a GPU or a machine hangs",
    };
    enum run_phase phase = at(h, witness(h))->phase;
    add(t,
        "     Either %s, or it just takes long here: then raise %s (seconds, 0: never). All ranks are ended; "
        "the "
        "same command goes on from the newest checkpoint.\n",
        advice[kind], key(phase));
}

static void add_table_line(struct text *t, int rank, const char *host, const char *what,
                           const struct station_thread *s) {
    add(t, "%6d  %-20.20s  %-10s %9lld %8.1f %8.1f  %-44s  %s\n", rank, host, what, (long long)s->step,
        s->phase_seconds, s->seconds, s->action[0] ? s->action : "-", s->wait[0] ? s->wait : "-");
}

size_t hang_room(int ranks) {
    enum { LINE = 512, HEAD = 8192 };
    return HEAD + (size_t)ranks * ACTIVITIES * LINE;
}

size_t hang_report(const struct hang *h, char *culprit, char *text, size_t size) {
    struct text t = {.text = text, .size = size};
    enum hang_kind kind = hang_judge(h, culprit);
    add_first_line(&t, h, culprit, kind);
    add_advice(&t, h, kind);
    add(&t, "%6s  %-20s  %-10s %9s %8s %8s  %-44s  %s\n", "rank", "host", "phase", "step", "seconds", "here",
        "at", "waits in");
    for (int r = 0; r < h->ranks; r++) {
        const struct station *s = &h->station[r];
        if (!s->answered) {
            add(&t, "%6d  %-20.20s  no answer\n", r, h->host[r]);
            continue;
        }
        add_table_line(&t, r, h->host[r], activity_phase_name(s->thread[ACTIVITY_MAIN].phase),
                       &s->thread[ACTIVITY_MAIN]);
        if (s->thread[ACTIVITY_WRITER].phase != PHASE_NONE)
            add_table_line(&t, r, h->host[r], "writing", &s->thread[ACTIVITY_WRITER]);
    }
    return t.used;
}
