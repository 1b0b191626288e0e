/* The reference's operations of several residual streams, by formulas and by finite differences: reading,
 * writing and mixing, and the numbers of these, with and without maps, free and doubly stochastic. */
#include "kernels/backends/backends.h"
#include "kernels/base/streams.h"
#include "tests/kernels/reference/reference.h"

#include <math.h>
#include <string.h>

enum { T = 3, n = 4, D = 5, K = n * (n + 2) };

static struct {
    bool of_token, unit; /* each has numbers of its own; mixing by differences */
    real c[T * K], x[T * n * D], f[T * D], dy[T * D], dout[T * n * D];
} pass;

static long ldc(void) {
    return pass.of_token ? K : 0;
}

static void begin(void) {
    FILL(pass.c, -1, 1);
    FILL(pass.x, -2, 2);
    FILL(pass.f, -1, 1);
    FILL(pass.dy, -1, 1);
    FILL(pass.dout, -1, 1);
}

/* -------------------------------------------------------------------------------------- elements, by
 * formulas */

static void elements(void **state) {
    real sum[T * D], spread[T * n * D], read[T * D], mixed[T * n * D];
    (void)state;
    begin();
    for (int mask = 0; mask < 4; mask++) {
        pass.of_token = mask & 1, pass.unit = mask & 2;
        ops->streams_sum(T, n, D, (real)0.25, pass.x, sum);
        ops->streams_spread(T, n, D, (real)0.5, pass.f, spread);
        ops->streams_read(T, n, D, pass.c, ldc(), pass.x, read);
        ops->streams_mix(T, n, D, pass.unit, pass.c, ldc(), pass.x, pass.f, mixed);
        for (long t = 0; t < T; t++)
            for (long j = 0; j < D; j++) {
                const real *c = pass.c + t * ldc(), *x = pass.x + t * n * D + j;
                double all = 0, weighted = 0;
                for (long i = 0; i < n; i++) {
                    double to = c[n + i] * (double)pass.f[t * D + j];
                    all += x[i * D], weighted += (double)c[i] * x[i * D];
                    double own = pass.unit ? x[i * D] : 0;
                    to += own;
                    for (long k = 0; k < n; k++) to += (double)c[2 * n + i * n + k] * (x[k * D] - own);
                    check_near("mixed", mixed[(t * n + i) * D + j], to);
                    check_near("spread", spread[(t * n + i) * D + j], pass.f[t * D + j] / 2.0);
                }
                check_near("sum", sum[t * D + j], all / 4);
                check_near("read", read[t * D + j], weighted);
            }
    }
}

static double pass_loss(const void *context) {
    real read[T * D], mixed[T * n * D];
    (void)context;
    ops->streams_read(T, n, D, pass.c, ldc(), pass.x, read);
    ops->streams_mix(T, n, D, pass.unit, pass.c, ldc(), pass.x, pass.f, mixed);
    return dot(T * D, pass.dy, read) + dot(T * n * D, pass.dout, mixed);
}

static void passes(void **state) {
    (void)state;
    begin();
    for (int mask = 0; mask < 4; mask++) {
        real g[T * n * D], df[T * D], dc[T * K];
        bool of_token = pass.of_token = mask & 1;
        pass.unit = mask & 2;
        memcpy(g, pass.dout, sizeof g);
        ops->streams_mix_back(T, n, D, pass.unit, pass.c, ldc(), pass.x, pass.f, g, df, dc);
        ops->streams_read_back(T, n, D, pass.c, ldc(), pass.x, pass.dy, g, dc);
        for (long t = 1; !of_token && t < T; t++) /* the one token's serve all */
            for (long k = 0; k < K; k++) dc[k] += dc[t * K + k];
        check_gradients(pass_loss, NULL,
                        (struct input[]){{"x", T, n * D, pass.x, n * D, g, n * D},
                                         {"f", T, D, pass.f, D, df, D},
                                         {"c", of_token ? T : 1, K, pass.c, K, dc, K},
                                         {0}});
    }
}

/* ------------------------------------------------------------------------------------------------ the
 * numbers */

static struct {
    bool maps, stochastic;
    real weight[K], scale[3], u[T * K], rstd[T * n], dc[T * K];
} numbers;

static void weigh(real *c) {
    bool maps = numbers.maps;
    ops->stream_weights(T, n, 6, numbers.stochastic, numbers.weight, maps ? numbers.scale : NULL,
                        maps ? numbers.u : NULL, maps ? numbers.rstd : NULL, c);
}

static double numbers_loss(const void *context) {
    real c[T * K];
    (void)context;
    weigh(c);
    return dot(T * K, numbers.dc, c);
}

static void gradients_of_numbers(void **state) {
    (void)state;
    FILL(numbers.weight, -1, 1);
    FILL(numbers.scale, 0.5, 1);
    FILL(numbers.u, -1, 1);
    FILL(numbers.rstd, 0.5, 1.5);
    FILL(numbers.dc, -3, 3);
    for (int mask = 0; mask < 4; mask++) {
        real dc[T * K], du[T * K], drstd[T * n], of_token[T * 3], dweight[K] = {0}, dscale[3] = {0};
        bool maps = mask & 1;
        numbers.maps = maps, numbers.stochastic = mask & 2;
        memcpy(dc, numbers.dc, sizeof dc);
        ops->stream_weights_back(T, n, numbers.stochastic, numbers.weight, maps ? numbers.scale : NULL,
                                 maps ? numbers.u : NULL, maps ? numbers.rstd : NULL, dc, maps ? du : NULL,
                                 maps ? drstd : NULL, maps ? of_token : NULL);
        ops->add_column_sums(T, K, dc, K, dweight);
        if (maps) ops->add_column_sums(T, 3, of_token, 3, dscale);
        check_gradients(numbers_loss, NULL,
                        (struct input[]){{"weight", 1, K, numbers.weight, K, dweight, K},
                                         {"scale", maps, 3, numbers.scale, 3, dscale, 3},
                                         {"u", maps ? T : 0, K, numbers.u, K, du, K},
                                         {"rstd", maps ? T : 0, n, numbers.rstd, n, drstd, n},
                                         {0}});
    }
}

/* Nothing learned: a block reads one stream, writes by 1, and mixing is the identity, or doubly stochastic
 * and nearest to it on the diagonal. */
static void begins_as_one_stream(void **state) {
    real c[T * K];
    (void)state;
    memset(&numbers, 0, sizeof numbers);
    for (int stochastic = 0; stochastic < 2; stochastic++) {
        double apart = exp(-STREAMS_IDENTITY), off = apart / (1 + (n - 1) * apart);
        numbers.stochastic = stochastic;
        weigh(c);
        for (long i = 0; i < n; i++) {
            assert_true(c[i] == (i == 6 % n));
            assert_true(c[n + i] == 1);
            for (long k = 0; k < n; k++) {
                real mixing = c[2 * n + i * n + k];
                check_near("mixing", mixing, !stochastic ? i == k : i == k ? 1 - (n - 1) * off : off);
                assert_true(stochastic || mixing == (i == k));
            }
        }
    }
}

/* Rows have sum 1 to rounding, columns to what the rounds leave, here at most 3 in a hundred. */
static void doubly_stochastic(void **state) {
    real c[T * K];
    (void)state;
    FILL(numbers.weight, -1, 1);
    numbers.maps = false, numbers.stochastic = true;
    weigh(c);
    for (long i = 0; i < n; i++) {
        double row = 0, column = 0;
        for (long k = 0; k < n; k++) {
            assert_true(c[2 * n + i * n + k] > 0);
            row += c[2 * n + i * n + k], column += c[2 * n + k * n + i];
        }
        check_near("row", row, 1);
        assert_true(fabs(column - 1) < 0.03);
    }
}

/* Streams that are alike stay so, to the bit, whatever the mixing; and its gradient is exactly 0. */
static void alike(void **state) {
    real c[T * K], mixed[T * n * D], plain[T * D], g[T * n * D], df[T * D], dc[T * K];
    (void)state;
    begin();
    FILL(numbers.weight, -1, 1);
    numbers.maps = false, numbers.stochastic = true;
    for (long i = 0; i < n; i++) numbers.weight[n + i] = 0; /* writes by 1 */
    weigh(c);
    ops->streams_spread(T, n, D, 1, pass.dy, pass.x);
    ops->streams_mix(T, n, D, true, c, K, pass.x, pass.f, mixed);
    ops->add_to(T * D, pass.dy, pass.f, plain);
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++)
            assert_memory_equal(mixed + (t * n + i) * D, plain + t * D, D * sizeof *plain);
    memcpy(g, pass.dout, sizeof g);
    ops->streams_mix_back(T, n, D, true, c, K, pass.x, pass.f, g, df, dc);
    memset(dc, 0, n * sizeof *dc); /* of reading, which it leaves */
    ops->stream_weights_back(1, n, true, numbers.weight, NULL, NULL, NULL, dc, NULL, NULL, NULL);
    for (long k = 2 * n; k < K; k++) assert_true(dc[k] == 0);
}

int main(void) {
    ops = ops_find("reference");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements),
        cmocka_unit_test(passes),
        cmocka_unit_test(gradients_of_numbers),
        cmocka_unit_test(begins_as_one_stream),
        cmocka_unit_test(doubly_stochastic),
        cmocka_unit_test(alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
