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
    ops->add_norms(3, 5, 2, sources, gain, 0.1, total, rstds);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(norm), cmocka_unit_test(rstd)};
    ops = ops_find("reference");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
