/* Kills a process with signal 9 at a chosen moment.
 *
 *   moment PIDFILE MICROSECONDS                  so long after the process has begun
 *   moment PIDFILE MICROSECONDS lines FILE       … after the next line in FILE
 *   moment PIDFILE MICROSECONDS made FOLDER N    … after the N-th name .step_*.tmp is made in FOLDER
 *
 * PIDFILE is where the process writes its number; it and FOLDER may still be missing. Status 0: killed, 1:
 * the process had ended by then, 2: called wrongly, or nothing of the kind has happened for a minute. */
#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KILLED = 0, GONE = 1, STUCK = 2, TIMEOUT = 60 };

static time_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static time_t began;

static bool in_time(void) {
    return now() - began < TIMEOUT;
}

/* The number in `path` once there is a whole line, 0 where it does not come. */
static long read_pid(const char *path) {
    for (; in_time(); usleep(200)) {
        FILE *file = fopen(path, "r");
        long pid = 0;
        char end = 0;
        if (file && fscanf(file, "%ld%c", &pid, &end) == 2 && end == '\n') {
            fclose(file);
            return pid;
        }
        if (file) fclose(file);
    }
    return 0;
}

static bool alive(long pid) {
    return !kill((pid_t)pid, 0);
}

static int await_line(long pid, const char *path) {
    struct stat about;
    off_t before = stat(path, &about) ? 0 : about.st_size;
    for (; in_time(); usleep(200)) {
        if (!stat(path, &about) && about.st_size > before) return 0;
        if (!alive(pid)) return GONE;
    }
    return STUCK;
}

/* How many of the events that are there to be read are of a name like `pattern`. */
static int count_names(int watch, const char *pattern) {
    _Alignas(struct inotify_event) char events[8192];
    ssize_t n = read(watch, events, sizeof events);
    int count = 0;
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *event = (const struct inotify_event *)(events + at);
        count += event->len && !fnmatch(pattern, event->name, 0);
        at += (ssize_t)sizeof *event + event->len;
    }
    return count;
}

static int await_names(long pid, const char *folder, const char *pattern, int wanted) {
    int watch = inotify_init1(IN_CLOEXEC);
    if (watch < 0) return STUCK;
    while (inotify_add_watch(watch, folder, IN_CREATE) < 0) {
        if (errno != ENOENT || !in_time()) return STUCK;
        if (!alive(pid)) return GONE;
        usleep(200);
    }
    while (wanted > 0) {
        struct pollfd events = {.fd = watch, .events = POLLIN};
        if (poll(&events, 1, 20) > 0) wanted -= count_names(watch, pattern);
        if (wanted > 0 && !alive(pid)) return GONE;
        if (!in_time()) return STUCK;
    }
    close(watch);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 5 && argc != 6) return STUCK;
    const char *what = argc > 3 ? argv[3] : "";
    began = now();
    long pid = read_pid(argv[1]);
    int status = pid ? 0 : STUCK;
    if (!status && !strcmp(what, "lines")) status = await_line(pid, argv[4]);
    if (!status && !strcmp(what, "made")) status = await_names(pid, argv[4], ".step_*.tmp", atoi(argv[5]));
    if (status) return status;
    usleep((useconds_t)atol(argv[2]));
    return kill((pid_t)pid, SIGKILL) ? GONE : KILLED;
}
