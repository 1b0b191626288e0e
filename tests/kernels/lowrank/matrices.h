/* Matrices of known singular values, and what factors of them are worth, computed plainly and in double. */
#ifndef GDN_TEST_MATRICES_H
#define GDN_TEST_MATRICES_H

#include "kernels/lowrank/lowrank.h"
#include "tests/support/backend.h"
#include "tests/support/unit.h"

extern const double EPSILON; /* of `real` */

/* What is under test, for messages. */
extern char text[200];
#define CHECK(holds, ...)                                                                                    \
    do {                                                                                                     \
        if (!(holds)) fail_test(#holds, __VA_ARGS__);                                                        \
    } while (0)
void fail_test(const char *expected, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The singular values of a matrix, largest first, of index i. */
struct spectrum {
    const char *name;
    double (*value)(long i);
};
extern const struct spectrum spectra[]; /* ends with a NULL name */
const struct spectrum *spectrum_find(const char *name);

/* ‖values from `rank` on‖ / ‖all values‖: the least error of that rank. */
double min_error(const struct spectrum *s, long T, long D, long rank);

/* A matrix of this spectrum times `scale`, the caller's to free. */
real *make_matrix(const struct spectrum *s, long T, long D, double scale);

/* Scratch, room for factors, and the arena of both. */
struct workplace {
    struct arena arena;
    struct lowrank w;
    struct factors f;
};
void set_up(struct workplace *place, const struct ops *ops, long T, long D, long rank, bool full);
void clean_up(struct workplace *place);

/* ‖x − U diag(sigma) Vt‖ / ‖x‖ of the first `rank` of these factors. */
double true_error(const struct factors *f, long rank, const real *x);

/* The largest element of |A·Aᵀ − 1|, A [n, m] with A[i, j] at a[i·row + j·column]. */
double from_orthonormal(const real *a, long n, long m, long row, long column);

/* Shapes to go through; ends with zeros. */
struct shape {
    long T, D;
};
extern const struct shape shapes[];

#define EACH_BACKEND(ops) for (const struct ops *const *each = test_backends(), *ops; (ops = *each); each++)

#endif
