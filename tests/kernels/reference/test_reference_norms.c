/* The reference's norms, sums of normalised rows and inverse norms, as test_reference_trunk.c has the rest of
 * the trunk. */
#include "kernels/backends/backends.h"
#include "tests/kernels/reference/reference.h"

#include <math.h>
#include <string.h>

static struct { real x[3 * 5], w[5], dy[3 * 5]; } norm_case;

static double norm_loss(const void *context) {
    (void)context;
    real y[15], rstd[3];
    ops->rms_norm(3, 5, norm_case.x, norm_case.w, 0.1, y, rstd);
    return dot(15, y, norm_case.dy);
}

static void norm(void **state) {
    real y[15], rstd[3], sum[15], more[15], again[3], zero[15] = {0}, dx[15] = {0}, dw[5] = {0};
    (void)state;
    FILL(norm_case.x, -2, 2);
    FILL(norm_case.w, 0.5, 1.5);
    FILL(norm_case.dy, -1, 1);
    ops->rms_norm(3, 5, norm_case.x, norm_case.w, 0.1, y, rstd);
    for (int i = 0; i < 15; i++) {
        const real *row = norm_case.x + i / 5 * 5;
        check_near("y", y[i], row[i % 5] * norm_case.w[i % 5] / sqrt(dot(5, row, row) / 5 + 0.1));
        check_near("rstd", rstd[i / 5], pow(dot(5, row, row) / 5 + 0.1, -0.5));
    }
    ops->add_rms_norm(3, 5, norm_case.x, zero, norm_case.w, 0.1, sum, more, again);
    assert_memory_equal(sum, norm_case.x, sizeof sum);
    assert_memory_equal(more, y, sizeof y);
    ops->add_rms_norm(3, 5, norm_case.x, norm_case.dy, norm_case.w, 0.1, sum, more, again);
    for (int i = 0; i < 15; i++) check_near("sum", sum[i], (double)norm_case.x[i] + norm_case.dy[i]);
    ops->rms_norm(3, 5, sum, norm_case.w, 0.1, y, rstd);
    assert_memory_equal(more, y, sizeof y);
    assert_memory_equal(again, rstd, sizeof rstd);
    ops->rms_norm(3, 5, norm_case.x, norm_case.w, 0.1, y, rstd);
    ops->rms_norm_back(3, 5, norm_case.x, norm_case.w, rstd, norm_case.dy, dx, dw);
    check_gradients(
        norm_loss, NULL,
        (struct input[]){{"x", 3, 5, norm_case.x, 5, dx, 5}, {"w", 1, 5, norm_case.w, 5, dw, 5}, {0}});
    /* Sums of norms, of the rows and of dy's. */
    const real *sources[] = {norm_case.x, norm_case.dy};
    real gain[10], rstds[6], total[15];
    FILL(gain, -1, 1);
    for (int i = 0; i < 15; i++) total[i] = (real)i;
    ops->add_norms(3, 5, 1, 2, sources, NULL, gain, NULL, 0, 0.1, total, rstds);
    ops->row_rstd(3, 5, norm_case.dy, 0.1, again);
    assert_memory_equal(rstds, rstd, sizeof rstd);
    assert_memory_equal(rstds + 3, again, sizeof again);
    for (int i = 0; i < 15; i++)
        check_near("add_norms", total[i],
                   i + (double)gain[i % 5] * norm_case.x[i] * rstd[i / 5] +
                       (double)gain[5 + i % 5] * norm_case.dy[i] * again[i / 5]);
    real twice = dx[7];
    ops->rms_norm_back(3, 5, norm_case.x, norm_case.w, rstd, norm_case.dy, dx, dw);
    check_near("dx accumulated", dx[7], 2 * (double)twice);
}

/* Sums of norms of three rows less others, with weights of tokens in three groups of two columns. */
static struct { real s[2 * 18], p[2 * 18], w[2 * 6], a[3 * 7], y[18], dy[18]; } sum_case;

static void add_sum(const real *const *p, const real *a, real *y, real *rstd) {
    const real *s[] = {sum_case.s, sum_case.s + 18};
    memcpy(y, sum_case.y, sizeof sum_case.y);
    ops->add_norms(3, 6, 3, 2, s, p, sum_case.w, a, 7, 0.1, y, rstd);
}

static double sum_loss(const void *p) {
    real y[18], rstd[6];
    add_sum(p, sum_case.a, y, rstd);
    return dot(18, y, sum_case.dy);
}

static void sums(void **state) {
    const real *const before[] = {sum_case.p, sum_case.p + 18};
    real y[18], rstd[6], again[18];
    (void)state;
    FILL(sum_case.s, -2, 2);
    FILL(sum_case.p, -1, 1);
    FILL(sum_case.w, -1, 1);
    FILL(sum_case.a, -1, 1);
    FILL(sum_case.y, -1, 1);
    FILL(sum_case.dy, -1, 1);
    add_sum(before, sum_case.a, y, rstd);
    for (int i = 0; i < 18; i++) {
        double right = sum_case.y[i];
        for (int j = 0; j < 2; j++) {
            real less[6];
            for (int k = 0; k < 6; k++)
                less[k] = sum_case.s[j * 18 + i / 6 * 6 + k] - sum_case.p[j * 18 + i / 6 * 6 + k];
            double factor = pow(dot(6, less, less) / 6 + 0.1, -0.5);
            check_near("rstd", rstd[j * 3 + i / 6], factor);
            right += (sum_case.w[j * 6 + i % 6] + sum_case.a[i / 6 * 7 + j * 3 + i % 6 / 2]) * less[i % 6] *
                     factor;
        }
        check_near("y", y[i], right);
    }
    for (int less = 0; less < 2; less++) {
        real ds[36] = {0}, dp[36] = {0}, dw[12] = {0}, da[21], none[36] = {0};
        add_sum(less ? before : NULL, sum_case.a, y, rstd);
        for (int j = 0; j < 2; j++) {
            const real *s = sum_case.s + j * 18, *p = less ? before[j] : NULL, *w = sum_case.w + j * 6,
                       *a = sum_case.a + j * 3;
            ops->add_norm_back(3, 6, 3, s, p, w, a, 7, rstd + j * 3, sum_case.dy, ds + j * 18,
                               p ? dp + j * 18 : NULL, dw + j * 6, da + j * 3);
        }
        check_gradients(sum_loss, less ? before : NULL,
                        (struct input[]){{"s", 2, 18, sum_case.s, 18, ds, 18},
                                         {"p", 2, 18, sum_case.p, 18, less ? dp : none, 18},
                                         {"w", 2, 6, sum_case.w, 6, dw, 6},
                                         {"a", 3, 6, sum_case.a, 7, da, 7},
                                         {0}});
        real alone[21];
        ops->add_norm_back(3, 6, 3, sum_case.s, less ? before[0] : NULL, sum_case.w, sum_case.a, 7, rstd,
                           sum_case.dy, NULL, NULL, NULL, alone);
        for (int t = 0; t < 3; t++) assert_memory_equal(alone + t * 7, da + t * 7, 3 * sizeof *da);
        real twice = ds[7];
        ops->add_norm_back(3, 6, 3, sum_case.s, less ? before[0] : NULL, sum_case.w, sum_case.a, 7, rstd,
                           sum_case.dy, ds, less ? dp : NULL, dw, alone);
        check_near("ds accumulated", ds[7], 2 * (double)twice);
    }
    /* Groups are of no account without weights of tokens. */
    memset(sum_case.a, 0, sizeof sum_case.a);
    add_sum(before, sum_case.a, y, rstd);
    add_sum(before, NULL, again, rstd);
    assert_memory_equal(y, again, sizeof y);
}

/* Of Σ_t dr[t]·rstd[t]. */
static double rstd_loss(const void *context) {
    (void)context;
    real rstd[3];
    ops->row_rstd(3, 5, norm_case.x, 0.1, rstd);
    return dot(3, rstd, norm_case.dy);
}

static void rstd(void **state) {
    real rstd[3], k[3], dx[15] = {0};
    (void)state;
    FILL(norm_case.x, -2, 2);
    FILL(norm_case.dy, -1, 1);
    ops->row_rstd(3, 5, norm_case.x, 0.1, rstd);
    ops->row_rstd_back(3, 5, rstd, norm_case.dy, k);
    for (int t = 0; t < 3; t++) check_near("k", k[t], -norm_case.dy[t] * pow((double)rstd[t], 3) / 5);
    ops->add_scaled_rows(3, 5, k, norm_case.x, dx);
    check_gradients(rstd_loss, NULL, (struct input[]){{"x", 3, 5, norm_case.x, 5, dx, 5}, {0}});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(norm), cmocka_unit_test(sums),
                                       cmocka_unit_test(rstd)};
    ops = ops_find("reference");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
