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

const struct ops *test_in_precision(const struct ops *ops) {
    const char *asked = getenv("GDN_TEST_PRECISION");
    int precision = 0;
    if (!asked) return ops;
    while (precision < PRECISIONS && strcmp(precision_word[precision], asked) != 0) precision++;
    const struct ops *found = precision < PRECISIONS ? ops_in(ops, (enum precision)precision) : NULL;
    if (found) return found;
    printf("GDN_TEST_PRECISION %s: %s\n", asked, gdn_failure());
    exit(1);
}

const struct ops *test_backend(const char *usual) {
    const char *name = named() ? named() : usual;
    const struct ops *ops = ops_find(name);
    if (ops) return test_in_precision(ops);
    printf("%s: %s\n", name, gdn_failure());
    bool no_gpu = strcmp(name, "cuda") == 0 && access("/dev/nvidiactl", F_OK) != 0;
    exit(no_gpu || getenv("GDN_ISA") ? 77 : 1);
}

const struct ops *const *test_backends(void) {
    static const struct ops *one[2];
    if (!named()) {
        static const struct ops *all[8];
        test_backend("cpu");
        for (int i = 0; ops_all()[i]; i++) all[i] = test_in_precision(ops_all()[i]);
        return all;
    }
    setenv("GDN_SHARED_DEVICE_MEMORY", "1", 1);
    one[0] = test_backend(NULL);
    return one;
}

void test_backend_check(void) {
    if (named()) test_backend(NULL);
}
