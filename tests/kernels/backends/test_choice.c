/* An instruction set that does not exist is refused in words, and no other one is taken in its place. */
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "tests/support/unit.h"

static void unknown_instruction_set(void **state) {
    (void)state;
    setenv("GDN_ISA", "v9", 1);
    assert_null(ops_find("cpu"));
    assert_non_null(strstr(gdn_failure(), "GDN_ISA is 'v9'"));
    assert_string_equal(ops_all()[0]->name, "reference");
    assert_null(ops_all()[1]);
}

static void unknown_backend(void **state) {
    (void)state;
    gdn_failure_clear();
    assert_null(ops_find("abacus"));
    assert_string_equal(gdn_failure(), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(unknown_instruction_set),
                                       cmocka_unit_test(unknown_backend)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
