/* Saves that the system fails: each write, read, sync and rename in turn, on each rank that makes it, a full
 * disk, a limit on a file's size, a folder that cannot be written. After every failure the folder is as it
 * was, the reason is named, all ranks agree, and the next save works. This program has its own pwrite, fsync,
 * … which HDF5 and dist/ then call.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/dist/checkpoint/sample.h"
#include "tests/support/rank_main.h"
#include "tests/support/scratch.h"

static struct mesh mesh;

/* The fault: calls of one kind on files of the scratch folder count down, and from 0 on (or only at 0) they
 * fail. */
enum call {
    NO_CALL,
    CALL_PWRITE,
    CALL_PREAD,
    CALL_FTRUNCATE,
    CALL_FSYNC,
    CALL_RENAME,
    CALL_MKDIR,
    CALL_FALLOCATE,
    CALLS
};
static const char *const call_names[] = {"none",  "pwrite", "pread", "ftruncate",
                                         "fsync", "rename", "mkdir", "fallocate"};
static struct {
    enum call call;
    long countdown;
    bool once, no_exchange, tripped;
    int error;
} fault;

static bool in_scratch(int fd) {
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return false;
    path[n] = 0;
    return strncmp(path, scratch(), strlen(scratch())) == 0;
}

static bool fails(enum call call, int fd) {
    if (fault.call != call || !in_scratch(fd)) return false;
    bool now = fault.once ? fault.countdown == 0 : fault.countdown <= 0;
    fault.countdown--;
    if (now) errno = fault.error, fault.tripped = true;
    return now;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    return fails(CALL_PWRITE, fd) ? -1 : REAL(pwrite)(fd, bytes, n, at);
}
ssize_t pread(int fd, void *bytes, size_t n, off_t at) {
    return fails(CALL_PREAD, fd) ? -1 : REAL(pread)(fd, bytes, n, at);
}
int ftruncate(int fd, off_t length) {
    return fails(CALL_FTRUNCATE, fd) ? -1 : REAL(ftruncate)(fd, length);
}
int fsync(int fd) {
    return fails(CALL_FSYNC, fd) ? -1 : REAL(fsync)(fd);
}
int mkdirat(int fd, const char *path, mode_t mode) {
    return fails(CALL_MKDIR, fd) ? -1 : REAL(mkdirat)(fd, path, mode);
}
int fallocate(int fd, int mode, off_t at, off_t length) {
    return fails(CALL_FALLOCATE, fd) ? -1 : REAL(fallocate)(fd, mode, at, length);
}
int renameat(int from, const char *a, int to, const char *b) {
    return fails(CALL_RENAME, from) ? -1 : REAL(renameat)(from, a, to, b);
}
int renameat2(int from, const char *a, int to, const char *b, unsigned flags) {
    if (fault.no_exchange) return errno = EINVAL, -1;
    return fails(CALL_RENAME, from) ? -1 : REAL(renameat2)(from, a, to, b, flags);
}

static const char *file_of(const char *directory, int step) {
    return format("%s/checkpoints/step_%08d/checkpoint.h5", directory, step);
}

static int save(const char *directory, const struct sample *sample, int step) {
    struct checkpoint_info info = sample_info(step, 1, 1);
    return sample_save(&mesh, directory, sample, &info, 0);
}

static void assert_holds(const char *directory, int step, const struct sample *right) {
    struct sample *loaded = sample_new(1, 77);
    int status = sample_load(&mesh, file_of(directory, step), loaded, NULL);
    assert_string_equal(gdn_failure(), "");
    assert_int_equal(status, 0);
    assert_true(sample_same(loaded, right));
    sample_free(loaded);
}

/* How many entries the folder has, those with a dot included. */
static int entries(const char *directory) {
    int count = 0;
    DIR *stream = opendir(format("%s/checkpoints", directory));
    if (!stream) return 0;
    for (struct dirent *entry; (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) count++;
    closedir(stream);
    return count;
}

static void assert_pointers(const char *directory, const char *line) {
    const char *pointers[] = {"latest", "best"};
    for (int i = 0; i < 2; i++) {
        long length;
        char *text = read_bytes(format("%s/checkpoints/%s", directory, pointers[i]), &length);
        assert_string_equal(text, line);
        free(text);
    }
}

static void barrier(void) {
    MPI_Barrier(mesh.world);
}

/* Calls that every rank makes in a save; the others are rank 0's. */
static bool on_all_ranks(enum call call) {
    bool with_files = call == CALL_FTRUNCATE || call == CALL_FALLOCATE; /* where each rank has its own */
    return call == CALL_PWRITE || call == CALL_PREAD || call == CALL_FSYNC ||
           (with_files && sample_files == FILES_NODE);
}

static int every = 1; /* with the argument `few`: each third call */

/* From call n to the next one that fails. A kind's first calls are made at places of their own, each with its
 * way out, later ones for one dataset after another: on one rank each of the first fails. */
static int step_from(long n) {
    return mesh.size == 1 && n < 6 ? 1 : every;
}

/* Lets call number 0, 1, 2, … of a kind fail on one rank until a save gets through. */
static void fail_each(const char *directory, enum call call, int guilty, int error, bool once, int step,
                      const struct sample *old, const struct sample *new) {
    int before = entries(directory);
    for (long n = 0;; n += step_from(n)) {
        barrier();
        fault.call = mesh.rank == guilty ? call : NO_CALL;
        fault.countdown = n, fault.once = once, fault.error = error, fault.tripped = false;
        int status = save(directory, new, step);
        fault.call = NO_CALL;
        int tripped = mesh_any(&mesh, fault.tripped);
        if (!tripped) { /* the n-th call does not exist: all have had their turn */
            assert_int_equal(status, 0);
            if (n == 0) fail_msg("rank %d never calls %s in a save", guilty, call_names[call]);
            break;
        }
        if (status != GDN_INTERNAL)
            fail_msg("%s number %ld failed on rank %d, and the status is %d", call_names[call], n, guilty,
                     status);
        if (!strstr(gdn_failure(), strerror(error)))
            fail_msg("%s number %ld: no reason in: %s", call_names[call], n, gdn_failure());
        gdn_failure_clear();
        if (entries(directory) != before) fail_msg("%s number %ld left something", call_names[call], n);
        assert_holds(directory, 10, old);
        assert_pointers(directory, "step_00000010\n");
    }
    assert_holds(directory, step, new);
}

static void each_call(enum call call, int error, bool once, bool replace) {
    for (int guilty = 0; guilty < (on_all_ranks(call) ? mesh.size : 1); guilty++) {
        char *directory = scratch_folder();
        struct sample *old = sample_new(1, 1), *new = sample_new(1, 2);
        assert_int_equal(save(directory, old, 10), 0);
        fail_each(directory, call, guilty, error, once, replace ? 10 : 20, old, new);
        assert_int_equal(entries(directory), replace ? 3 : 4); /* steps, latest, best */
        sample_free(old);
        sample_free(new);
        free(directory);
    }
}

/* The same where each rank is taken for a node and writes a file of its own. */
static void files_of_nodes(void **unused) {
    (void)unused;
    struct mesh before = mesh;
    snprintf(mesh.host, sizeof mesh.host, "node%d", mesh.rank);
    sample_files = FILES_NODE;
    each_call(CALL_PWRITE, EIO, true,
              false); /* not reads: HDF5 opens a joined file again where that failed */
    each_call(CALL_FSYNC, EIO, true, true);
    each_call(CALL_FTRUNCATE, EIO, true, false);
    each_call(CALL_FALLOCATE, EDQUOT, true, false);
    sample_files = FILES_ONE;
    mesh = before;
}

static void writes(void **unused) {
    (void)unused;
    each_call(CALL_PWRITE, ENOSPC, false, false); /* a disk that stays full */
    each_call(CALL_PWRITE, EIO, true, false);     /* one bad write among good ones */
}

static void other_calls(void **unused) {
    (void)unused;
    each_call(CALL_PREAD, EIO, true, false);
    each_call(CALL_FTRUNCATE, EIO, false, false);
    each_call(CALL_FSYNC, EIO, false, false);
    each_call(CALL_FSYNC, EIO, true, true);
    each_call(CALL_MKDIR, EDQUOT, true, false);
    each_call(CALL_FALLOCATE, EDQUOT, false, false);
}

static void renames(void **unused) {
    (void)unused;
    each_call(CALL_RENAME, EIO, true, false);
    each_call(CALL_RENAME, EIO, true, true);
    fault.no_exchange = true; /* as on file systems that cannot swap */
    each_call(CALL_RENAME, EIO, true, true);
    fault.no_exchange = false;
}

/* File systems that cannot reserve space are asked how much is free. */
static void without_fallocate(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *sample = sample_new(1, 1);
    fault.call = CALL_FALLOCATE, fault.error = EOPNOTSUPP, fault.once = false, fault.countdown = 0;
    assert_int_equal(save(directory, sample, 10), 0);
    fault.call = NO_CALL;
    assert_holds(directory, 10, sample);
    sample_free(sample);
    free(directory);
}

/* Mounts a disk of 2 MB for this process alone, so that it goes away with it. Returns 0 or errno. */
static int mount_small_disk(const char *directory) {
    if (unshare(CLONE_NEWNS)) return errno;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) return errno;
    return mount("none", directory, "tmpfs", 0, "size=2m") ? errno : 0;
}

/* Lets this process see the disks of another one. Returns 0 or errno. */
static int join_disks(long pid) {
    int fd = open(format("/proc/%ld/ns/mnt", pid), O_RDONLY | O_CLOEXEC), error = 0;
    if (fd < 0 || unshare(CLONE_FS) || setns(fd, CLONE_NEWNS)) error = errno;
    if (fd >= 0) close(fd);
    return error;
}

static void full_disk(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *small = sample_new(1, 1), *large = sample_new(60, 2); /* large: 3.7 MB and more */
    long pid = getpid();
    assert_int_equal(mesh_broadcast(&mesh, &pid, sizeof pid), 0);
    int reason = mesh.rank == 0 ? mount_small_disk(directory) : 0;
    barrier();
    if (mesh.rank != 0) reason = join_disks(pid);
    if (mesh_any(&mesh, reason)) {
        if (reason) print_message("SKIPPED full_disk: mount -t tmpfs: %s\n", strerror(reason));
    } else {
        assert_int_equal(save(directory, small, 10), 0);
        for (int supported = 1; supported >= 0; supported--) { /* with and without fallocate */
            fault.call = supported ? NO_CALL : CALL_FALLOCATE, fault.error = EOPNOTSUPP, fault.once = false;
            fault.countdown = 0;
            assert_int_equal(save(directory, large, 20), GDN_INTERNAL);
            fault.call = NO_CALL;
            assert_non_null(strstr(gdn_failure(), strerror(ENOSPC)));
            gdn_failure_clear();
            assert_int_equal(entries(directory), 3);
            assert_holds(directory, 10, small);
            barrier();
        }
        assert_int_equal(save(directory, small, 30), 0);
        barrier();
        if (mesh.rank == 0) assert_int_equal(umount(directory), 0);
    }
    sample_free(small);
    sample_free(large);
    free(directory);
}

static void file_size_limit(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *sample = sample_new(1, 1);
    struct rlimit before, limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(save(directory, sample, 10), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 20000;
    for (int guilty = 0; guilty < mesh.size; guilty++) {
        if (mesh.rank == guilty) assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(save(directory, sample, 20), GDN_INTERNAL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_non_null(strstr(gdn_failure(), "limit of a file's size"));
        gdn_failure_clear();
        assert_int_equal(entries(directory), 3);
        barrier();
    }
    assert_int_equal(save(directory, sample, 20), 0);
    sample_free(sample);
    free(directory);
}

static void unwritable(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *sample = sample_new(1, 1);
    assert_int_equal(save(format("%s/nowhere", directory), sample, 10), GDN_INTERNAL);
    assert_non_null(strstr(gdn_failure(), "nowhere/checkpoints cannot be made: No such file or directory"));
    gdn_failure_clear();
    barrier();
    if (mesh.rank == 0) write_text(format("%s/checkpoints", directory), "a file is in the way");
    assert_int_equal(save(directory, sample, 10), GDN_INTERNAL);
    assert_non_null(strstr(gdn_failure(), strerror(ENOTDIR)));
    gdn_failure_clear();
    barrier();
    if (mesh.rank == 0) {
        unlink(format("%s/checkpoints", directory));
        chmod(directory, 0555);
    }
    int is_root = mesh_any(&mesh, geteuid() == 0); /* whom permissions do not stop */
    if (!is_root) {
        assert_int_equal(save(directory, sample, 10), GDN_INTERNAL);
        assert_non_null(strstr(gdn_failure(), strerror(EACCES)));
        gdn_failure_clear();
    } else if (mesh.rank == 0) {
        print_message("SKIPPED chmod 555: running as root\n");
    }
    barrier();
    if (mesh.rank == 0) chmod(directory, 0777);
    sample_free(sample);
    free(directory);
}

/* The parts are those of the tensor axis. */
static int set_up(void) {
    return mesh_create(axes_of(1, test_ranks, 1).size, &mesh);
}

static void tear_down(void) {
    mesh_free(&mesh);
}

int rank_main(void) {
    if (test_argument(1)) every = 3;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes),     cmocka_unit_test(other_calls),
        cmocka_unit_test(renames),    cmocka_unit_test(without_fallocate),
        cmocka_unit_test(full_disk),  cmocka_unit_test(file_size_limit),
        cmocka_unit_test(unwritable), cmocka_unit_test(files_of_nodes),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
