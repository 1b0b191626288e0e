/* Factors of matrices of known singular values, of all shapes and scales, on every backend. */
#include "kernels/backends/backends.h"
#include "matrices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

static const double scales[] = {1, 1e-30, 1e30};
static const uint64_t SEED = 17;

/* What holds for any factors. Bases are rounded a few times in sums of up to 300 products: 30 EPSILON. An
 * error is summed in double, but of elements that `real` rounds while up to 64 products are added: what they
 * add up to is off by up to about an EPSILON of the matrix. */
static void check_factors(const struct factors *f, const real *x) {
    double u = from_orthonormal(f->u, f->rank, f->T, 1, f->rank);
    double v = from_orthonormal(f->vt, f->rank, f->D, f->D, 1);
    CHECK(u <= 30 * EPSILON, "%g EPSILON, U", u / EPSILON);
    CHECK(v <= 30 * EPSILON, "%g EPSILON, Vt", v / EPSILON);
    for (long i = 0; i < f->rank; i++)
        CHECK(f->sigma[i] >= 0 && (i == 0 || f->sigma[i] <= f->sigma[i - 1]), "sigma[%ld] %g", i,
              (double)f->sigma[i]);
    double is = true_error(f, f->rank, x);
    CHECK(fabs(f->error - is) <= 1e-3 * is + 1.5 * EPSILON, "reported %.9g, is %.9g", f->error, is);
}

/* sigma is exact to a few roundings of the largest in a full SVD. */
static void check_sigma(const real *sigma, long count, const struct spectrum *s, double scale, double part) {
    for (long i = 0; i < count; i++) {
        double exact = scale * s->value(i), rounding = 20 * EPSILON * scale * s->value(0);
        CHECK(sigma[i] <= exact + rounding && sigma[i] >= part * exact - rounding, "sigma[%ld] %.9g, of %.9g",
              i, (double)sigma[i], exact);
    }
}

static void one_rank(struct workplace *place, const struct spectrum *s, double scale, const real *x,
                     long rank) {
    struct factors *f = &place->f;
    long T = f->T, D = f->D, side = T < D ? T : D;
    real *spectrum = malloc((size_t)side * sizeof *spectrum);
    double min = min_error(s, T, D, rank);
    double rounding = 10 * EPSILON + 1e-14; /* of an SVD; those of float are still told from 1e-6 */
    assert_int_equal(lowrank_full(&place->w, T, D, x, rank, spectrum, f), 0);
    check_factors(f, x);
    check_sigma(spectrum, side, s, scale, 1);
    check_sigma(f->sigma, rank, s, scale, 1);
    CHECK(fabs(f->error - min) <= 1e-3 * min + rounding, "full: %.9g, of %.9g", f->error, min);
    double best = f->error, norm = f->norm;
    assert_int_equal(lowrank_factor(&place->w, T, D, x, rank, SEED, f), 0);
    assert_true(f->T == T && f->D == D && f->rank == rank && f->norm == norm);
    check_factors(f, x);
    check_sigma(f->sigma, rank, s, scale, 0.98);
    CHECK(f->error <= 1.02 * best + rounding, "%.9g, of %.9g", f->error, best);
    free(spectrum);
}

static void one_matrix(const struct ops *ops, const struct spectrum *s, struct shape shape, double scale) {
    long T = shape.T, D = shape.D, side = T < D ? T : D;
    const long ranks[] = {1, 2, 5, side / 2, side - 1, side};
    real *x = make_matrix(s, T, D, scale), *before = make_matrix(s, T, D, scale);
    struct workplace place;
    set_up(&place, ops, T, D, side, true);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        if (ranks[i] < 1 || ranks[i] > side) continue;
        place.f.T = T, place.f.D = D;
        snprintf(text, sizeof text, "%s, %s, [%ld, %ld], scale %g, rank %ld", ops->name, s->name, T, D, scale,
                 ranks[i]);
        one_rank(&place, s, scale, x, ranks[i]);
    }
    assert_memory_equal(x, before, (size_t)(T * D) * sizeof *x);
    clean_up(&place);
    free(x);
    free(before);
}

static void test_known_spectra(void **state) {
    (void)state;
    EACH_BACKEND(ops)
    for (const struct spectrum *s = spectra; s->name; s++)
        for (const struct shape *shape = shapes; shape->T; shape++)
            for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) one_matrix(ops, s, *shape, scales[i]);
}

/* The least rank that these factors can have, and hardly more than any could. */
static void test_tolerance(void **state) {
    (void)state;
    static const char *const names[] = {"fast", "slow", "flat", "deficient"};
    static const double tolerances[] = {0.9, 0.5, 0.1, 0.03, 0.01, 1e-4};
    const long T = 100, D = 80, max = 60;
    EACH_BACKEND(ops) {
        struct workplace place;
        struct factors *f = &place.f;
        set_up(&place, ops, T, D, max, false);
        for (int n = 0; n < 4; n++) {
            const struct spectrum *s = spectrum_find(names[n]);
            real *x = make_matrix(s, T, D, 1);
            for (int i = 0; i < 6; i++) {
                double tolerance = tolerances[i];
                long best = 1;
                while (best < max && min_error(s, T, D, best) > tolerance) best++;
                assert_int_equal(lowrank_to(&place.w, T, D, x, tolerance, SEED, f), 0);
                snprintf(text, sizeof text, "%s, %s, tolerance %g, rank %ld, could be %ld", ops->name,
                         s->name, tolerance, f->rank, best);
                check_factors(f, x);
                CHECK(f->error <= tolerance || f->rank == max, "%g", f->error);
                CHECK(f->rank == 1 || true_error(f, f->rank - 1, x) > 0.999 * tolerance, "one less would do");
                CHECK(f->rank >= best && f->rank <= best + 1, "%ld", f->rank);
            }
            free(x);
        }
        clean_up(&place);
    }
}

static void test_tolerance_of_nothing(void **state) {
    (void)state;
    struct workplace place;
    real *x = make_matrix(spectrum_find("zero"), 30, 40, 1);
    set_up(&place, ops_find("cpu"), 30, 40, 30, false);
    assert_int_equal(lowrank_to(&place.w, 30, 40, x, 0, SEED, &place.f), 0);
    assert_true(place.f.rank == 1 && place.f.error == 0 && place.f.norm == 0);
    clean_up(&place);
    free(x);
}

/* Scratch for larger matrices serves smaller ones of any shape. */
static void test_smaller(void **state) {
    (void)state;
    struct workplace place;
    set_up(&place, ops_find("cpu"), 300, 200, 30, true);
    for (const struct shape *shape = shapes; shape->T; shape++) {
        long T = shape->T, D = shape->D < 200 ? shape->D : 200, rank = T < 3 || D < 3 ? 1 : 3;
        real *x = make_matrix(spectrum_find("fast"), T, D, 1);
        snprintf(text, sizeof text, "[%ld, %ld] in scratch of [300, 200]", T, D);
        assert_int_equal(lowrank_factor(&place.w, T, D, x, rank, SEED, &place.f), 0);
        check_factors(&place.f, x);
        assert_int_equal(lowrank_full(&place.w, T, D, x, rank, NULL, &place.f), 0);
        check_factors(&place.f, x);
        free(x);
    }
    clean_up(&place);
}

static void *copy_of(const void *memory, size_t bytes) {
    return memcpy(malloc(bytes), memory, bytes);
}

/* The same seed gives the same bits, whatever the scratch was used for in between; another seed other
 * ones. */
static void test_repeats(void **state) {
    (void)state;
    const long T = 90, D = 70, rank = 12;
    size_t bytes = (size_t)(T * rank) * sizeof(real);
    real *x = make_matrix(spectrum_find("slow"), T, D, 1),
         *other = make_matrix(spectrum_find("flat"), T, D, 1);
    real *scaled = malloc(bytes), *full = malloc((size_t)(T * D) * sizeof *full);
    EACH_BACKEND(ops) {
        struct workplace place;
        set_up(&place, ops, T, D, rank, false);
        assert_int_equal(lowrank_factor(&place.w, T, D, x, rank, 1, &place.f), 0);
        real *u = copy_of(place.f.u, bytes);
        lowrank_expand(ops, &place.f, scaled, full);
        real *expanded = copy_of(full, (size_t)(T * D) * sizeof *full);
        assert_int_equal(lowrank_factor(&place.w, T, D, other, rank, 3, &place.f), 0);
        assert_int_equal(lowrank_factor(&place.w, T, D, x, rank, 1, &place.f), 0);
        assert_memory_equal(u, place.f.u, bytes);
        lowrank_expand(ops, &place.f, scaled, full);
        assert_memory_equal(expanded, full, (size_t)(T * D) * sizeof *full);
        double missed = 0, norm = place.f.norm;
        for (long i = 0; i < T * D; i++) missed += pow((double)full[i] - x[i], 2);
        assert_true(fabs(sqrt(missed) / norm - place.f.error) < 1e-3 * place.f.error);
        assert_int_equal(lowrank_factor(&place.w, T, D, x, rank, 2, &place.f), 0);
        assert_memory_not_equal(u, place.f.u, bytes);
        free(u);
        free(expanded);
        clean_up(&place);
    }
    free(x);
    free(other);
    free(scaled);
    free(full);
}

static void expect_failure(int status, int expected, const char *pattern) {
    assert_int_equal(status, expected);
    if (!strstr(gdn_failure(), pattern)) fail_msg("no '%s' in: %s", pattern, gdn_failure());
    gdn_failure_clear();
}

static void test_refused(void **state) {
    (void)state;
    const long T = 20, D = 12;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    real *x = make_matrix(spectrum_find("slow"), T, D, 1);
    struct workplace place;
    struct lowrank *w = &place.w;
    set_up(&place, ops_find("cpu"), T, D, D, true);
    for (int rank = 0; rank <= 13; rank += 13) {
        char number[20];
        snprintf(number, sizeof number, "rank %d ", rank);
        expect_failure(lowrank_factor(w, T, D, x, rank, 1, &place.f), GDN_INPUT, number);
        expect_failure(lowrank_factor(w, T, D, x, rank, 1, &place.f), GDN_INPUT, " 12,");
        expect_failure(lowrank_full(w, T, D, x, rank, NULL, &place.f), GDN_INPUT, number);
    }
    for (int i = 0; i < 3; i++) {
        long at = i * (T * D - 1) / 2; /* the first, the middle, the last */
        real good = x[at];
        x[at] = (real)bad[i];
        expect_failure(lowrank_factor(w, T, D, x, 3, 1, &place.f), GDN_INPUT, "is NaN or infinite");
        expect_failure(lowrank_to(w, T, D, x, 0.1, 1, &place.f), GDN_INPUT, "is NaN or infinite");
        expect_failure(lowrank_full(w, T, D, x, 3, NULL, &place.f), GDN_INPUT, "is NaN or infinite");
        x[at] = good;
    }
    x[0] = (real)(sizeof(real) == sizeof(float) ? 1e38 : 1e300); /* LAPACK would return infinities */
    expect_failure(lowrank_factor(w, T, D, x, 3, 1, &place.f), GDN_INPUT, "norm is above");
    expect_failure(lowrank_full(w, T, D, x, 3, NULL, &place.f), GDN_INPUT, "norm is above");
    x[0] = 1;
    clean_up(&place);
    set_up(&place, ops_find("cpu"), T - 1, D, 4, false); /* a fault of the program */
    expect_failure(lowrank_factor(w, T, D, x, 3, 1, &place.f), GDN_INTERNAL, "scratch of [19, 12]");
    expect_failure(lowrank_factor(w, T - 1, D, x, 5, 1, &place.f), GDN_INTERNAL, "rank 4");
    expect_failure(lowrank_full(w, T - 1, D, x, 3, NULL, &place.f), GDN_INTERNAL, "no full SVD");
    clean_up(&place);
    free(x);
}

static void test_ratio(void **state) {
    (void)state;
    assert_int_equal(lowrank_of_ratio(100, 40, 0.25), 10);
    assert_int_equal(lowrank_of_ratio(40, 100, 0.5), 20);
    assert_int_equal(lowrank_of_ratio(40, 100, 0.001), 1);
    assert_int_equal(lowrank_of_ratio(40, 100, 1.5), 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_spectra),
        cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_tolerance_of_nothing),
        cmocka_unit_test(test_smaller),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
