/* Factors for the while of a message: q·b with orthonormal q. */
#include "matrices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct split {
    long T, D, rank;
    real *q, *b, *x; /* x = q·b */
};

static void split_free(struct split *s) {
    free(s->q);
    free(s->b);
    free(s->x);
}

static struct split split(const struct ops *ops, long T, long D, long rank, const real *x, uint64_t seed) {
    struct split s = {T,
                      D,
                      rank,
                      malloc((size_t)(T * rank) * sizeof(real)),
                      malloc((size_t)(rank * D) * sizeof(real)),
                      malloc((size_t)(T * D) * sizeof(real))};
    struct workplace place;
    set_up(&place, ops, T, D, rank, false);
    lowrank_split(&place.w, T, D, x, rank, seed, s.q, s.b);
    lowrank_join(ops, T, D, rank, s.q, s.b, s.x);
    clean_up(&place);
    return s;
}

/* ‖x − q·b‖ / ‖x‖, of what lowrank_join made. */
static double missed(const struct split *s, const real *x) {
    double square = 0, all = 0;
    for (long i = 0; i < s->T * s->D; i++) {
        square += ((double)s->x[i] - x[i]) * ((double)s->x[i] - x[i]);
        all += (double)x[i] * x[i];
    }
    return all > 0 ? sqrt(square / all) : sqrt(square);
}

/* The largest |b − qᵀx|, beside ‖x‖. */
static double not_projected(const struct split *s, const real *x) {
    double worst = 0, all = 0;
    for (long i = 0; i < s->T * s->D; i++) all += (double)x[i] * x[i];
    for (long j = 0; j < s->rank; j++)
        for (long d = 0; d < s->D; d++) {
            double sum = s->b[j * s->D + d];
            for (long t = 0; t < s->T; t++) sum -= (double)s->q[t * s->rank + j] * x[t * s->D + d];
            if (!(fabs(sum) <= worst)) worst = isnan(sum) ? INFINITY : fabs(sum);
        }
    return all > 0 ? worst / sqrt(all) : worst;
}

/* One power iteration without oversampling misses up to twice what the best factors of that rank miss,
 * here. */
static void check(const struct ops *ops, const struct spectrum *s, long T, long D, long rank, double scale) {
    real *x = make_matrix(s, T, D, scale);
    struct split made = split(ops, T, D, rank, x, 3);
    snprintf(text, sizeof text, "%s, %s, [%ld, %ld], scale %g, rank %ld", ops->name, s->name, T, D, scale,
             rank);
    double q = from_orthonormal(made.q, rank, T, 1, rank), b = not_projected(&made, x);
    CHECK(q <= 30 * EPSILON, "%g EPSILON, q", q / EPSILON);
    CHECK(b <= 10 * EPSILON, "%g EPSILON, b", b / EPSILON);
    double error = missed(&made, x), min = min_error(s, T, D, rank);
    CHECK(error <= 2 * min + 10 * EPSILON, "%.9g, of %.9g", error, min);
    split_free(&made);
    free(x);
}

static void test_known_spectra(void **state) {
    (void)state;
    static const double scales[] = {1, 1e-30, 1e30};
    EACH_BACKEND(ops)
    for (const struct spectrum *s = spectra; s->name; s++)
        for (const struct shape *shape = shapes; shape->T; shape++) {
            long side = shape->T < shape->D ? shape->T : shape->D;
            const long ranks[] = {1, side / 4, side / 2, side};
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 3; j++)
                    if (ranks[i] > 0) check(ops, s, shape->T, shape->D, ranks[i], scales[j]);
        }
}

/* One that few random vectors find by themselves: all but a few columns, or rows, are 0. */
static void test_sparse(void **state) {
    (void)state;
    const long T = 40, D = 30;
    real *x = calloc((size_t)(T * D), sizeof *x);
    for (long i = 0; i < 3; i++) x[(7 + 9 * i) * D + 2 + 5 * i] = (real)(i + 1);
    EACH_BACKEND(ops)
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct split s = split(ops, T, D, 3, x, seed);
        double error = missed(&s, x);
        snprintf(text, sizeof text, "three elements, %s, seed %d", ops->name, (int)seed);
        CHECK(error <= 10 * EPSILON, "%g", error);
        split_free(&s);
    }
    free(x);
}

static void test_not_finite(void **state) {
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    const long T = 30, D = 20, rank = 4;
    real *x = make_matrix(spectrum_find("slow"), T, D, 1);
    EACH_BACKEND(ops)
    for (int i = 0; i < 3; i++) {
        long at = i * (T * D - 1) / 2;
        real good = x[at];
        x[at] = (real)bad[i];
        struct split s = split(ops, T, D, rank, x, 1);
        for (long j = 0; j < T * rank; j++) assert_true(isfinite(s.q[j]));
        for (long j = 0; j < rank * D; j++) assert_true(isnan(s.b[j]));
        for (long j = 0; j < T * D; j++) assert_true(isnan(s.x[j]));
        split_free(&s);
        x[at] = good;
    }
    free(x);
}

static void test_repeats(void **state) {
    (void)state;
    const long T = 70, D = 50, rank = 9;
    real *x = make_matrix(spectrum_find("slow"), T, D, 1);
    EACH_BACKEND(ops) {
        struct split a = split(ops, T, D, rank, x, 1), b = split(ops, T, D, rank, x, 1),
                     c = split(ops, T, D, rank, x, 2);
        assert_memory_equal(a.q, b.q, (size_t)(T * rank) * sizeof *x);
        assert_memory_equal(a.b, b.b, (size_t)(rank * D) * sizeof *x);
        assert_memory_equal(a.x, b.x, (size_t)(T * D) * sizeof *x);
        assert_memory_not_equal(a.q, c.q, (size_t)(T * rank) * sizeof *x);
        split_free(&a), split_free(&b), split_free(&c);
    }
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_spectra),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
