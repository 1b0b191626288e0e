#include "kernels/backends/backends.h"
#include "tests/support/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/status.h"

static const char *named(void) {
    return getenv("GDN_TEST_BACKEND");
}

const struct ops *test_backend(const char *usual) {
    const char *name = named() ? named() : usual;
    const struct ops *ops = ops_find(name);
    if (ops) return ops;
    printf("%s: %s\n", name, gdn_failure());
    bool no_gpu = strcmp(name, "cuda") == 0 && access("/dev/nvidiactl", F_OK) != 0;
    exit(no_gpu || getenv("GDN_ISA") ? 77 : 1);
}

const struct ops *const *test_backends(void) {
    static const struct ops *one[2];
    if (!named()) {
        test_backend("cpu");
        return ops_all();
    }
    setenv("GDN_SHARED_DEVICE_MEMORY", "1", 1);
    one[0] = test_backend(NULL);
    return one;
}

void test_backend_check(void) {
    if (named()) test_backend(NULL);
}
