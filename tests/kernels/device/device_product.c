#include "kernels/backends/backends.h"
#include "tests/kernels/device/device_product.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

#define __device__ __attribute__((unused))
#include "kernels/cuda/number.h"

/* ------------------------------------------------------------------------------- what a precision does */

static float as_fp32(float x) {
    return x;
}
static float as_bf16(float x) {
    return from_bf16(to_bf16(x));
}
static float as_fp16(float x) {
    return from_fp16(to_fp16(x));
}
static float as_e4m3(float x) {
    return from_e4m3(to_e4m3(x));
}
static float as_e5m2(float x) {
    return from_e5m2(to_e5m2(x));
}

static const struct number fp32 = {as_fp32, 0, 0, 0, 16 * FLT_EPSILON, 4 * FLT_EPSILON, 0};
static const struct number bf16 = {as_bf16, 0x1p-8, 0, 0, 16 * FLT_EPSILON, 4 * FLT_EPSILON, 0};
static const struct number fp16 = {as_fp16, 0x1p-11, 0x1p-25, 0, 16 * FLT_EPSILON, 4 * FLT_EPSILON, 0};
const struct number e4m3 = {as_e4m3, 0x1p-4, 0x1p-10, 448, 16 * FLT_EPSILON, 0, 0x1p-13};
const struct number e5m2 = {as_e5m2, 0x1p-3, 0x1p-17, 57344, 16 * FLT_EPSILON, 0, 0x1p-13};

/* An operand as the product should see it. */
struct seen {
    const struct matrix *x;
    const struct number *number;
    double factor; /* it is multiplied by this, a power of two, before it is rounded */
};

static double rounded(const struct seen *operand, double x) {
    double scaled = x * operand->factor;
    if (isfinite(x)) scaled = fmax(-FLT_MAX, fmin(scaled, FLT_MAX));
    return (double)operand->number->as((float)scaled) / operand->factor;
}

/* The error of |x| that rounding may make. */
static double error_of(const struct seen *operand, double x) {
    return operand->number->epsilon * fabs(x) + operand->number->min / operand->factor;
}

/* C against alpha·op(A)·op(B) + beta·before. `promised`: whether to hold it to the numbers' epsilon, too. */
static void check(char ta, char tb, long k, double alpha, double beta, const struct seen *a,
                  const struct seen *b, const struct matrix *c, const float *before, bool promised) {
    for (long i = 0; i < c->rows; i++)
        for (long j = 0; j < c->columns; j++) {
            double exact = 0, expected = 0, size = 0, error = 0, largest = 0;
            for (long p = 0; p < k; p++) {
                double x = ta == 'N' ? row(a->x, i)[p] : row(a->x, p)[i];
                double y = tb == 'N' ? row(b->x, p)[j] : row(b->x, j)[p], x_to = rounded(a, x),
                       y_to = rounded(b, y);
                exact += x * y;
                expected += x_to * y_to;
                size += fabs(x_to * y_to);
                largest = fmax(largest, fmax(fabs(x_to * y_to), fabs(expected)));
                error += error_of(a, x) * (fabs(y) + error_of(b, y)) + fabs(x) * error_of(b, y);
            }
            double old = beta == 0 ? 0 : beta * before[c->shift + i * c->ld + j], got = row(c, i)[j];
            double sum = a->number->sum + a->number->root * sqrt((double)k);
            double cut = a->number->cut * largest * (double)(k + k / 32 + 1); /* 32 terms an instruction */
            double tight = sum * (fabs(alpha) * size + fabs(old)) + fabs(alpha) * cut + FLT_MIN;
            if (!(fabs(got - (alpha * expected + old)) <= tight) && !(isnan(expected) && isnan(got)))
                fail_msg("%s: C[%ld, %ld] is %.9g, not %.9g ± %.2g", text, i, j, got, alpha * expected + old,
                         tight);
            if (promised && !(fabs(got - (alpha * exact + old)) <= fabs(alpha) * error + tight))
                fail_msg("%s: C[%ld, %ld] is %.9g, not %.9g ± %.2g as promised", text, i, j, got,
                         alpha * exact + old, fabs(alpha) * error + tight);
        }
}

static void check_gaps(const struct matrix *c, const float *before) {
    device->wait();
    for (long i = 0; i < c->shift + c->rows * c->ld; i++)
        if ((i < c->shift || (i - c->shift) % c->ld >= c->columns) && c->host[i] != before[i])
            fail_msg("%s: element %ld beside C has changed", text, i);
}

/* ------------------------------------------------------------------------- what scales should be: ops.h */

enum role { X, W, DY, ROLES, MAX_WEIGHT_IDS = 4096 };

static struct {
    double largest[HISTORY];
    long calls;
} past[MAX_WEIGHT_IDS][ROLES];
static int weight_ids; /* used so far */

int new_weight_id(void) {
    assert_true(weight_ids < device->weight_ids && weight_ids < MAX_WEIGHT_IDS);
    return weight_ids++;
}

static void set_scales(int weight_id, const int *other) {
    size_t bytes;
    char *scales = device->scales(&bytes);
    bytes /= (size_t)device->weight_ids;
    char *words = calloc(1, bytes);
    assert_non_null(words);
    if (other) device->download(words, scales + (size_t)*other * bytes, bytes);
    device->upload(scales + (size_t)weight_id * bytes, words, bytes);
    free(words);
}

int resumed_weight_id(int other) {
    const int weight_id = new_weight_id();
    set_scales(weight_id, &other);
    memcpy(past[weight_id], past[other], sizeof past[other]);
    return weight_id;
}

void forget_scales(int weight_id) {
    set_scales(weight_id, NULL);
    memset(past[weight_id], 0, sizeof past[weight_id]);
}

static void see(struct seen *operand, int weight_id, enum role role) {
    double own = 0, max = 0;
    for (long i = 0; i < operand->x->rows; i++)
        for (long j = 0; j < operand->x->columns; j++) {
            double size = fabs((double)row(operand->x, i)[j]);
            if (isfinite(size)) own = fmax(own, size);
        }
    long calls = past[weight_id][role].calls++;
    for (long i = 0; i < calls && i < HISTORY; i++) max = fmax(max, past[weight_id][role].largest[i]);
    if (calls == 0) max = own;
    past[weight_id][role].largest[calls % HISTORY] = own;
    operand->number = role == DY ? &e5m2 : &e4m3;
    operand->factor = max == 0 ? 1 : exp2(fmin(126, floor(log2(operand->number->largest / max))));
}

/* ------------------------------------------------------------------------------------------------ calls */

const struct number *const of_gemm[PRECISIONS] = {&fp32, &bf16, &fp16, &bf16};
const char *const precision_names[PRECISIONS] = {"fp32", "bf16", "fp16", "fp8"};

struct product make_product(char ta, char tb, long m, long n, long k, long gap, long shift, double size_a,
                            double size_b) {
    struct product x = {.ta = ta, .tb = tb, .k = k};
    x.a = ta == 'N' ? random_matrix(m, k, gap, shift, size_a) : random_matrix(k, m, gap, shift, size_a);
    x.b =
        tb == 'N' ? random_matrix(k, n, 2 * gap, shift, size_b) : random_matrix(n, k, 2 * gap, shift, size_b);
    x.c = random_matrix(m, n, 3 * gap, shift, 1);
    for (long i = 0; i < m; i++) /* what should not change is compared as numbers */
        for (long j = n; j < x.c.ld; j++) row(&x.c, i)[j] = 12345;
    for (long i = 0; i < shift; i++) x.c.host[i] = 12345;
    return x;
}

void discard_product(struct product *x) {
    discard(&x->a);
    discard(&x->b);
    discard(&x->c);
}

void call_product(const struct ops *ops, int weight_id, const struct product *x, float alpha, float beta) {
    const struct matrix *a = &x->a, *b = &x->b, *c = &x->c;
    if (weight_id == GEMM)
        ops->gemm(x->ta, x->tb, c->rows, c->columns, x->k, alpha, on_device(a), a->ld, on_device(b), b->ld,
                  beta, on_device(c), c->ld);
    else
        ops->linear(weight_id, x->ta, x->tb, c->rows, c->columns, x->k, alpha, on_device(a), a->ld,
                    on_device(b), b->ld, beta, on_device(c), c->ld);
    download(c);
    if (device->wait()) fail_msg("%s: %s", text, gdn_failure());
}

void call_checked(const struct ops *ops, int weight_id, struct product *x, float alpha, float beta,
                  bool promised) {
    struct seen a = {&x->a, of_gemm[ops->precision], 1}, b = {&x->b, of_gemm[ops->precision], 1};
    float *before = malloc(matrix_bytes(&x->c));
    assert_non_null(before);
    memcpy(before, x->c.host, matrix_bytes(&x->c));
    upload(&x->c);
    if (weight_id != GEMM && ops->precision == PRECISION_FP8) {
        see(&a, weight_id, x->ta == 'N' && x->tb == 'T' ? X : DY);
        see(&b, weight_id, x->ta == 'N' ? W : X);
    }
    call_product(ops, weight_id, x, alpha, beta);
    check(x->ta, x->tb, x->k, alpha, beta, &a, &b, &x->c, before, promised);
    check_gaps(&x->c, before);
    free(before);
}

const struct ops *ops_of(enum precision precision) {
    const struct ops *ops = ops_in(backend, precision);
    if (ops) return ops;
    assert_string_equal(backend->name, "cuda");
    printf("not tested: %s\n", gdn_failure());
    gdn_failure_clear();
    return NULL;
}

int device_begin(void **state) {
    setenv("GDN_TEST_BACKEND", "emulated", 0);
    backend = test_backends()[0];
    device = backend->device;
    return describe_backends(state);
}
