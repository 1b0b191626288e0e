/* The reference's operations of delta connections at their edges: equal source and target, norms below the
 * least one, gates of exactly 0 and 1. */
#include "kernels/backends/backends.h"
#include "tests/kernels/reference/delta_formulas.h"

static void all_are(const char *name, const real *x, long count, double value) {
    for (long i = 0; i < count; i++)
        if (x[i] != (real)value) fail_msg("%s[%ld] is %g, expected exactly %g", name, i, (double)x[i], value);
}

/* Source and target equal: every quantity is finite, and what is a multiple of the delta is 0. */
static void equal_source_and_target(void **state) {
    (void)state;
    real t[T * D], inv[T], e[T], square[T], gate[T * G], out[T * D], rms[T], dout[T * D], dweight[T],
        dgate[T * G];
    real dd[T * D], dr[T], dt[T * D] = {0}, ds[T * D] = {0};
    FILL(t, -1, 1);
    FILL(gate, 0, 1);
    FILL(dout, 0.5, 1);
    ops->delta_inverse_norm(T, D, t, t, EPS, inv);
    all_are("inv", inv, T, 1 / EPS);
    ops->delta_magnitude(T, D, t, t, inv, EPS, e, 1, square);
    all_are("e", e, T, sqrt(EPS));
    all_are("square", square, T, 0);
    ops->delta_spread(T, D, NULL, inv, t, t, dt, ds);
    all_are("dt", dt, T * D, 0);
    all_are("ds", ds, T * D, 0);
    ops->gated_delta(T, D, G, t, t, gate, G, inv, SCALE, NULL, 0, false, out, D, rms);
    all_are("out", out, T * D, 0);
    all_are("rms", rms, T, 1e-6);
    ops->gated_delta_back(T, D, G, t, t, gate, G, inv, SCALE, NULL, 0, dout, D, rms, 0.5, dweight, 1, dgate,
                          dd, dr);
    all_are("dweight", dweight, T, 0);
    all_are("dgate", dgate, T * G, 0);
    all_are("dr", dr, T, 0);
    for (long i = 0; i < T * D; i++) /* sparsity adds nothing where c is 0 */
        assert_true(fabs(dd[i] - inv[0] * SCALE * gate[i * G / D] * dout[i]) < 1e-6 * fabs(dd[i]));
}

/* Below ε the norm is ε; just above it is itself. */
static void min_norm(void **state) {
    (void)state;
    real t[2 * D] = {0}, s[2 * D] = {0}, inv[2];
    t[3] = (real)(EPS / 2);
    t[D + 3] = (real)(EPS * 2);
    ops->delta_inverse_norm(2, D, t, s, EPS, inv);
    near("inv", 0, inv[0] * EPS, 1);
    near("inv", 1, inv[1] * EPS, 0.5);
}

/* Gates whose logits leave no digits: exactly 0 or 1, no gradient, entropy that of the clamp, no slope. */
static void saturated_gates(void **state) {
    (void)state;
    const double clamped = -(1e-7 * log2(1e-7) + (1 - 1e-7) * log2(1 - 1e-7));
    real x[4] = {1000, -1000, 80, (real)-1e30}, g[4], dg[4] = {1, 1, 1, 1}, r[1] = {1}, dr[1] = {0};
    ops->sigmoid_gate(1, 4, 1, r, x, g, 4);
    assert_true(g[0] == 1 && g[1] == 0 && g[2] > 1 - 1e-15 && g[3] == 0);
    /* 1 − (1 − 1e-7) has lost nine digits to cancellation */
    assert_true(fabs(binary_entropy(1, 4, g, 4, NULL) - 4 * clamped) < 1e-8 * clamped);
    ops->sigmoid_gate_back(1, 4, 1, r, x, g, 4, 1e6, NULL, dg, 4, dr);
    assert_true(dg[0] == 0 && dg[1] == 0 && dg[3] == 0 && dr[0] == dr[0] && isfinite(dr[0]));

    real bias[4] = {0}, p[4] = {1, 1, 1, 1}, one = 1, logits[4] = {1000, -1000, 0, 0}, v[4], dweight[1];
    ops->bottleneck_gate(1, 1, 4, bias, p, NULL, &one, NULL, logits, v);
    real dv[4] = {1, 1, 0, 0};
    ops->bottleneck_gate_back(1, 1, 4, p, NULL, &one, NULL, NULL, 1e6, NULL, logits, dv, dweight, NULL);
    all_are("gradient of saturated logits", logits, 2, 0);
    all_are("entropy's slope at 1/2", logits + 2, 2, 0); /* where it is largest */

    real q[3] = {(real)1e4, 0, 0}, dq[3] = {1, 2, 3};
    ops->softmax_gate(1, 3, bias, 2, q, 3);
    assert_true(q[0] == 1 && q[1] == 0 && q[2] == 0);
    assert_true(softmax_entropy(1, 3, q, 3, NULL) == 0);
    ops->softmax_gate_back(1, 3, 2, q, 3, 0.5, NULL, dq, 3);
    all_are("gradient of a saturated softmax", dq, 3, 0);
}

/* Squared norms that rounding made negative count as 0. */
static void negative_square(void **state) {
    (void)state;
    real v[2] = {1, 1}, q[2] = {(real)-1e-9, 0}, kv[2], rms;
    ops->gram_rms(1, 2, D, v, 0, NULL, q, NULL, 2, &rms);
    all_are("rms", &rms, 1, 1e-6);
    all_are("q without sparsity", q, 1, -1e-9);
    ops->gram_rms(1, 2, D, v, 0.5, NULL, q, kv, 2, &rms);
    near("kv", 0, kv[0] * 1e-6, 0.5 / D);
    near("q", 0, q[0], -1e-9 * 0.5 / (D * 1e-6));
}

int main(void) {
    ops = ops_find("reference");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(min_norm),
        cmocka_unit_test(equal_source_and_target),
        cmocka_unit_test(negative_square),
        cmocka_unit_test(saturated_gates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
