#include "tests/model/tensor_ranks.h"

#include <mpi.h>

struct axis tensor;
int failures;

int tensor_create(void) {
    return axis_create("tensor", MPI_COMM_WORLD, 0, test_rank, test_ranks, &tensor);
}

void tensor_free(void) {
    axis_free(&tensor);
}

void no_failures(void) {
    int counted = failures;
    failures = 0;
    assert_int_equal(counted, 0);
}

struct layout divided_layout(int way) {
    struct layout layout = layout_full();
    layout.size[AXIS_TENSOR] = tensor.size, layout.index[AXIS_TENSOR] = tensor.index;
    layout.delta = way & 1 ? DELTA_CONNECTION : DELTA_CHANNEL;
    layout.sequence_parallel = way & 2;
    return layout;
}
