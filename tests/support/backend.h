/* The backend that a test runs on. ctest runs some programs once more for each device, with its name in
 * GDN_TEST_BACKEND (DEVICE of gdn_test in tests/CMakeLists.txt).
 *
 * GDN_TEST_PRECISION=bf16 asks for it in that precision.
 *
 * Where the named one is not there, these functions print why and end the program: with 77, a skipped test,
 * where this machine lacks the GPU, or the instruction set that GDN_ISA names; else with 1. */
#ifndef GDN_TEST_BACKEND_H
#define GDN_TEST_BACKEND_H

#include "kernels/ops.h"

/* The one that GDN_TEST_BACKEND names, or `usual` where it is not set. */
const struct ops *test_backend(const char *usual);

/* The one that GDN_TEST_BACKEND names, with device memory that the host may touch, too; or where it is not
 * set all of ops_all. NULL-terminated. */
const struct ops *const *test_backends(void);

/* The same backend in the precision that GDN_TEST_PRECISION names, itself where it is not set. */
const struct ops *test_in_precision(const struct ops *ops);

/* Ends the program where the named one is not there. */
void test_backend_check(void);

#endif
