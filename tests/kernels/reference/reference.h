/* For tests of the reference's operations by formulas and by finite differences. */
#ifndef GDN_TEST_REFERENCE_H
#define GDN_TEST_REFERENCE_H

#include "kernels/ops.h"
#include "tests/support/unit.h"

/* The reference's operations. */
extern const struct ops *ops;

/* Fills x [count] with numbers in [low, high) that depend on `name` alone. */
void fill(const char *name, long count, real *x, double low, double high);
#define FILL(array, low, high) fill(#array, (long)(sizeof(array) / sizeof(real)), array, low, high)

/* Summed in double. */
double dot(long count, const real *x, const real *y);

/* Fails where a value of order 1 to 10 is not the expected one but for a few roundings. */
void check_near(const char *what, double got, double expected);

/* Entropies of gates [rows, width], whose rows are ld apart: what the operations add, for factor 1, to a sum
 * of 0. */
double binary_entropy(long rows, long width, const real *g, long ld, const real *counts);
double softmax_entropy(long rows, long width, const real *p, long ld, const real *counts);

/* An input [rows, width] of a loss and the gradient claimed for it; rows are ld and ldg apart. */
struct input {
    const char *name;
    long rows, width;
    real *x;
    long ld;
    const real *gradient;
    long ldg;
};

/* Compares the gradients of `inputs`, up to one without a name, with finite differences of `loss`, in a
 * GDN_DOUBLE build: the difference of two losses near 10 in float has 1e-6 of noise to divide by a step. */
void check_gradients(double (*loss)(const void *context), const void *context, const struct input *inputs);

#endif
