#include "harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "tests/support/scratch.h"

enum { MAX_MESSAGE = 3000 }; /* bytes; a message that is cut short ends in the middle of a word */

void fuzz_check(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "%s: fails; recorded: '%s'\n", what, gdn_failure());
    abort();
}

int fuzz_status(int status, int lines, const char *what) {
    const char *text = gdn_failure();
    if (getenv("GDN_FUZZ_TELL")) fprintf(stderr, "  %s: %d %s\n", what, status, text);
    if (!status) {
        fuzz_check(!*text, what);
        return 1;
    }
    int count = 1;
    fuzz_check(status == GDN_INPUT && *text && strlen(text) < MAX_MESSAGE, what);
    for (const char *at = text; *at; at++) {
        count += *at == '\n';
        fuzz_check((unsigned char)*at >= 0x20 || *at == '\n', what);
    }
    fuzz_check(count <= lines, what);
    gdn_failure_clear();
    return 0;
}

const char *fuzz_folder(void) {
    if (!access("/dev/shm", W_OK)) setenv("TMPDIR", "/dev/shm", 0);
    return scratch();
}

const char *fuzz_path(const char *name) {
    fuzz_folder();
    return scratch_path("%s", name);
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
