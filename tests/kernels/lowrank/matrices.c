#include "matrices.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/random.h"

const double EPSILON = sizeof(real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;
char text[200];

void fail_test(const char *expected, const char *format, ...) {
    char found[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(found, sizeof found, format, arguments);
    va_end(arguments);
    fail_msg("%s: not %s: %s", text, expected, found);
}

static double fast(long i) {
    return pow(10, -(double)i / 4);
}
static double slow(long i) {
    return 1 / (1 + (double)i);
}
static double flat(long i) {
    return (void)i, 1;
}
static double deficient(long i) {
    return i < 7 ? slow(i) : 0;
}
static double cliff(long i) {
    return i < 5 ? 1 : 1e-6;
}
static double zero(long i) {
    return (void)i, 0;
}

const struct spectrum spectra[] = {{"fast", fast},   {"slow", slow}, {"flat", flat}, {"deficient", deficient},
                                   {"cliff", cliff}, {"zero", zero}, {NULL, NULL}};

const struct shape shapes[] = {{1, 1},   {1, 40},   {40, 1},   {2, 3},    {24, 24},
                               {96, 64}, {64, 150}, {300, 20}, {20, 300}, {0, 0}};

const struct spectrum *spectrum_find(const char *name) {
    const struct spectrum *s = spectra;
    while (strcmp(s->name, name)) s++;
    return s;
}

double min_error(const struct spectrum *s, long T, long D, long rank) {
    double left = 0, all = 0;
    for (long i = (T < D ? T : D) - 1; i >= 0; i--) {
        all += s->value(i) * s->value(i);
        if (i == rank) left = all;
    }
    return all > 0 ? sqrt(left / all) : 0;
}

/* x [T, D] ← H·x or x·H, H = 1 − 2vvᵀ/‖v‖² for a random v: orthogonal. */
static void reflect(double *x, long T, long D, bool rows, uint64_t what) {
    long n = rows ? T : D, others = rows ? D : T, step = rows ? D : 1, other_step = rows ? 1 : D;
    double *v = malloc((size_t)n * sizeof *v), square = 0;
    for (long i = 0; i < n; i++) {
        v[i] = random_normal(5, what, (uint64_t)i);
        square += v[i] * v[i];
    }
    for (long o = 0; o < others; o++) {
        double *a = x + o * other_step, product = 0;
        for (long i = 0; i < n; i++) product += v[i] * a[i * step];
        for (long i = 0; i < n; i++) a[i * step] -= 2 * product / square * v[i];
    }
    free(v);
}

real *make_matrix(const struct spectrum *s, long T, long D, double scale) {
    double *exact = calloc((size_t)(T * D), sizeof *exact);
    real *x = malloc((size_t)(T * D) * sizeof *x);
    for (long i = 0; i < T && i < D; i++) exact[i * D + i] = s->value(i);
    for (uint64_t i = 0; i < 8; i++) reflect(exact, T, D, i % 2, i);
    for (long i = 0; i < T * D; i++) x[i] = (real)(scale * exact[i]);
    free(exact);
    return x;
}

static void lay_out(struct workplace *place, const struct ops *ops, long T, long D, long rank, bool full) {
    lowrank_lay_out(&place->w, &place->arena, ops, T, D, rank, full);
    place->f.u = arena_take(&place->arena, (size_t)(T * rank) * sizeof(real));
    place->f.sigma = arena_take(&place->arena, (size_t)rank * sizeof(real));
    place->f.vt = arena_take(&place->arena, (size_t)(rank * D) * sizeof(real));
}

void set_up(struct workplace *place, const struct ops *ops, long T, long D, long rank, bool full) {
    *place = (struct workplace){.arena.name = "factors"};
    lay_out(place, ops, T, D, rank, full);
    assert_int_equal(arena_reserve(&place->arena), 0);
    lay_out(place, ops, T, D, rank, full);
    assert_true(place->arena.used == place->arena.size);
}

void clean_up(struct workplace *place) {
    arena_free(&place->arena);
}

double true_error(const struct factors *f, long rank, const real *x) {
    double *row = malloc((size_t)f->D * sizeof *row), missed = 0, all = 0;
    for (long t = 0; t < f->T; t++) {
        for (long d = 0; d < f->D; d++) row[d] = x[t * f->D + d];
        for (long d = 0; d < f->D; d++) all += row[d] * row[d];
        for (long j = 0; j < rank; j++) {
            double factor = (double)f->u[t * f->rank + j] * f->sigma[j];
            for (long d = 0; d < f->D; d++) row[d] -= factor * f->vt[j * f->D + d];
        }
        for (long d = 0; d < f->D; d++) missed += row[d] * row[d];
    }
    free(row);
    return all > 0 ? sqrt(missed / all) : 0;
}

double from_orthonormal(const real *a, long n, long m, long row, long column) {
    double worst = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            double product = i == j ? -1 : 0;
            for (long k = 0; k < m; k++) product += (double)a[i * row + k * column] * a[j * row + k * column];
            if (!(fabs(product) <= worst)) worst = isnan(product) ? INFINITY : fabs(product);
        }
    return worst;
}
