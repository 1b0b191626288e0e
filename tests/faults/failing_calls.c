/* A library to preload (LD_PRELOAD) that lets one call of a program fail, as a full or broken disk would, or
 * ends the program at it. From the environment:
 *
 *   GDN_FAIL_CALL   write | pwrite | fsync | rename | close | truncate | allocate | open | mkdir: calls of
 *                   this kind on files below GDN_FAIL_PATH, and close and open only of files for writing;
 *                   allreduce: MPI_Allreduce, whatever is below
 *   GDN_FAIL_AT     which of them, counted from 1 in each process
 *   GDN_FAIL_ERROR  ENOSPC, EIO: what it fails with; short: half is written; slow: it takes a second longer;
 *                   _exit, exit: the program ends there with status 0
 *
 *   GDN_FAIL_FROM   set: all calls from that one on, not it alone
 *
 *   GDN_FAIL_RANK   only on this rank of mpirun's, −1 or not set: on all
 *
 *   GDN_FAIL_TOLD   a file that gets a line when it has happened
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { NONE, WRITE, PWRITE, FSYNC, RENAME, CLOSE, TRUNCATE, ALLOCATE, OPEN, MKDIR, ALLREDUCE, CALLS };
static const char *const names[CALLS] = {"",         "write",    "pwrite", "fsync", "rename",   "close",
                                         "truncate", "allocate", "open",   "mkdir", "allreduce"};
enum outcome { WORKS, FAILS, HALF };

static struct {
    enum call call;
    long at;
    bool from, half, slow, leave, leave_at_once, die;
    int error;
    char path[4096];
    const char *told;
} fault;
static atomic_long calls;

__attribute__((constructor)) static void configure(void) {
    const char *call = getenv("GDN_FAIL_CALL"), *path = getenv("GDN_FAIL_PATH"),
               *rank = getenv("GDN_FAIL_RANK");
    const char *own = getenv("OMPI_COMM_WORLD_RANK"), *error = getenv("GDN_FAIL_ERROR"),
               *at = getenv("GDN_FAIL_AT");
    if (!call || !at || !error) return;
    if (rank && atoi(rank) >= 0 && atoi(rank) != (own ? atoi(own) : 0)) return;
    for (int i = 1; i < CALLS; i++)
        if (!strcmp(call, names[i])) fault.call = (enum call)i;
    fault.at = atol(at);
    fault.from = getenv("GDN_FAIL_FROM") != NULL;
    fault.half = !strcmp(error, "short");
    fault.slow = !strcmp(error, "slow");
    fault.leave_at_once = !strcmp(error, "_exit");
    fault.leave = fault.leave_at_once || !strcmp(error, "exit");
    fault.die = !strcmp(error, "kill");
    fault.error = !strcmp(error, "EIO") ? EIO : ENOSPC;
    fault.told = getenv("GDN_FAIL_TOLD");
    if (path) snprintf(fault.path, sizeof fault.path, "%s/", path);
}

/* The kernel's own calls, so that nothing here comes by this library again. */
static void tell(void) {
    static const char line[] = "failed\n";
    if (!fault.told) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, fault.told, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return;
    syscall(SYS_write, fd, line, sizeof line - 1);
    syscall(SYS_close, fd);
}

static enum outcome count(enum call call) {
    if (fault.call != call) return WORKS;
    long n = atomic_fetch_add(&calls, 1) + 1;
    if (fault.from ? n < fault.at : n != fault.at) return WORKS;
    int error = errno;
    tell();
    if (fault.die) raise(SIGKILL);
    if (fault.leave_at_once) _exit(0);
    if (fault.leave) exit(0);
    if (fault.slow) sleep(1);
    errno = fault.half || fault.slow ? error : fault.error;
    return fault.slow ? WORKS : fault.half ? HALF : FAILS;
}

/* Whether a path, taken from the folder `at`, lies below the one that is meant. */
static bool meant(int at, const char *path) {
    char link[64], folder[4096] = "", whole[8192];
    if (!fault.path[0]) return false;
    if (path && path[0] == '/') return !strncmp(path, fault.path, strlen(fault.path));
    if (at == AT_FDCWD) {
        if (!getcwd(folder, sizeof folder)) return false;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t n = readlink(link, folder, sizeof folder - 1);
        if (n < 0) return false;
        folder[n] = 0;
    }
    snprintf(whole, sizeof whole, "%s/%s", folder, path ? path : "");
    return !strncmp(whole, fault.path, strlen(fault.path));
}

static enum outcome on_file(enum call call, int fd) {
    int error = errno;
    bool of_this = fault.call == call && meant(fd, NULL);
    errno = error;
    return of_this ? count(call) : WORKS;
}

static enum outcome on_path(enum call call, int at, const char *path) {
    int error = errno;
    bool of_this = fault.call == call && meant(at, path);
    errno = error;
    return of_this ? count(call) : WORKS;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ------------------------------------------------------------------------------------------- bytes */

ssize_t write(int fd, const void *bytes, size_t n) {
    enum outcome outcome = on_file(WRITE, fd);
    return outcome == FAILS ? -1 : REAL(write)(fd, bytes, outcome == HALF && n > 1 ? n / 2 : n);
}
ssize_t writev(int fd, const struct iovec *parts, int n) {
    return on_file(WRITE, fd) != WORKS ? -1 : REAL(writev)(fd, parts, n);
}
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    enum outcome outcome = on_file(PWRITE, fd);
    return outcome == FAILS ? -1 : REAL(pwrite)(fd, bytes, outcome == HALF && n > 1 ? n / 2 : n, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) {
    return pwrite(fd, bytes, n, at);
}
ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at) {
    return on_file(PWRITE, fd) != WORKS ? -1 : REAL(pwritev)(fd, parts, n, at);
}
int fsync(int fd) {
    return on_file(FSYNC, fd) ? -1 : REAL(fsync)(fd);
}
int fdatasync(int fd) {
    return on_file(FSYNC, fd) ? -1 : REAL(fdatasync)(fd);
}

/* ------------------------------------------------------------------------------------------- room */

int ftruncate(int fd, off_t length) {
    return on_file(TRUNCATE, fd) ? -1 : REAL(ftruncate)(fd, length);
}
int ftruncate64(int fd, off64_t length) {
    return ftruncate(fd, length);
}
int fallocate(int fd, int mode, off_t at, off_t length) {
    return on_file(ALLOCATE, fd) ? -1 : REAL(fallocate)(fd, mode, at, length);
}
int fallocate64(int fd, int mode, off64_t at, off64_t length) {
    return fallocate(fd, mode, at, length);
}
int posix_fallocate(int fd, off_t at, off_t length) {
    return on_file(ALLOCATE, fd) ? fault.error : REAL(posix_fallocate)(fd, at, length);
}

/* ------------------------------------------------------------------------------------------- names */

int rename(const char *a, const char *b) {
    return on_path(RENAME, AT_FDCWD, a) ? -1 : REAL(rename)(a, b);
}
int renameat(int from, const char *a, int to, const char *b) {
    return on_path(RENAME, from, a) ? -1 : REAL(renameat)(from, a, to, b);
}
int renameat2(int from, const char *a, int to, const char *b, unsigned flags) {
    return on_path(RENAME, from, a) ? -1 : REAL(renameat2)(from, a, to, b, flags);
}
int mkdir(const char *path, mode_t mode) {
    return on_path(MKDIR, AT_FDCWD, path) ? -1 : REAL(mkdir)(path, mode);
}
int mkdirat(int at, const char *path, mode_t mode) {
    return on_path(MKDIR, at, path) ? -1 : REAL(mkdirat)(at, path, mode);
}

/* ----------------------------------------------------------------------------- opening and closing */

static bool for_writing(int flags) {
    return (flags & O_ACCMODE) != O_RDONLY;
}

static int open_from(int at, const char *path, int flags, va_list more) {
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    if (for_writing(flags) && on_path(OPEN, at, path)) return -1;
    return REAL(openat)(at, path, flags, mode);
}

#define OPENING(name, at, ...)                                                                               \
    int name(__VA_ARGS__, int flags, ...) {                                                                  \
        va_list more;                                                                                        \
        va_start(more, flags);                                                                               \
        int fd = open_from(at, path, flags, more);                                                           \
        va_end(more);                                                                                        \
        return fd;                                                                                           \
    }
OPENING(open, AT_FDCWD, const char *path)
OPENING(open64, AT_FDCWD, const char *path)
OPENING(openat, at, int at, const char *path)
OPENING(openat64, at, int at, const char *path)

/* One that fails has closed the file all the same, as on Linux. */
int close(int fd) {
    bool fails = fault.call == CLOSE && for_writing(fcntl(fd, F_GETFL)) && on_file(CLOSE, fd);
    int error = errno, status = REAL(close)(fd);
    if (!fails) return status;
    errno = error;
    return -1;
}

/* ------------------------------------------------------------------------------------------- ranks */

int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    count(ALLREDUCE);
    return PMPI_Allreduce(in, out, n, type, op, comm);
}
