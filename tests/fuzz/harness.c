#include "harness.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/base/status.h"

enum { GREATEST_MESSAGE = 3000 }; /* bytes; a message that is cut short ends in the middle of a word */

void fuzz_check(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "%s: fails; recorded: '%s'\n", what, gdn_failure());
    abort();
}

int fuzz_status(int status, int lines, const char *what) {
    const char *words = gdn_failure();
    if (getenv("GDN_FUZZ_TELL")) fprintf(stderr, "  %s: %d %s\n", what, status, words);
    if (!status) {
        fuzz_check(!*words, what);
        return 1;
    }
    int count = 1;
    fuzz_check(status == GDN_INPUT && *words && strlen(words) < GREATEST_MESSAGE, what);
    for (const char *at = words; *at; at++) {
        count += *at == '\n';
        fuzz_check((unsigned char)*at >= 0x20 || *at == '\n', what);
    }
    fuzz_check(count <= lines, what);
    gdn_failure_clear();
    return 0;
}

static char folder[256];
static pid_t owner; /* a child that libFuzzer forks removes nothing */

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk) {
    (void)about, (void)kind, (void)walk;
    return remove(path);
}

static void remove_folder(void) {
    if (getpid() == owner) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void) {
    if (*folder) return folder;
    const char *base = getenv("TMPDIR");
    if (!base) base = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    snprintf(folder, sizeof folder, "%s/gdn-fuzz.XXXXXX", base);
    if (!mkdtemp(folder)) fuzz_check(0, "a scratch folder");
    owner = getpid();
    atexit(remove_folder);
    return folder;
}

const char *fuzz_path(const char *name) {
    static char buffers[8][512];
    static int next;
    char *out = buffers[next++ % 8];
    snprintf(out, sizeof buffers[0], "%s/%s", fuzz_folder(), name);
    return out;
}

void fuzz_write(const char *name, const void *bytes, size_t size) {
    int file = open(fuzz_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_check(file >= 0, name);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(file, (const char *)bytes + done, size - done);
        fuzz_check(n > 0, name);
        done += (size_t)n;
    }
    fuzz_check(!close(file), name);
}

FILE *fuzz_nowhere(void) {
    static FILE *out;
    if (!out) out = fopen("/dev/null", "w");
    fuzz_check(out != NULL, "/dev/null");
    return out;
}
