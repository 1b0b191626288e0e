#include "train/records/lock.h"

#include "kernels/base/status.h"
#include "kernels/base/write_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* The holder's own words from the lock file: "process PID on HOST". */
static void read_holder(int file, char *holder, size_t size) {
    ssize_t n = pread(file, holder, size - 1, 0);
    holder[n > 0 ? n : 0] = 0;
    holder[strcspn(holder, "\n")] = 0;
    if (!holder[0]) snprintf(holder, size, "another process");
}

static int write_holder(int file, const char *path) {
    char host[256] = "", line[320];
    gethostname(host, sizeof host - 1);
    int n = snprintf(line, sizeof line, "process %ld on %s\n", (long)getpid(), host);
    int reason = ftruncate(file, 0) ? errno : write_whole_at(file, line, (size_t)n, 0);
    return reason ? gdn_fail(GDN_INPUT, "%s: cannot write: %s", path, strerror(reason)) : 0;
}

int lock_take(const char *directory, bool create, struct lock *lock) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/.lock", directory);
    lock->file = -1;
    int file = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0666);
    if (file < 0 && !create && (errno == ENOENT || errno == ENOTDIR)) return 0;
    if (file < 0) return gdn_fail(GDN_INPUT, "%s: cannot open for writing: %s", path, strerror(errno));

    int status = 0;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) {
        status = write_holder(file, path);
    } else if (errno == EWOULDBLOCK) {
        char holder[320];
        read_holder(file, holder, sizeof holder);
        status = gdn_fail(GDN_INPUT,
                          "run directory %s is in use by %s; wait for it, stop it, or give another --run-dir",
                          directory, holder);
    } else {
        status = gdn_fail(GDN_INPUT, "%s: cannot lock: %s; a run directory needs a file system with locks",
                          path, strerror(errno));
    }
    if (status) {
        close(file);
        return status;
    }
    lock->file = file;
    return 0;
}

void lock_release(struct lock *lock) {
    if (lock->file >= 0) close(lock->file);
    lock->file = -1;
}
