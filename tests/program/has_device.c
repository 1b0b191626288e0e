/* has_device NAME: leaves with 0 where this build and machine have the device, else as test programs do that
 * ctest runs on it (tests/support/backend.h). */
#include <stdlib.h>

#include "tests/support/backend.h"

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    setenv("GDN_TEST_BACKEND", argv[1], 1);
    test_backend_check();
    return 0;
}
