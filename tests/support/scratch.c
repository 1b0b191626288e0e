#include "tests/support/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[SCRATCH_LONGEST]; /* "": not made */
static pid_t owner;                /* children leave it alone */

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk) {
    (void)about, (void)kind, (void)walk;
    return remove(path);
}

static void remove_root(void) {
    if (owner == getpid()) nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void give_up(const char *path) {
    fprintf(stderr, "scratch folder %s: %s\n", path, strerror(errno));
    exit(1);
}

const char *scratch(void) {
    if (root[0]) return root;
    const char *base = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/gdn-test.XXXXXX", base && base[0] ? base : "/tmp");
    if (!mkdtemp(root)) give_up(root);
    owner = getpid();
    atexit(remove_root);
    return root;
}

void scratch_join(const char *folder) {
    snprintf(root, sizeof root, "%s", folder);
}

const char *scratch_path(const char *format, ...) {
    static char buffers[8][SCRATCH_LONGEST + 256];
    static int next;
    char *out = buffers[next++ % 8];
    int length = snprintf(out, sizeof buffers[0], "%s/", scratch());
    va_list list;
    va_start(list, format);
    vsnprintf(out + length, sizeof buffers[0] - (size_t)length, format, list);
    va_end(list);
    return out;
}

char *scratch_folder(void) {
    static int made;
    char *path = strdup(scratch_path("%d", made++));
    if (!path || (mkdir(path, 0777) && errno != EEXIST)) give_up(path ? path : scratch());
    return path;
}
