/* Matrices of floats that lie on the host and on the device under test. */
#ifndef GDN_TEST_DEVICE_MATRIX_H
#define GDN_TEST_DEVICE_MATRIX_H

#include "tests/kernels/ops/harness.h"

/* The device under test; set by device_begin (device_product.h). */
extern const struct device *device;

/* Rows of `columns` numbers, `ld` apart, on the host and, `shift` elements behind an aligned address, on the
 * device. */
struct matrix {
    long rows, columns, ld, shift;
    float *host, *reserved;
};

/* All elements, gaps included, are `value`, on the host alone. Whoever makes a matrix discards it. */
struct matrix make_matrix(long rows, long columns, long gap, long shift, float value);
/* Numbers in [−size, size), a different matrix at each call; NaN in the gaps, which nobody should read. */
struct matrix random_matrix(long rows, long columns, long gap, long shift, double size);
void discard(struct matrix *x);

size_t matrix_bytes(const struct matrix *x); /* of either copy */
float *on_device(const struct matrix *x);
float *row(const struct matrix *x, long i); /* on the host */
void upload(const struct matrix *x);
void download(const struct matrix *x);

#endif
