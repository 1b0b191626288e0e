#include "tests/kernels/device/device_matrix.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/base/random.h"

const struct device *device;

size_t matrix_bytes(const struct matrix *x) {
    return (size_t)(x->shift + x->rows * x->ld) * sizeof(float);
}

float *on_device(const struct matrix *x) {
    return x->reserved + x->shift;
}

float *row(const struct matrix *x, long i) {
    return x->host + x->shift + i * x->ld;
}

void upload(const struct matrix *x) {
    device->upload(x->reserved, x->host, matrix_bytes(x));
}

void download(const struct matrix *x) {
    device->download(x->host, x->reserved, matrix_bytes(x));
}

struct matrix make_matrix(long rows, long columns, long gap, long shift, float value) {
    struct matrix x = {rows, columns, columns + gap, shift, NULL, NULL};
    assert_non_null(x.host = malloc(matrix_bytes(&x)));
    assert_non_null(x.reserved = device->reserve(matrix_bytes(&x)));
    for (long i = 0; i < shift + rows * x.ld; i++) x.host[i] = value;
    return x;
}

struct matrix random_matrix(long rows, long columns, long gap, long shift, double size) {
    static uint64_t seed;
    struct matrix x = make_matrix(rows, columns, gap, shift, NAN);
    seed++;
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) {
            double unit = (double)(random_bits(7, seed, (uint64_t)(i * columns + j)) >> 40) / (1 << 24);
            row(&x, i)[j] = (float)(size * (2 * unit - 1));
        }
    upload(&x);
    return x;
}

void discard(struct matrix *x) {
    device->release(x->reserved);
    free(x->host);
}
