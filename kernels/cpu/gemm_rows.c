/* CPU backend: the matrix product of few rows, of which each has the bits that it would have alone. An
 * element of C = A·Bᵀ is LANES sums, each over every LANES-th product in order, added up by a tree: which
 * other rows and columns there are, in which blocks and on how many threads they are computed, does not enter
 * it. A block's part of B is read once for all of its rows: with few rows that is what takes the time.
 *
 * Compiled a second time, with ROWS_BF16, for B rounded to bf16: half as much to read where B is held,
 * else rounded as it is read, by one row of B after the other. */
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"
#ifdef ROWS_BF16
#include "kernels/base/bf16.h"
#else
void ISA_JOIN(cpu_by_rows, ISA_BF16)(struct ops *ops); /* this file's, compiled so */
#endif

enum {
    FEW = TILE_LANES < 4 ? TILE_LANES : 4, /* most rows of a block, whose sums are LANES vectors */
    PARALLEL_PRODUCTS = 1 << 19, /* multiplications worth waking the other threads for, as in gemm.c */
};

#ifndef __clang__ /* which has no __builtin_shuffle */
/* Which numbers of two vectors a and b step s puts beside each other: of a (low) and b (high) those whose
 * numbers have the bit s or not. Tables, since constants in registers are made anew for each use. */
#define LOW(l, s) ((l) & (s) ? TILE_LANES + (l) - (s) : (l))
#define HIGH(l, s) ((l) & (s) ? TILE_LANES + (l) : (l) + (s))
#define EACH(of, s)                                                                                          \
    {                                                                                                        \
        of(0, s), of(1, s), of(2, s), of(3, s), of(4, s), of(5, s), of(6, s), of(7, s), of(8, s), of(9, s),  \
            of(10, s), of(11, s), of(12, s), of(13, s), of(14, s), of(15, s)                                 \
    }
#ifdef GDN_DOUBLE
typedef int64_t number;
#else
typedef int32_t number;
#endif
static const number low_of[][16] = {EACH(LOW, 1), EACH(LOW, 2), EACH(LOW, 4), EACH(LOW, 8)};
static const number high_of[][16] = {EACH(HIGH, 1), EACH(HIGH, 2), EACH(HIGH, 4), EACH(HIGH, 8)};
#endif

/* Sums of lanes (l, l + step) of a, then of b, in turn. */
TILE_INLINE tile_vector add_pairs(int round, tile_vector a, tile_vector b) {
#ifdef __clang__
    const int step = 1 << round;
    tile_vector sum;
    for (int l = 0; l < TILE_LANES; l++) sum[l] = l & step ? b[l - step] + b[l] : a[l] + a[l + step];
    return sum;
#else
    tile_index low, high;
    memcpy(&low, low_of[round], sizeof low);
    memcpy(&high, high_of[round], sizeof high);
    return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
#endif
}

/* Of each vector the sum of its lanes, (l, l + 1) first, then pairs of these, and so on. */
TILE_INLINE tile_vector sum_lanes(tile_vector v[TILE_LANES]) {
#pragma GCC unroll 4
    for (int round = 0; 1 << round < TILE_LANES; round++)
#pragma GCC unroll 16
        for (int i = 0; i < TILE_LANES; i += 2 << round) v[i] = add_pairs(round, v[i], v[i + (1 << round)]);
    return v[0];
}

/* Rows of B: as they are, and the form in which blocks read them, of which there may be none (NULL). */
#ifdef ROWS_BF16
typedef uint16_t code;
#else
typedef real code;
#endif
struct rows_of_b {
    const real *at;
    const code *code;
};

TILE_INLINE struct rows_of_b rows_from(struct rows_of_b b, long element) {
    return (struct rows_of_b){b.at + element, b.code ? b.code + element : NULL};
}

#ifdef ROWS_BF16
enum { LINE = 32 /* codes: what memory hands over at a time */ };
typedef code codes __attribute__((vector_size(TILE_LANES * 2), aligned(2), may_alias));
typedef uint32_t bits __attribute__((vector_size(TILE_LANES * 4)));
typedef float floats __attribute__((vector_size(TILE_LANES * 4)));

TILE_INLINE tile_vector vector_at(const code *x) {
    const bits wide = __builtin_convertvector(*(const codes *)x, bits) << 16;
    return __builtin_convertvector((floats)wide, tile_vector);
}

TILE_INLINE real number_of(struct rows_of_b b, long p) {
    return b.code ? from_bf16(b.code[p]) : bf16_round(b.at[p]);
}

TILE_INLINE tile_vector vector_of(struct rows_of_b b, long p) {
    if (b.code) return vector_at(b.code + p);
    real rounded[TILE_LANES];
    for (int l = 0; l < TILE_LANES; l++) rounded[l] = bf16_round(b.at[p + l]);
    return *(const tile_vector *)rounded;
}

/* The same numbers of the next rows. Rows in bf16 are so short that the processor does not see in time what
 * comes next: a product took as long as in fp32. */
TILE_INLINE void ask_for(int rows, const code *next, long ldb, long p) {
    if (p % LINE == 0)
        for (int j = 0; j < rows; j++) __builtin_prefetch(next + j * ldb + p, 0, 1);
}
#else
TILE_INLINE tile_vector vector_at(const code *x) {
    return *(const tile_vector *)x;
}

TILE_INLINE real number_of(struct rows_of_b b, long p) {
    return b.code[p];
}

TILE_INLINE tile_vector vector_of(struct rows_of_b b, long p) {
    return vector_at(b.code + p);
}

TILE_INLINE void ask_for(int rows, const code *next, long ldb, long p) {
    (void)rows, (void)next, (void)ldb, (void)p; /* it sees */
}
#endif

/* A·Bᵀ of `rows` rows of A and LANES / rows of B: sums [rows, LANES / rows]. Called with a constant for rows;
 * k is a multiple of LANES. */
TILE_INLINE tile_vector block_sums(int rows, long k, const real *a, long lda, const code *b, long ldb) {
    const int wide = TILE_LANES / rows;
    tile_vector sum[TILE_LANES];
#pragma GCC unroll 16
    for (int i = 0; i < TILE_LANES; i++) sum[i] = (tile_vector){0};
    for (long p = 0; p < k; p += TILE_LANES) {
        tile_vector left[FEW];
        ask_for(wide, b + wide * ldb, ldb, p);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) left[i] = *(const tile_vector *)(a + i * lda + p);
#pragma GCC unroll 16
        for (int j = 0; j < wide; j++) {
            const tile_vector right = vector_at(b + j * ldb + p);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) sum[i * wide + j] += left[i] * right;
        }
    }
    return sum_lanes(sum);
}

/* One of each; any k. The last k % LANES numbers, and then zeros, are vectors too. */
static real single_sum(long k, const real *a, struct rows_of_b b) {
    const long whole = k / TILE_LANES * TILE_LANES;
    tile_vector sum = {0};
    for (long p = 0; p < whole; p += TILE_LANES) sum += *(const tile_vector *)(a + p) * vector_of(b, p);
    if (k > whole) {
        real left[TILE_LANES] = {0}, right[TILE_LANES] = {0};
        for (long p = whole; p < k; p++) left[p - whole] = a[p], right[p - whole] = number_of(b, p);
        sum += *(const tile_vector *)left * *(const tile_vector *)right;
    }
#pragma GCC unroll 4
    for (int round = 0; 1 << round < TILE_LANES; round++) sum = add_pairs(round, sum, sum);
    return sum[0];
}

/* Not inlined: which of these products is rounded before the sum is the compiler's choice, and is to be one
 * choice. */
__attribute__((noinline)) static real combine(real alpha, real sum, real beta, real c) {
    return alpha * sum + beta * c;
}

/* c = alpha·sum + beta·c of some columns. */
static void put(long columns, real alpha, const real *sum, real beta, real *c) {
    for (long j = 0; j < columns; j++)
        if (beta == 0)
            c[j] = alpha * sum[j];
        else if (beta == 1 && alpha == 1)
            c[j] += sum[j];
        else
            c[j] = combine(alpha, sum[j], beta, c[j]);
}

struct product {
    long m, n, k;
    real alpha, beta;
    const real *a;
    struct rows_of_b b;
    long lda, ldb;
    real *c;
    long ldc;
};

TILE_INLINE void block(int rows, const struct product *x, long i, long j) {
    const int wide = TILE_LANES / rows;
    const tile_vector sums =
        block_sums(rows, x->k, x->a + i * x->lda, x->lda, x->b.code + j * x->ldb, x->ldb);
    const real *sum = (const real *)&sums;
    for (int r = 0; r < rows; r++)
        if (x->alpha == 1 && x->beta == 0)
            memcpy(x->c + (i + r) * x->ldc + j, sum + r * wide, (size_t)wide * sizeof *sum);
        else
            put(wide, x->alpha, sum + r * wide, x->beta, x->c + (i + r) * x->ldc + j);
}

/* LANES columns of all rows, so that their part of B stays near from some rows to the next. */
static void full_columns(const struct product *x, long at) {
    long i = 0;
    for (; i + FEW <= x->m; i += FEW)
        for (long j = at; j < at + TILE_LANES; j += TILE_LANES / FEW) block(FEW, x, i, j);
    for (; FEW > 2 && i + 2 <= x->m; i += 2)
        for (long j = at; j < at + TILE_LANES; j += TILE_LANES / 2) block(2, x, i, j);
    for (; i < x->m; i++) block(1, x, i, at);
}

/* Others: the last ones, or all where k is no multiple of LANES. */
static void single_column(const struct product *x, long j) {
    for (long i = 0; i < x->m; i++) {
        const real sum = single_sum(x->k, x->a + i * x->lda, rows_from(x->b, j * x->ldb));
        put(1, x->alpha, &sum, x->beta, x->c + i * x->ldc + j);
    }
}

/* C of any transposes by its definition, each sum in order of k. */
static void plain(char ta, char tb, const struct product *x) {
    for (long i = 0; i < x->m; i++)
        for (long j = 0; j < x->n; j++) {
            real sum = 0;
            for (long p = 0; p < x->k; p++)
                sum += x->a[ta == 'N' ? i * x->lda + p : p * x->lda + i] *
                       number_of(x->b, tb == 'N' ? p * x->ldb + j : j * x->ldb + p);
            put(1, x->alpha, &sum, x->beta, x->c + i * x->ldc + j);
        }
}

static void multiply(char ta, char tb, const struct product *x) {
    const long k = x->k, n = x->n;
    if (ta == 'T' || tb == 'N') {
        plain(ta, tb, x);
        return;
    }
    const long full = k % TILE_LANES || !x->b.code ? 0 : n / TILE_LANES * TILE_LANES;
#pragma omp parallel if (x->m * n * k > PARALLEL_PRODUCTS)
    {
#pragma omp for schedule(static) nowait
        for (long at = 0; at < full; at += TILE_LANES) full_columns(x, at);
#pragma omp for schedule(static)
        for (long j = full; j < n; j++) single_column(x, j);
    }
}

#ifdef ROWS_BF16
static struct ops fp32;

/* What is held of one buffer of weights at a time (ops.h, hold). */
static struct {
    const real *weights;
    long count; /* 0: nothing */
    const code *copy;
} held;

static void hold(const real *weights, long count, void *copy) {
    fp32.to_bf16(count, weights, copy);
    held.weights = weights, held.count = count, held.copy = copy;
}

static void release(void) {
    held.count = 0;
}

static const code *copy_of(const real *x) {
    const bool is_held = held.count > 0 && x >= held.weights && x < held.weights + held.count;
    return is_held ? held.copy + (x - held.weights) : NULL;
}

static void gemm_rows(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                      const real *b, long ldb, real beta, real *c, long ldc) {
    const struct product x = {m, n, k, alpha, beta, a, {b, copy_of(b)}, lda, ldb, c, ldc};
    if (tb == 'T' && bf16_pays_rows(k))
        multiply(ta, tb, &x);
    else
        fp32.gemm_rows(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
#else
static void gemm_rows(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                      const real *b, long ldb, real beta, real *c, long ldc) {
    const struct product x = {m, n, k, alpha, beta, a, {b, b}, lda, ldb, c, ldc};
    if (tb == 'N' && alpha == 1 &&
        (beta == 0 || beta == 1)) /* elements of C are sums in order of k there, too */
        tile_product(m, n, k, a, ta == 'N' ? lda : 1, ta == 'N' ? 1 : lda, b, ldb, beta == 1, c, ldc);
    else
        multiply(ta, tb, &x);
}
#endif

static void linear_rows(int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                        long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    (void)weight_id; /* nothing is scaled */
    gemm_rows(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void ISA_NAME(cpu_gemm_rows)(struct ops *ops) {
#ifdef ROWS_BF16
    fp32 = *ops;
#endif
    ops->gemm_rows = gemm_rows;
}

void ISA_NAME(cpu_by_rows)(struct ops *ops) {
#ifdef ROWS_BF16
    ops->hold = hold;
    ops->release = release;
#else
    if (ops->precision == PRECISION_BF16) {
        ISA_JOIN(cpu_by_rows, ISA_BF16)(ops);
        return;
    }
#endif
    ops->gemm = gemm_rows;
    ops->linear = linear_rows;
}
