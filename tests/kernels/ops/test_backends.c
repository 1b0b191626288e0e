/* Trunk: what the list's own calls (test_operations) leave out, on every backend against the reference:
 * lengths and row distances of their own, special numbers, arguments that share a buffer, results that must
 * have the same bits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/base/marks.h"
#include "tests/kernels/ops/harness.h"

/* ----------------------------------------------------------------------------------- matrices and vectors */

static void gemm(void **state) {
    static const long shapes[][3] = {{1, 1, 1},      {1, 7, 3},      {5, 1, 9},     {13, 17, 11},
                                     {64, 64, 64},   {97, 61, 5},    {3, 300, 70},  {128, 96, 257},
                                     {257, 128, 33}, {40, 700, 130}, {65, 130, 201}};
    static const double factors[][2] = {{1, 0}, {1, 1}, {0.5, -2}};
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(shapes); s++) for (int mask = 0; mask < 12; mask++) {
        long m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        char ta = mask & 1 ? 'T' : 'N', tb = mask & 2 ? 'T' : 'N';
        const double *factor = factors[mask / 4];
        long lda = (mask & 1 ? m : k) + 3, ldb = (mask & 2 ? k : n) + 1, ldc = n + 2;
        struct buffer *a = make("A", (mask & 1 ? k : m) * lda, -1, 1);
        struct buffer *b = make("B", (mask & 2 ? n : k) * ldb, -1, 1), *c = make("C", m * ldc, -1, 1);
        operation = "gemm";
        snprintf(text, sizeof text, "%c%c m %ld n %ld k %ld beta %g", ta, tb, m, n, k, factor[1]);
        struct buffer *p = make("C of linear", m * ldc, -1, 1);
        if (factor[1] == 0) /* C is never read */
            for (long i = 0; i < m; i++)
                for (long j = 0; j < n; j++)
                    EACH_SIDE(side) c->x[side][i * ldc + j] = p->x[side][i * ldc + j] = (real)NAN;
        EACH_SIDE(i)
        start(i)->gemm(ta, tb, m, n, k, (real)factor[0], a->x[i], lda, b->x[i], ldb, (real)factor[1], c->x[i],
                       ldc);
        EACH_SIDE(i) /* whose trunk has no use for both transposed */
        if ((mask & 3) != 3)
            start(i)->linear(3, ta, tb, m, n, k, (real)factor[0], a->x[i], lda, b->x[i], ldb, (real)factor[1],
                             p->x[i], ldc);
        else
            memset(p->x[i], 0, (size_t)p->count * sizeof(real));
        compare(k, SAME_THREADS);
    }
}

static const long lengths[] = {1, 7, 64, 4099, 70001};

static void vectors(void **state) {
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(lengths); s++) {
        long n = lengths[s];
        snprintf(text, sizeof text, "n %ld", n);
        struct buffer *x = make("x", n, -1, 1), *y = make("y", n, -1, 1), *z = make("z", n, -1, 1);
        operation = "zero", set(z, 0, 1, NAN);
        EACH_SIDE(i) start(i)->zero(n, z->x[i]);
        operation = "copy";
        EACH_SIDE(i) start(i)->copy(n, x->x[i], z->x[i]);
        operation = "add";
        EACH_SIDE(i) start(i)->add(n, x->x[i], y->x[i]);
        operation = "add_to";
        EACH_SIDE(i) start(i)->add_to(n, x->x[i], y->x[i], z->x[i]);
        EACH_SIDE(i) start(i)->add_to(n, z->x[i], x->x[i], z->x[i]);
        compare(1, ANY_THREADS);

        operation = "round_bf16"; /* what to_bf16 and from_bf16 give, on every backend the same bits */
        struct buffer *from = make("from", n, -1, 1), *to = make("to", n, -1, 1);
        struct sums *kept = make_sums("kept", (n * (long)sizeof(uint16_t) + 7) / 8, OF_DOUBLES);
        EACH_SIDE(i) {
            start(i)->to_bf16(n, from->x[i], (uint16_t *)kept->x[i]);
            start(i)->from_bf16(1, n, (uint16_t *)kept->x[i], to->x[i], n);
            start(i)->round_bf16(n, from->x[i]);
        }
        synchronize();
        EACH_SIDE(i) {
            assert_memory_equal(to->x[i], to->x[REFERENCE], (size_t)n * sizeof(real));
            assert_memory_equal(from->x[i], to->x[i], (size_t)n * sizeof(real));
            memset(kept->x[i], 0, (size_t)kept->count * sizeof(double)); /* no numbers to compare */
        }
        compare(1, ANY_THREADS);

        operation = "adamw";
        struct buffer *w = make("w", n, -1, 1), *g = make("g", n, -1, 1), *m = make("m", n, -1, 1);
        struct buffer *v = make("v", n, 0, 1);
        set(g, 0, 5, 0), set(m, 0, 5, 0), set(v, 0, 5, 0); /* never touched before: 0/(0 + eps) */
        EACH_SIDE(i)
        for (int cautious = 0; cautious < 2; cautious++) /* of a decay that shows where it should not be */
            start(i)->adamw(n, w->x[i], g->x[i], m->x[i], v->x[i], 0.5, 0.1, 0.9, 0.99, 1e-8, 0.1 + cautious,
                            cautious, 0.2, 0.03);
        compare(1, ANY_THREADS);
    }
}

/* Whole blocks of the grain and pieces of them, more blocks than a device does at once, and one alone. */
static void add_squares(void **state) {
    static const long grains[] = {3, 1024, 1000000};
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(lengths); s++) for (size_t g = 0; g < COUNT(grains); g++) {
        long n = lengths[s], grain = grains[g], first = n / 3, count = (n - first + 1) / 2;
        snprintf(text, sizeof text, "n %ld grain %ld", n, grain);
        struct buffer *x = make("x", n, -1, 1);
        struct sums *square = make_sums("square", (n + grain - 1) / grain, OF_DOUBLES);
        operation = "add_squares";
        EACH_SIDE(i) {
            start(i)->add_squares(first, count, grain, x->x[i], square->x[i]);
            start(i)->add_squares(first + count, n - first - count, grain, x->x[i], square->x[i]);
        }
        compare(grain < n ? grain : n, ANY_THREADS);
    }
}

/* Checksums: whole numbers, so the same on all sides however they are cut; of one row, of rows in a wider
 * matrix, of a column whose elements lie side by side, and at places that need all 64 bits. */
static void add_hash(void **state) {
    static const struct {
        long rows, width, gap;
        uint64_t index, stride;
    } cases[] = {{1, 1, 0, 0, 0},         {1, 70001, 0, 5, 0},     {300, 257, 3, 1ull << 40, 300},
                 {70001, 1, 0, 7, 70003}, {9, 20000, 1, 0, 20000}, {3, 5, 0, UINT64_MAX - 3, 1ull << 60}};
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(cases); s++) {
        long rows = cases[s].rows, width = cases[s].width, ld = width + cases[s].gap, half = rows / 2;
        uint64_t index = cases[s].index, stride = cases[s].stride;
        snprintf(text, sizeof text, "rows %ld width %ld ld %ld", rows, width, ld);
        operation = "add_hash";
        struct buffer *x = make("x", rows * ld, -1, 1);
        struct sums *sum = make_sums("sum", 1, OF_DOUBLES);
        EACH_SIDE(i) {
            uint64_t *to = (uint64_t *)sum->x[i];
            start(i)->add_hash(x->x[i], half, width, ld, index, stride, to);
            start(i)->add_hash(x->x[i] + half * ld, rows - half, width, ld, index + (uint64_t)half * stride,
                               stride, to);
        }
        synchronize();
        EACH_SIDE(i) assert_memory_equal(sum->x[i], sum->x[REFERENCE], sizeof(uint64_t));
        uint64_t before;
        memcpy(&before, sum->x[REFERENCE], sizeof before);
        start(REFERENCE)->add_hash(x->x[REFERENCE], 1, 1, ld, index, stride, (uint64_t *)sum->x[REFERENCE]);
        assert_memory_not_equal(&before, sum->x[REFERENCE], sizeof before);
        release();
    }
}

static void add_parts(void **state) {
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(lengths); s++) for (int parts = 1; parts < 6; parts++) {
        long n = lengths[s];
        snprintf(text, sizeof text, "n %ld parts %d", n, parts);
        for (int most = 0; most < 2; most++) {
            struct buffer *pieces = make("pieces", parts * n, -1, 1), *out = make("out", n, -1, 1);
            operation = most ? "max_parts" : "add_parts";
            EACH_SIDE(i)
            for (int in_place = 0; in_place < 2;
                 in_place++)(most ? start(i)->max_parts : start(i)->add_parts)(
                n, parts, pieces->x[i], (in_place ? pieces : out)->x[i]);
            compare(parts, ANY_THREADS);
        }
    }
}

static const struct shape {
    long T, D;
} shapes[] = {{1, 1}, {1, 64}, {7, 5}, {3, 257}, {13, 96}, {300, 128}, {17, 1031}, {2, 9001}, {1, 20011}};

static void rows(void **state) {
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(shapes); s++) {
        long T = shapes[s].T, D = shapes[s].D, ld = D + 3;
        snprintf(text, sizeof text, "T %ld D %ld", T, D);
        operation = "add_column_sums";
        struct buffer *x = make("x", T * ld, -1, 1), *sum = make("sum", D, -1, 1);
        EACH_SIDE(i) start(i)->add_column_sums(T, D, x->x[i], ld, sum->x[i]);
        compare(T, ANY_THREADS);

        operation = "add_scaled_rows";
        struct buffer *c = make("c", T, -1, 1), *y = (x = make("x", T * D, -1, 1), make("y", T * D, -1, 1));
        EACH_SIDE(i) start(i)->add_scaled_rows(T, D, c->x[i], x->x[i], y->x[i]);
        compare(1, ANY_THREADS);

        operation = "embed";
        const int32_t *token = make_tokens(T, 5);
        struct buffer *E = make("E", 5 * D, -1, 1), *dx = make("dx", T * D, -1, 1);
        y = make("y", T * D, -1, 1);
        EACH_SIDE(i) start(i)->embed(T, D, token, 0, 5, E->x[i], y->x[i]);
        operation = "embed_back";
        EACH_SIDE(i) start(i)->embed_back(T, D, token, 0, 5, dx->x[i], E->x[i]);
        synchronize(); /* in token order: nothing is left to rounding */
        EACH_SIDE(i) assert_memory_equal(E->x[i], E->x[REFERENCE], (size_t)E->count * sizeof(real));
        compare(T, ANY_THREADS);
        operation = "embed of a part";
        token = make_tokens(T, 5);
        E = make("E", 2 * D, -1, 1), y = make("y", T * D, -1, 1), dx = make("dx", T * D, -1, 1);
        EACH_SIDE(i) start(i)->embed(T, D, token, 1, 2, E->x[i], y->x[i]);
        EACH_SIDE(i) start(i)->embed_back(T, D, token, 1, 2, dx->x[i], E->x[i]);
        compare(T, ANY_THREADS);
    }
}

/* Whole numbers, in buffers of reals. Marks of all kinds, and few of them: long documents. */
static void cut_tokens(void **state) {
    static const long sizes[][2] = {{1, 1}, {3, 5}, {7, 64}, {2, 150000}};
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(sizes); s++) {
        long B = sizes[s][0], S = sizes[s][1];
        snprintf(text, sizeof text, "B %ld S %ld", B, S);
        operation = "cut_tokens";
        int32_t *rows = make_tokens(B * (S + 1), 100000);
        for (long t = 0; t < B * (S + 1); t++)
            rows[t] |= rows[t] % (S > 99 ? 1000 : 3) == 0 ? MARK_DOCUMENT
                       : rows[t] % 2                      ? MARK_UNCOUNTED
                       : rows[t] % 5 == 0                 ? MARK_PADDING
                                                          : 0;
        struct buffer *input = make("input", B * S, 0, 1), *target = make("target", B * S, 0, 1),
                      *starts = make("starts", B * S, 0, 1), *counts = make("counts", B * S, 0, 1);
        EACH_SIDE(i)
        start(i)->cut_tokens(B, S, rows, (int32_t *)input->x[i], (int32_t *)target->x[i],
                             (int32_t *)starts->x[i], counts->x[i]);
        synchronize();
        EACH_SIDE(i) {
            assert_memory_equal(input->x[i], input->x[REFERENCE], (size_t)(B * S) * sizeof *rows);
            assert_memory_equal(target->x[i], target->x[REFERENCE], (size_t)(B * S) * sizeof *rows);
            assert_memory_equal(starts->x[i], starts->x[REFERENCE], (size_t)(B * S) * sizeof *rows);
        }
        EACH_SIDE(i)
        memset(target->x[i], 0, (size_t)(B * S) * sizeof *rows); /* −1 is no number to `compare` */
        compare(1, ANY_THREADS);
    }
}

/* So many elements, blocks and rows that a device's threads have several each. */
static void longer(void **state) {
    enum { N = 2100003, T = 4100, W = 513 };
    (void)state;
    EACH_BACKEND {
        operation = "add_to, add_squares", snprintf(text, sizeof text, "n %d", N);
        struct buffer *x = make("x", N, -1, 1), *y = make("y", N, -1, 1);
        struct sums *square = make_sums("square", N / 64 + 1, OF_DOUBLES);
        EACH_SIDE(i) start(i)->add_to(N, x->x[i], y->x[i], y->x[i]);
        EACH_SIDE(i) start(i)->add_squares(0, N, 64, x->x[i], square->x[i]);
        compare(64, ANY_THREADS);
        operation = "add_scaled_rows", snprintf(text, sizeof text, "T %d W %d", T, W);
        struct buffer *c = make("c", T, -1, 1);
        x = make("x", T * W, -1, 1), y = make("y", T * W, -1, 1);
        EACH_SIDE(i) start(i)->add_scaled_rows(T, W, c->x[i], x->x[i], y->x[i]);
        compare(1, ANY_THREADS);
    }
}

static void norm(void **state) {
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(shapes); s++) {
        long T = shapes[s].T, D = shapes[s].D;
        snprintf(text, sizeof text, "T %ld D %ld", T, D);
        struct buffer *x = make("x", T * D, -1, 1), *r = make("r", T * D, -1, 1), *w = make("w", D, 0.5, 1.5);
        struct buffer *sum = make("sum", T * D, -1, 1), *y = make("y", T * D, -1, 1),
                      *rstd = make("rstd", T, 0, 1);
        operation = "rms_norm";
        EACH_SIDE(i) start(i)->rms_norm(T, D, x->x[i], w->x[i], 1e-5, y->x[i], rstd->x[i]);
        /* Whoever needs the norms alone gets the same bits: stages of a pipeline mix the two. */
        struct buffer *alone = make("rstd alone", T, 0, 1);
        EACH_SIDE(i) start(i)->row_rstd(T, D, x->x[i], 1e-5, alone->x[i]);
        synchronize();
        EACH_SIDE(i) assert_memory_equal(alone->x[i], rstd->x[i], (size_t)T * sizeof(real));
        compare(D, ANY_THREADS);
        x = make("x", T * D, -1, 1), r = make("r", T * D, -1, 1), w = make("w", D, 0.5, 1.5);
        sum = make("sum", T * D, -1, 1), y = make("y", T * D, -1, 1), rstd = make("rstd", T, 0, 1);
        operation = "add_rms_norm";
        EACH_SIDE(i)
        start(i)->add_rms_norm(T, D, x->x[i], r->x[i], w->x[i], 1e-5, sum->x[i], y->x[i], rstd->x[i]);
        compare(D, ANY_THREADS);

        operation = "rms_norm_back";
        x = make("x", T * D, -1, 1), w = make("w", D, 0.5, 1.5), rstd = make("rstd", T, 1, 2);
        struct buffer *dy = make("dy", T * D, -1, 1), *dx = make("dx", T * D, -1, 1),
                      *dw = make("dw", D, -1, 1);
        EACH_SIDE(i)
        start(i)->rms_norm_back(T, D, x->x[i], w->x[i], rstd->x[i], dy->x[i], dx->x[i], dw->x[i]);
        compare(D + T, SAME_THREADS);
    }
}

/* ------------------------------------------------------------------------------------------- MLP and loss */

static void swiglu(void **state) {
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(shapes); s++) for (int mask = 0; mask < 6; mask++) {
        long T = shapes[s].T, F = shapes[s].D;
        int with_h = mask % 3;
        snprintf(text, sizeof text, "T %ld F %ld", T, F);
        struct buffer *gu = make("gu", T * 2 * F, -3, 3), *h = make("h", T * F, -1, 1);
        if (mask >= 3) set(gu, 0, 2 * F, 200), set(gu, F > 1 ? 1 : 0, 2 * F, -200); /* where exp overflows */
        operation = "swiglu";
        if (with_h == 2) {
            EACH_SIDE(i) start(i)->swiglu(T, F, gu->x[i], h->x[i]);
            compare(1, ANY_THREADS);
            continue;
        }
        struct buffer *dh = make("dh", T * F, -1, 1), *dgu = make("dgu", T * 2 * F, -1, 1);
        operation = "swiglu_back";
        EACH_SIDE(i) start(i)->swiglu_back(T, F, gu->x[i], dh->x[i], dgu->x[i], with_h ? h->x[i] : NULL);
        if (with_h) { /* recomputed as it was, to the bit */
            struct buffer *before = make("h before", T * F, 0, 0);
            EACH_SIDE(i) {
                start(i)->swiglu(T, F, gu->x[i], before->x[i]);
                synchronize();
                assert_memory_equal(before->x[i], h->x[i], (size_t)(T * F) * sizeof(real));
            }
        }
        compare(1, ANY_THREADS);
    }
}

static void cross_entropy(void **state) {
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(shapes); s++) for (int mask = 0; mask < 8; mask++) {
        long T = shapes[s].T, V = shapes[s].D, ld = V + 2;
        double scale = mask & 2 ? 2 : 0, cap = mask & 4 ? mask & 1 ? 900 : 4 : 0, z = mask & 4 ? 1e-3 : 0;
        snprintf(text, sizeof text, "T %ld V %ld", T, V);
        /* Large logits too: e^600 overflows even in double. */
        double size = mask & 1 ? 700 : 3;
        struct buffer *logits = make("logits", T * ld, -size, size), *loss = make("loss", T, 0, 1);
        const int32_t *target = make_targets(T, (int32_t)V);
        operation = "cross_entropy";
        EACH_SIDE(i)
        start(i)->cross_entropy(T, V, logits->x[i], ld, target, cap, z, scale, loss->x[i], NULL);
        compare(V, ANY_THREADS);

        operation = "row_largest, part_exp, part_cross_entropy";
        long first = V / 2; /* targets lie on either side of it */
        struct buffer *largest = make("largest", T, 0, 1), *sums = make("sums", 2 * T, 0, 1);
        target = make_targets(T, (int32_t)(V + 3));
        logits = make("logits", T * ld, -size, size), loss = make("loss", T, 0, 1);
        EACH_SIDE(i) {
            const struct ops *ops = start(i);
            ops->row_largest(T, V, logits->x[i], ld, largest->x[i]);
            ops->part_exp(T, V, logits->x[i], ld, target, first, largest->x[i], cap, sums->x[i]);
            ops->part_cross_entropy(T, V, logits->x[i], ld, target, first, largest->x[i], sums->x[i], cap, z,
                                    scale, loss->x[i], NULL);
        }
        compare(V, ANY_THREADS);
    }
}

/* A NaN anywhere must reach the result: the run is watched for divergence by its losses and norms. */
static void nan_is_seen(void **state) {
    enum { S = 70, W = 96, D = 32 };
    (void)state;
    EACH_BACKEND for (long at = 0; at < S; at += 23) {
        struct buffer *x = make("x", S * W, -1, 1), *y = make("y", S * W, -1, 1),
                      *z = make("z", S * W, -1, 1), *w = make("w", S * W, -1, 1);
        struct sums *square = make_sums("square", 1, OF_DOUBLES), *sum = make_sums("sum", 1, OF_DOUBLES);
        const int32_t *target = make_tokens(S, W);
        const struct ops *ops = start(ONE_THREAD);
        real *nan = x->x[ONE_THREAD], *out = y->x[ONE_THREAD], *more = z->x[ONE_THREAD];
        operation = "an operation that is given a NaN", text[0] = 0;
        nan[at * W + 11] = (real)NAN;
        ops->rms_norm(S, W, nan, w->x[ONE_THREAD], 1e-5, out, more);
        synchronize();
        assert_true(isnan(out[at * W]) && isnan(more[at]) && !isnan(out[(at + 1) % S * W]));
        ops->rms_norm_back(S, W, w->x[ONE_THREAD], w->x[ONE_THREAD] + W, w->x[ONE_THREAD], nan, out, more);
        synchronize();
        assert_true(isnan(more[11]) && !isnan(more[12]));
        ops->swiglu(S, W / 2, nan, out);
        synchronize();
        assert_true(isnan(out[at * W / 2 + 11]) && !isnan(out[at * W / 2 + 12]));
        ops->attention(1, S, 1, 1, D, NULL, NULL, nan, out, more); /* a query: this row alone */
        synchronize();
        assert_true(isnan(out[at * D]) && isnan(more[at]) && !isnan(out[(at + 1) % S * D]));
        nan[at * W + D + 5] = (real)NAN; /* a key: all rows from here on */
        ops->attention(1, S, 1, 1, D, NULL, NULL, nan, out, more);
        synchronize();
        assert_true(isnan(out[S * D - 1]) && (at == 0 || !isnan(out[at * D - 1])));
        ops->add_squares(0, S * W, S * W, nan, square->x[ONE_THREAD]);
        ops->add_up(S * W, nan, sum->x[ONE_THREAD]);
        synchronize();
        assert_true(isnan(square->x[ONE_THREAD][0]) && isnan(sum->x[ONE_THREAD][0]));
        memcpy(out, nan, S * W * sizeof(real));
        ops->row_largest(S, W, out, W, more);
        ops->part_exp(S, W, out, W, target, 0, more, 0, w->x[ONE_THREAD]);
        synchronize();
        assert_true(isnan(w->x[ONE_THREAD][at]) && !isnan(w->x[ONE_THREAD][(at + 1) % S]));
        memcpy(more, nan, S * W * sizeof(real));
        ops->softcap(S, W, more, W, 30);
        synchronize();
        assert_true(isnan(more[at * W + 11]) && !isnan(more[at * W + 12]));
        ops->cross_entropy(S, W, nan, W, target, 0, 0, 1, out, NULL);
        synchronize();
        assert_true(isnan(out[at]) && !isnan(out[(at + 1) % S]));
        release();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPERATION_TEST(gemm),          OPERATION_TEST(vectors),     OPERATION_TEST(add_squares),
        OPERATION_TEST(add_hash),      OPERATION_TEST(add_parts),   OPERATION_TEST(rows),
        OPERATION_TEST(cut_tokens),    OPERATION_TEST(longer),      OPERATION_TEST(norm),
        OPERATION_TEST(cross_entropy), OPERATION_TEST(nan_is_seen), OPERATION_TEST(swiglu),
    };
    return cmocka_run_group_tests(tests, describe_backends, NULL);
}
