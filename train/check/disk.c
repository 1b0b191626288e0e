#include "train/check/disk.h"

#include "kernels/base/real.h"
#include "kernels/base/write_whole.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, PROBE = PATH_BYTES + 64 };

#define TIMEOUT                                                                                              \
    5.0 /* seconds until a file of another node is seen: network file systems remember for some              \
           that it was not there */

/* The directory, or the nearest one above it that exists. */
static int existing(const char *directory, char out[PATH_BYTES]) {
    if (snprintf(out, PATH_BYTES, "%s", directory) >= PATH_BYTES)
        return gdn_fail(GDN_INPUT, "run directory %.60s…: its path is too long", directory);
    for (;;) {
        struct stat info;
        if (!stat(out, &info)) {
            if (S_ISDIR(info.st_mode)) return 0;
            return gdn_fail(GDN_INPUT, "run directory %s: %s is not a directory", directory, out);
        }
        if (errno != ENOENT)
            return gdn_fail(GDN_INPUT, "run directory %s: %s: %s", directory, out, strerror(errno));
        char *slash = strrchr(out, '/');
        if (!slash)
            strcpy(out, ".");
        else if (slash == out)
            strcpy(out, "/");
        else
            *slash = 0;
    }
}

/* A new file with a few bytes. */
static int make_file(const char *path, const char *bytes) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int reason = file < 0 ? errno : write_whole(file, bytes, strlen(bytes));
    if (!reason && fsync(file)) reason = errno;
    if (file >= 0 && close(file) && !reason) reason = errno;
    if (!reason) return 0;
    if (file >= 0) unlink(path);
    return gdn_fail(GDN_INPUT, "the run directory cannot be written: %s: %s", path, strerror(reason));
}

/* Whether the file has these bytes. */
static int see_file(const char *path, const char *bytes) {
    int reason = 0;
    for (int tenths = 0; tenths < (int)(10 * TIMEOUT); tenths++) {
        char found[64] = "";
        int file = open(path, O_RDONLY | O_CLOEXEC);
        reason = file < 0 ? errno : 0;
        ssize_t n = file < 0 ? -1 : read(file, found, sizeof found - 1);
        if (file >= 0) close(file);
        if (n >= 0 && !strcmp(found, bytes)) return 0;
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    return gdn_fail(
        GDN_INPUT,
        "%s, which rank 0 has written, is not to be seen by this rank: %s; the run directory must be one "
        "that all nodes share, and its path the same on all (an absolute one is best)",
        path, reason ? strerror(reason) : "another file is there");
}

/* Rank 0's file, which all look for. */
struct probe {
    char path[PROBE], bytes[64];
};

static int start_probe(const char *directory, struct probe *probe) {
    char place[PATH_BYTES];
    TRY(existing(directory, place));
    snprintf(probe->path, sizeof probe->path, "%s/.check-%ld", place, (long)getpid());
    snprintf(probe->bytes, sizeof probe->bytes, "%ld %lld", (long)getpid(), (long long)time(NULL));
    return make_file(probe->path, probe->bytes);
}

/* This rank's own file beside it. */
static int write_beside(const struct probe *probe, int rank) {
    char path[PROBE + 16];
    snprintf(path, sizeof path, "%s.%d", probe->path, rank);
    TRY(make_file(path, probe->bytes));
    return unlink(path) ? gdn_fail(GDN_INPUT, "%s cannot be removed: %s", path, strerror(errno)) : 0;
}

int check_directory(const struct mesh *mesh, const char *directory) {
    struct probe *probe = calloc(1, sizeof *probe);
    int status = mesh_agree(mesh, probe ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a path"));
    if (!status) status = mesh_agree(mesh, mesh->rank == 0 ? start_probe(directory, probe) : 0);
    if (!status) {
        status = mesh_broadcast(mesh, probe, sizeof *probe);
        if (!status) status = mesh_agree(mesh, see_file(probe->path, probe->bytes));
        if (!status) status = mesh_agree(mesh, write_beside(probe, mesh->rank));
        if (mesh->rank == 0) unlink(probe->path);
    }
    free(probe);
    return status;
}

/* ------------------------------------------------------------------------------------------ space */

/* Of a dataset besides its elements, and of a file besides its datasets, at most. */
enum { DATASET_BYTES = 2048, FILE_BYTES = 1 << 20 };

static int64_t checkpoint_bytes(const struct table *global) {
    int64_t elements = 0, datasets = 0;
    for (int i = 0; i < global->rows; i++) {
        const struct row *row = &global->row[i];
        int moments = row->treatment.moments->count;
        elements += row->count * (1 + moments);
        datasets += 2 + moments; /* weights and steps too */
    }
    return elements * (int64_t)sizeof(real) + datasets * DATASET_BYTES + FILE_BYTES;
}

/* How many checkpoints will lie in the run directory at a time, at most; with checkpoint.interval_minutes and
 * all of them kept, at least. */
static int64_t checkpoints(const struct config *config) {
    const struct checkpoint_config *c = &config->checkpoint;
    int64_t written = c->interval > 0 ? config->train.steps / c->interval + 1 : 1;
    bool by_clock = c->interval_minutes > 0; /* as many as it gets to */
    int64_t kept = c->keep > 0 && (by_clock || c->keep < written) ? c->keep + 1 /* the best one */ : written;
    if (c->keep > 0 && c->keep_every > 0) kept += config->train.steps / c->keep_every;
    return kept + 1; /* the one being written */
}

static int64_t present(const char *directory) {
    char path[PATH_BYTES + 16];
    int64_t count = 0;
    snprintf(path, sizeof path, "%s/checkpoints", directory);
    DIR *folder = opendir(path);
    if (!folder) return 0;
    for (struct dirent *entry; (entry = readdir(folder));) count += !strncmp(entry->d_name, "step_", 5);
    closedir(folder);
    return count;
}

static int too_little(const struct check_space *s, int64_t needed, const char *why) {
    return gdn_fail(
        GDN_INPUT,
        "checkpoints will take %.1f MiB more (%.1f MiB each) in %s, %s; lower checkpoint.keep, or make "
        "room",
        (double)needed / 1048576, (double)s->each / 1048576, s->path, why);
}

/* Takes the space for a moment. Quotas are known to the file system alone. */
static int try_space(const struct check_space *s, int64_t bytes) {
    char path[PROBE];
    snprintf(path, sizeof path, "%s/.check-%ld.space", s->path, (long)getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0)
        return gdn_fail(GDN_INPUT, "the run directory cannot be written: %s: %s", path, strerror(errno));
    int reason = fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes) ? errno : 0;
    close(file);
    unlink(path);
    if (reason != ENOSPC && reason != EDQUOT) return 0; /* some network file systems cannot do this */
    return too_little(s, bytes,
                      reason == EDQUOT ? "which is beyond the quota" : "and the disk has not that much");
}

static int ask_disk(const char *directory, struct check_space *s) {
    TRY(existing(directory, s->path));
    s->present = s->each * present(directory);
    struct statvfs disk;
    s->free = statvfs(s->path, &disk) ? -1 : (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    int64_t needed = s->expected - s->present;
    if (needed < s->each) needed = s->each;
    if (s->free >= 0 && s->free < needed) {
        char text[64];
        snprintf(text, sizeof text, "where %.1f MiB are free", (double)s->free / 1048576);
        return too_little(s, needed, text);
    }
    struct rlimit limit;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
        (rlim_t)needed > limit.rlim_cur)
        needed = (int64_t)limit.rlim_cur; /* of one file */
    return try_space(s, needed);
}

static int check_limit(const struct check_space *s) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= (rlim_t)s->each)
        return 0;
    return gdn_fail(
        GDN_INPUT,
        "a checkpoint takes %.1f MiB and the limit of a file's size is %.1f MiB; raise it with ulimit -f",
        (double)s->each / 1048576, (double)limit.rlim_cur / 1048576);
}

int check_space(const struct mesh *mesh, const char *directory, const struct config *config,
                const struct table *global, struct check_space *out) {
    *out = (struct check_space){.each = checkpoint_bytes(global)};
    out->expected = out->each * checkpoints(config);
    out->unknown = config->checkpoint.interval_minutes > 0 && !config->checkpoint.keep;
    TRY(mesh_agree(mesh, check_limit(out)));
    return mesh_agree(mesh, mesh->rank == 0 ? ask_disk(directory, out) : 0);
}
