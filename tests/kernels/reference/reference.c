#include "tests/kernels/reference/reference.h"

#include <float.h>
#include <math.h>

#include "kernels/base/random.h"

const struct ops *ops;

void fill(const char *name, long count, real *x, double low, double high) {
    for (long i = 0; i < count; i++)
        x[i] = (real)(low + (high - low) * random_uniform(7, random_name(name), (uint64_t)i));
}

double dot(long count, const real *x, const real *y) {
    double sum = 0;
    for (long i = 0; i < count; i++) sum += (double)x[i] * y[i];
    return sum;
}

/* Values here are of order 1 to 10 and rounded once, or a few times where sums are stored in between: 32
 * roundings. */
void check_near(const char *what, double got, double expected) {
    double epsilon = sizeof(real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;
    if (!(fabs(got - expected) <= 32 * epsilon * (1 + fabs(expected))))
        fail_msg("%s: %.12g, expected %.12g", what, got, expected);
}

double binary_entropy(long rows, long width, const real *g, long ld, const real *counts) {
    double sum = 0;
    ops->binary_entropy(rows, width, g, ld, 1, counts, &sum);
    return sum;
}

double softmax_entropy(long rows, long width, const real *p, long ld, const real *counts) {
    double sum = 0;
    ops->softmax_entropy(rows, width, p, ld, counts, &sum);
    return sum;
}

/* Central differences with step 1e-5: of losses below about 100 with derivatives of order 1 they are off by
 * 1e-16·100/1e-5 from rounding and by 1e-10 from the third derivative, so 2e-8 leaves room for nothing
 * but these. A wrong term of any gradient here is of order 1e-2 or more. */
static void check_input(double (*loss)(const void *), const void *context, const struct input *in) {
    const double step = 1e-5, tolerance = 2e-8;
    for (long i = 0; i < in->rows * in->width; i++) {
        real *x = &in->x[i / in->width * in->ld + i % in->width], kept = *x;
        *x = (real)(kept + step);
        double above = loss(context);
        *x = (real)(kept - step);
        double below = loss(context);
        *x = kept;
        double expected = (above - below) / (2 * step);
        double got = in->gradient[i / in->width * in->ldg + i % in->width];
        if (!(fabs(got - expected) <= tolerance * fmax(1, fabs(expected))))
            fail_msg("gradient of %s[%ld]: %.12g, by differences %.12g", in->name, i, got, expected);
    }
}

void check_gradients(double (*loss)(const void *), const void *context, const struct input *inputs) {
    for (const struct input *in = inputs; sizeof(real) == sizeof(double) && in->name; in++)
        check_input(loss, context, in);
}
