/* A device that this build or machine does not have is refused in words that say what is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"

static void expect(const char *name, const char *text) {
    gdn_failure_clear();
    assert_null(ops_find(name));
    char begin[40];
    snprintf(begin, sizeof begin, "device %s: ", name);
    if (strncmp(gdn_failure(), begin, strlen(begin)) != 0 || !strstr(gdn_failure(), text))
        fail_msg("'%s…%s' is expected, not '%s'", begin, text, gdn_failure());
}

#ifdef GDN_DOUBLE

static void double_precision(void **state) {
    (void)state;
    expect("cuda", "GDN_DOUBLE");
    expect("emulated", "GDN_DOUBLE");
}

#else

static void no_module(void **state) {
    (void)state;
    expect("cuda", "no libgdn_cuda.so in GDN_MODULES");
    expect("cuda", scratch());
    expect("cuda", "-DGDN_CUDA=ON");
    expect("emulated", "-DGDN_EMULATED=ON");
}

static void broken_module(void **state) {
    (void)state;
    const char *path = scratch_path("libgdn_cuda.so");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("not a library", file);
    fclose(file);
    expect("cuda", "cannot be loaded");
    expect("cuda", path);
    unlink(path);
}

/* The module of this build, if it has one, on this machine, if it has no GPU. */
static void no_gpu(void **state) {
    (void)state;
    unsetenv("GDN_MODULES");
    gdn_failure_clear();
    if (ops_find("cuda")) skip();
    const char *const reasons[] = {"no NVIDIA driver", "driver is too old", "no GPU is visible",
                                   "-DGDN_CUDA=ON"};
    int named = 0;
    for (int i = 0; i < 4; i++) named += strstr(gdn_failure(), reasons[i]) != NULL;
    if (named != 1) fail_msg("one reason is expected, not '%s'", gdn_failure());
    char *first = strdup(gdn_failure());
    expect("cuda", first); /* asked again, it says so again */
    free(first);
}

#endif

static void precisions_of_the_host(void **state) {
    (void)state;
    gdn_failure_clear();
    for (const struct ops *const *each = ops_all(); *each; each++) {
        const struct ops *bf16 = ops_in(*each, PRECISION_BF16);
        assert_ptr_equal(ops_in(*each, PRECISION_FP32), *each);
        assert_int_equal(bf16->precision, PRECISION_BF16);
        assert_string_equal(bf16->name, (*each)->name);
        assert_ptr_equal(ops_in(bf16, PRECISION_FP32), *each);
        assert_ptr_equal(ops_on_host(bf16), *each);
        assert_null(ops_in(*each, PRECISION_FP16));
        assert_non_null(strstr(gdn_failure(), "computes in fp32 and bf16 alone"));
    }
}

int main(void) {
    setenv("GDN_MODULES", scratch(), 1);
    const struct CMUnitTest tests[] = {
#ifdef GDN_DOUBLE
        cmocka_unit_test(double_precision),
#else
        cmocka_unit_test(no_module),
        cmocka_unit_test(broken_module),
        cmocka_unit_test(no_gpu),
#endif
        cmocka_unit_test(precisions_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
