#include "tests/kernels/ops/delta_shapes.h"

#include <stdio.h>

struct shape shape;

static const struct shape shapes[] = {
    /* T, D, G, n, Hd, a, heads */
    {1, 8, 2, 1, 3, 3, 1},           {7, 8, 4, 2, 3, 5, 2},
    {7, 30, 5, 5, 32, 16, 3},        {1, 128, 16, 4, 32, 16, 4},
    {300, 128, 16, 3, 3, 8, 4},      {300, 30, 3, 4, 32, 16, 2},
    {7, 768, 48, 4, 32, 16, 6},      {60, 768, 16, 2, 32, 7, 4},
    {5, 1300, 2, 2, 600, 9, 2},      /* groups and connections wider than a tile of the CPU backend */
    {3, 1026, 2, 2, 513, 9, 2},      /* and by one column, which is then alone in its tile */
    {2, 8704, 32, 2, 4356, 2056, 2}, /* wider than what a team of the CUDA backend keeps */
    {3, 12, 3, 40, 8, 4, 3},         /* more connections than a warp has threads */
};

void everywhere(void (*test)(void)) {
    EACH_BACKEND for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        shape = shapes[i];
        snprintf(text, sizeof text, "T %ld D %ld G %ld n %ld Hd %ld", shape.T, shape.D, shape.G, shape.n,
                 shape.Hd);
        test();
    }
}
