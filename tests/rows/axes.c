/* An axis beside data that divides the batch too: its ranks hold copies of what the data ranks hold. No key
 * has its size. */
#include "rows.h"

#include <stdlib.h>

static const struct axis_row replica = {.name = "replica",
                                        .key = "mesh.replica",
                                        .divides = "the sequences of a batch",
                                        .gradients = true,
                                        .batch = true};

static int number, ranks; /* 0: there is none */

void rows_of_axes(void) {
    if (!getenv("GDN_TEST_REPLICA")) return;
    ranks = atoi(getenv("GDN_TEST_REPLICA"));
    number = axes_register(&replica);
}

void choose_axes(int size[AXES]) {
    if (ranks) size[number] = ranks;
}
