/* Meshes of ranks, for tests that walk over them. */
#ifndef GDN_TEST_MESHES_H
#define GDN_TEST_MESHES_H

#include "tests/support/unit.h"

/* Sizes of the axes. */
struct mesh_shape {
    int data, tensor, pipeline;
};

/* The meshes that are to work, of 1 to 16 ranks (meshes.inc). */
extern const struct mesh_shape meshes[];
extern const int meshes_count;

int mesh_ranks(struct mesh_shape mesh);

/* A case of a test on one mesh: what is set in the configuration there. A test whose cases have more begins
 * its own structure with this one. */
enum { CASE_SET = 6 };
struct mesh_case {
    struct mesh_shape mesh;
    char *set[CASE_SET]; /* KEY=VALUE; a NULL ends them */
};

/* Writes a test for each case whose mesh has test_ranks ranks (rank_main.h), named by its first setting, with
 * the case as its state, and returns how many. `cases`: [count] structures of `size` bytes; `tests`: room for
 * all. */
size_t tests_of_cases(struct CMUnitTest *tests, CMUnitTestFunction test, void *cases, size_t count,
                      size_t size);

#endif
