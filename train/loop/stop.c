#include "train/loop/stop.h"

#include "kernels/base/status.h"
#include "train/health/signals.h"
#include "train/records/unix_seconds.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_MARGIN 60.0
#define MARGIN_PART 0.05

/* Unix seconds in an environment variable, 0 where it is not set. */
static int read_time(const char *name, double *out) {
    const char *text = getenv(name);
    *out = 0;
    if (!text || !*text) return 0;
    char *end;
    errno = 0;
    long long seconds = strtoll(text, &end, 10);
    if (errno || *end || seconds <= 0)
        return gdn_fail(GDN_INPUT,
                        "environment variable %s is '%.40s': the time at which the job ends is expected, in "
                        "whole seconds since 1970; unset it, or set train.time_limit",
                        name, text);
    *out = (double)seconds;
    return 0;
}

static int find_end(double limit_minutes, double now, double *end) {
    if (limit_minutes > 0) {
        *end = now + 60 * limit_minutes;
        return 0;
    }
    TRY(read_time("SLURM_JOB_END_TIME", end));
    return *end > 0 ? 0 : read_time("GDN_END_TIME", end);
}

int stop_open(struct stop *stop, const char *directory, double limit_minutes, int rank) {
    return stop_open_with(stop, directory, limit_minutes, rank, unix_seconds);
}

int stop_open_with(struct stop *stop, const char *directory, double limit_minutes, int rank,
                   double (*clock)(void)) {
    *stop = (struct stop){.looked = -INFINITY, .clock = clock};
    if (rank) return 0;
    int length = snprintf(stop->file, sizeof stop->file, "%s/stop", directory);
    if (length < 0 || (size_t)length >= sizeof stop->file)
        return gdn_fail(GDN_INPUT, "run directory %.60s…: its path is too long", directory);
    double now = stop->clock();
    TRY(find_end(limit_minutes, now, &stop->end));
    stop->margin = fmax(0, fmin(MAX_MARGIN, MARGIN_PART * (stop->end - now)));
    return 0;
}

static enum stop_reason of_signal(int number) {
    switch (number) {
    case SIGINT:
        return STOP_INT;
    case SIGTERM:
        return STOP_TERM;
    case SIGUSR1:
        return STOP_USR1;
    case SIGUSR2:
        return STOP_USR2;
    default:
        return STOP_NONE;
    }
}

static int file_there(struct stop *stop, double now) {
    if (!stop->file[0] || fabs(now - stop->looked) < 1) return 0; /* also where the clock was set back */
    stop->looked = now;
    return !access(stop->file, F_OK);
}

/* Seconds that work of this kind may take. */
static double expected(const struct stop *stop, enum stop_work work) {
    static const double times[STOP_WORKS] = {[STOP_STEP] = 2, [STOP_EVALUATION] = 1, [STOP_ROUND] = 2};
    double longest = 0;
    for (int i = 0; i < STOP_RECENT; i++) longest = fmax(longest, stop->took[work].seconds[i]);
    return times[work] * longest;
}

static int end_is_near(const struct stop *stop, double now, enum stop_work next, double checkpoint_seconds) {
    return stop->end > 0 && now + expected(stop, next) + 2 * checkpoint_seconds + stop->margin > stop->end;
}

void stop_took(struct stop *stop, enum stop_work work, double seconds) {
    stop->took[work].seconds[stop->took[work].next] = seconds;
    stop->took[work].next = (stop->took[work].next + 1) % STOP_RECENT;
}

void stop_grows(struct stop *stop, enum stop_work work, double factor) {
    for (int i = 0; i < STOP_RECENT && factor > 1; i++) stop->took[work].seconds[i] *= factor;
}

enum stop_reason stop_asked(struct stop *stop, enum stop_work next, double checkpoint_seconds) {
    enum stop_reason found = of_signal(signals_received());
    if (!found && !stop->reason && stop->file[0]) { /* rank 0 */
        double now = stop->clock();
        if (file_there(stop, now))
            found = STOP_FILE;
        else if (end_is_near(stop, now, next, checkpoint_seconds))
            found = STOP_TIME;
    }
    if (found > stop->reason) stop->reason = found;
    return stop->reason;
}

int stop_honoured(const struct stop *stop) {
    if (!stop->file[0] || !unlink(stop->file) || errno == ENOENT || errno == ENOTDIR) return 0;
    return gdn_fail(GDN_INTERNAL,
                    "%s cannot be removed: %s; remove it, or the run stops again as soon as it goes on",
                    stop->file, strerror(errno));
}

static const struct {
    const char *name, *text;
} told[STOP_REASONS] = {
    [STOP_NONE] = {"", ""},
    [STOP_TIME] = {"time limit", "before the time limit"},
    [STOP_FILE] = {"stop file", "by the file stop"},
    [STOP_INT] = {"INT", "by signal INT"},
    [STOP_TERM] = {"TERM", "by signal TERM"},
    [STOP_USR1] = {"USR1", "by signal USR1"},
    [STOP_USR2] = {"USR2", "by signal USR2"},
};

const char *stop_text(enum stop_reason reason) {
    return told[reason].text;
}

const char *stop_name(enum stop_reason reason) {
    return told[reason].name;
}
