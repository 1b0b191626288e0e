/* For tests of every backend's delta operations: the shapes that each is tried at. */
#ifndef GDN_TEST_DELTA_SHAPES_H
#define GDN_TEST_DELTA_SHAPES_H

#include "tests/kernels/ops/harness.h"

/* Odd ones too, with several groups, connections and heads. */
extern struct shape { long T, D, G, n, Hd, a, heads; } shape;

/* Runs `test` on every backend, with each of the shapes in `shape`. */
void everywhere(void (*test)(void));

/* Defines test_NAME, a test that runs the function NAME everywhere. */
#define EVERYWHERE(name)                                                                                     \
    static void test_##name(void **state) {                                                                  \
        (void)state;                                                                                         \
        everywhere(name);                                                                                    \
    }

#endif
