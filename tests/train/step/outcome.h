/* A run's first step and what it leaves, which tests compare with other ways to the same. */
#ifndef GDN_TEST_STEP_OUTCOME_H
#define GDN_TEST_STEP_OUTCOME_H

#include <math.h>
#include <stdlib.h>

#include "tests/train/run/mesh_fixture.h"

/* What a step leaves on this rank. */
struct outcome {
    double loss, *gradient;
    long count;
};

/* Of that step of the run, which this ends. Collective over the run's mesh. The caller frees the gradient. */
static inline struct outcome outcome_of(struct run *run, struct step *step) {
    assert_int_equal(execute(run->trainer.executor, step), 0);
    assert_int_equal(mesh_sum(&run->mesh, &step->sums.ce, 1), 0);
    struct outcome out = {.loss = step->sums.ce, .count = run->part.table->total};
    out.gradient = calloc((size_t)out.count + 1, sizeof *out.gradient);
    assert_non_null(out.gradient);
    for (long i = 0; i < out.count; i++) out.gradient[i] = (double)run->training.state.gradient[i];
    ended(run);
    return out;
}

/* ‖a − b‖ / ‖b‖ over all ranks. */
static inline double distance(const struct outcome *a, const struct outcome *b) {
    double sums[2] = {0};
    assert_int_equal(a->count, b->count);
    for (long i = 0; i < a->count; i++) {
        double d = a->gradient[i] - b->gradient[i];
        sums[0] += d * d, sums[1] += b->gradient[i] * b->gradient[i];
    }
    assert_int_equal(mesh_sum(&world, sums, 2), 0);
    assert_true(sums[1] > 0);
    return sqrt(sums[0] / sums[1]);
}

#endif
