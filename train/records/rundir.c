#include "train/records/rundir.h"

#include "dist/checkpoint/folder.h"
#include "kernels/base/status.h"
#include "kernels/base/write_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_INSIDE = 400 }; /* characters of the longest name below a run directory, an event file's */

int rundir_set(struct rundir *rundir, const char *path) {
    *rundir =
        (struct rundir){.lock = {.file = -1}, .newest = -1, .metrics = {.file = -1}, .board = {.file = -1}};
    size_t max = sizeof rundir->path - LONGEST_INSIDE, length = strlen(path);
    if (length == 0 || length > max)
        return gdn_fail(GDN_INPUT, "--run-dir: a path of 1 to %zu characters is expected; this one has %zu",
                        max, length);
    memcpy(rundir->path, path, length + 1);
    return 0;
}

/* "runs/NAME" for a configuration "some/where/NAME.yaml"; free() it. */
static char *default_path(const char *config_path) {
    const char *slash = strrchr(config_path, '/');
    const char *name = slash ? slash + 1 : config_path;
    const char *dot = strrchr(name, '.');
    int length = (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name));
    char *path = NULL;
    return asprintf(&path, "runs/%.*s", length, name) < 0 ? NULL : path;
}

int rundir_name(struct rundir *rundir, const char *given, const char *config_path) {
    char *path = given ? strdup(given) : default_path(config_path);
    if (!path) return gdn_fail(GDN_INTERNAL, "out of memory for the run directory's name");
    int status = rundir_set(rundir, path);
    free(path);
    return status;
}

static int64_t newest_in(const struct rundir *rundir) {
    char path[PATH_MAX + LONGEST_INSIDE];
    snprintf(path, sizeof path, "%s/checkpoints", rundir->path);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int64_t newest = folder < 0 ? -1 : folder_pointer(folder, "latest", NULL);
    if (folder >= 0) close(folder);
    return newest;
}

int rundir_lock_existing(struct rundir *rundir) {
    rundir->newest = newest_in(rundir);
    return lock_take(rundir->path, false, &rundir->lock);
}

/* mkdir -p */
static int make_directories(const char *path) {
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1;; at++) {
        if (*at && *at != '/') continue;
        char separator = *at;
        *at = 0;
        struct stat info;
        if (mkdir(part, 0777) && errno != EEXIST)
            return gdn_fail(GDN_INPUT, "run directory %s: cannot create %s: %s", path, part, strerror(errno));
        if (stat(part, &info) == 0 && !S_ISDIR(info.st_mode))
            return gdn_fail(GDN_INPUT, "run directory %s: %s is not a directory", path, part);
        *at = separator;
        if (!separator) return 0;
    }
}

static int write_synced(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return errno;
    int reason = write_whole(file, text, strlen(text));
    if (!reason && fsync(file)) reason = errno;
    if (close(file) && !reason) reason = errno;
    return reason;
}

/* Beside and renamed: a file is the old one or the new one, never half of one. NULL: nothing is written. */
static int write_file(const char *directory, const char *name, const char *text) {
    char path[PATH_MAX], beside[PATH_MAX];
    if (!text) return 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    snprintf(beside, sizeof beside, "%s/.%s.new", directory, name);
    int reason = write_synced(beside, text);
    if (!reason && rename(beside, path)) reason = errno;
    if (!reason) return 0;
    unlink(beside);
    return gdn_fail(GDN_INPUT, "%s: cannot write: %s", path, strerror(reason));
}

/* Without a lock file there was nothing to hold: a run that began meanwhile may have ended already. */
static int lock_late(struct rundir *rundir) {
    TRY(lock_take(rundir->path, true, &rundir->lock));
    int64_t newest = newest_in(rundir);
    if (newest == rundir->newest) return 0;
    return gdn_fail(GDN_INPUT,
                    "run directory %s: another run has saved a checkpoint of step %lld there since this one "
                    "looked for checkpoints; run the same command again to go on from it",
                    rundir->path, (long long)newest);
}

int rundir_open(struct rundir *rundir, const struct rundir_files *files, int64_t step) {
    TRY(make_directories(rundir->path));
    if (rundir->lock.file < 0) TRY(lock_late(rundir));
    TRY(write_file(rundir->path, "config.yaml", files->config));
    TRY(write_file(rundir->path, "tokenizer.json", files->tokenizer));
    TRY(write_file(rundir->path, "tokenizer_config.json", files->tokenizer_config));
    TRY(metrics_open(rundir->path, &rundir->metrics));
    return tensorboard_open(rundir->path, step, &rundir->board);
}

void rundir_close(struct rundir *rundir) {
    tensorboard_close(&rundir->board);
    metrics_close(&rundir->metrics);
    lock_release(&rundir->lock);
}
