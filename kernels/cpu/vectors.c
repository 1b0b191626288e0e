/* CPU backend: sums over vectors and rows, and the optimiser's update. Long vectors are cut into pieces of
 * fixed size, which the threads share. */
#include <math.h>
#include <string.h>

#include "kernels/base/bf16.h"
#include "kernels/base/decay.h"
#include "kernels/base/hash.h"
#include "kernels/cpu/cpu.h"

static inline long min(long a, long b) {
    return a < b ? a : b;
}

static void add_to(long n, const real *x, const real *y, real *z) {
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (long first = 0; first < n; first += PIECE) {
        long end = min(n, first + PIECE);
#pragma omp simd
        for (long i = first; i < end; i++) z[i] = x[i] + y[i];
    }
}

static void zero(long n, real *x) {
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (long first = 0; first < n; first += PIECE)
        memset(x + first, 0, (size_t)(min(n, first + PIECE) - first) * sizeof *x);
}

static void copy(long n, const real *x, real *y) {
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (long first = 0; first < n; first += PIECE)
        memcpy(y + first, x + first, (size_t)(min(n, first + PIECE) - first) * sizeof *x);
}

static void round_bf16(long n, real *x) {
#pragma omp parallel for simd schedule(static) if (n > PARALLEL_WORK)
    for (long i = 0; i < n; i++) x[i] = bf16_round(x[i]);
}

static void add(long n, const real *x, real *y) {
    add_to(n, x, y, y);
}

static void scale(long n, const real *c, real *x) {
    const real factor = *c;
#pragma omp parallel for simd schedule(static) if (n > PARALLEL_WORK)
    for (long i = 0; i < n; i++) x[i] *= factor;
}

static void add_signs(long n, double c, const real *x, real *y) {
    const real step = (real)c;
#pragma omp parallel for simd schedule(static) if (n > PARALLEL_WORK)
    for (long i = 0; i < n; i++) y[i] += x[i] > 0 ? step : x[i] < 0 ? -step : 0;
}

/* One pass over memory, by one thread, so that the order is always the same. */
static void add_absolutes(long n, const real *x, double *sum) {
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < n; i++) total += fabs((double)x[i]);
    *sum += total;
}

/* Threads own columns, so each column is summed in the order of its rows. Rows are taken in blocks, summed on
 * the stack, which keeps the rounding error of long sums small. */
static void add_column_sums(long T, long W, const real *x, long ldx, real *sum) {
#pragma omp parallel for schedule(static) if (T * W > PARALLEL_WORK)
    for (long first = 0; first < W; first += COLUMNS) {
        long width = min(W - first, COLUMNS);
        for (long row = 0; row < T; row += ROWS) {
            real part[COLUMNS] = {0};
            for (long t = row; t < min(T, row + ROWS); t++)
#pragma omp simd
                for (long j = 0; j < width; j++) part[j] += x[t * ldx + first + j];
            for (long j = 0; j < width; j++) sum[first + j] += part[j];
        }
    }
}

static void add_scaled_rows(long T, long D, const real *c, const real *x, real *y) {
#pragma omp parallel for schedule(static) if (T * D > PARALLEL_WORK)
    for (long t = 0; t < T; t++)
#pragma omp simd
        for (long j = 0; j < D; j++) y[t * D + j] += c[t] * x[t * D + j];
}

static void dropout(long T, long W, const struct mask *mask, const real *x, long ldx, real *y, long ldy) {
    const real scale = (real)(1 / (1 - mask->p));
    const uint32_t limit = mask_limit(mask->p), column = (uint32_t)mask->column;
#pragma omp parallel for schedule(static) if (T * W > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        const uint64_t key = mask_row(mask->site, mask->head, mask->row + (uint64_t)t);
#pragma omp simd
        for (long j = 0; j < W; j++)
            y[t * ldy + j] = mask_bits(key, column + (uint32_t)j) >= limit ? x[t * ldx + j] * scale : 0;
    }
}

/* Σ x·y of a fixed number of parts, added in order. Where both are the same vector it is read once. */
static inline double sum_of_products(long n, const real *x, const real *y) {
    enum { MAX = 256, SHORT = 4096 };
    double part[MAX];
    int parts = n > SHORT ? MAX : 1;
    long length = (n / parts + PIECE) / PIECE * PIECE;
#pragma omp parallel for schedule(static, 1) if (n > PARALLEL_WORK)
    for (int p = 0; p < parts; p++) {
        double sum = 0;
        long end = min(n, (p + 1) * length);
#pragma omp simd reduction(+ : sum)
        for (long i = p * length; i < end; i++) sum += (double)x[i] * (double)y[i];
        part[p] = sum;
    }
    double total = 0;
    for (int p = 0; p < parts; p++) total += part[p];
    return total;
}

static double sum_of_squares(long n, const real *x) {
    return sum_of_products(n, x, x);
}

static void add_dot(long n, const real *x, const real *y, real *sum) {
    *sum += (real)sum_of_products(n, x, y);
}

static void add_squares(long first, long count, long grain, const real *x, double *square) {
    const long end = first + count, blocks_end = (end + grain - 1) / grain;
#pragma omp parallel for schedule(static) if (count > PARALLEL_WORK && blocks_end - first / grain > 1)
    for (long block = first / grain; block < blocks_end; block++) {
        long from = block * grain > first ? block * grain : first, to = min(end, (block + 1) * grain);
        square[block] += sum_of_squares(to - from, x + from);
    }
}

/* Rows that are long, or many short ones, are what the threads share: a matrix of one column is a row with a
 * stride. */
static void add_hash(const real *x, long rows, long width, long ld, uint64_t index, uint64_t stride,
                     uint64_t *sum) {
    uint64_t total = 0, step = 1;
    if (width == 1 && ld == 1) width = rows, rows = 1, step = stride;
    const long cuts = (width + PIECE - 1) / PIECE;
#pragma omp parallel for schedule(static) reduction(+ : total) if (rows * width > PARALLEL_WORK)
    for (long piece = 0; piece < rows * cuts; piece++) {
        const long r = piece / cuts, first = piece % cuts * PIECE, end = min(width, first + PIECE);
        const uint64_t place = index + (uint64_t)r * stride;
        uint64_t part = 0;
#pragma omp simd reduction(+ : part)
        for (long c = first; c < end; c++) part += hash_element(x[r * ld + c], place + (uint64_t)c * step);
        total += part;
    }
    *sum += total;
}

/* Part by part for a piece of the sum, which stays in the nearest cache, so that the inner loops become vectors. */
static void add_parts(long count, int parts, const real *pieces, real *sum) {
#pragma omp parallel for schedule(static) if (count > PARALLEL_WORK)
    for (long first = 0; first < count; first += PIECE) {
        const long end = min(count, first + PIECE);
        if (sum != pieces) memcpy(sum + first, pieces + first, (size_t)(end - first) * sizeof *sum);
        for (int p = 1; p < parts; p++)
#pragma omp simd
            for (long i = first; i < end; i++) sum[i] += pieces[p * count + i];
    }
}

/* Of a few numbers a token: not worth threads. */
static void max_parts(long count, int parts, const real *pieces, real *greatest) {
    if (greatest != pieces) memcpy(greatest, pieces, (size_t)count * sizeof *greatest);
    for (int p = 1; p < parts; p++)
#pragma omp simd
        for (long i = 0; i < count; i++) {
            const real most = greatest[i], other = pieces[p * count + i];
            greatest[i] = other > most || other != other ? other : most;
        }
}

/* What an update multiplies with; m/c1 and v/c2 become products with numbers that are computed once: √(v/c2)
 * = √v·√(1/c2). */
struct adamw {
    real keep1, take1, keep2, take2, keep, rate, root, min_root;
};

/* `cautious` is known where this is called, so that else no signs are compared. */
static inline __attribute__((always_inline)) void adamw_piece(long n, real *w, const real *g, real *m,
                                                              real *v, struct adamw u, bool cautious) {
#pragma omp simd
    for (long i = 0; i < n; i++) {
        m[i] = u.keep1 * m[i] + u.take1 * g[i];
        v[i] = u.keep2 * v[i] + u.take2 * (g[i] * g[i]);
        real keep = cautious && decay_opposed(m[i], w[i]) ? 1 : u.keep;
        w[i] = keep * w[i] - u.rate * m[i] / (REAL_SQRT(v[i]) * u.root + u.min_root);
    }
}

static void adamw(long n, real *w, const real *g, real *m, real *v, double gscale, double lr, double beta1,
                  double beta2, double eps, double decay, bool cautious, double c1, double c2) {
    const struct adamw u = {
        .keep1 = (real)beta1,
        .take1 = (real)((1 - beta1) * gscale),
        .keep2 = (real)beta2,
        .take2 = (real)((1 - beta2) * gscale * gscale),
        .keep = (real)(1 - lr * decay),
        .rate = (real)(lr / c1),
        .root = (real)sqrt(1 / c2),
        .min_root = (real)eps,
    };
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (long at = 0; at < n; at += PIECE) {
        long count = min(PIECE, n - at);
        if (cautious)
            adamw_piece(count, w + at, g + at, m + at, v + at, u, true);
        else
            adamw_piece(count, w + at, g + at, m + at, v + at, u, false);
    }
}

static void nesterov(long n, real *g, real *m, double gscale, double momentum) {
    const real take = (real)gscale, keep = (real)momentum;
#pragma omp parallel for simd schedule(static) if (n > PARALLEL_WORK)
    for (long i = 0; i < n; i++) {
        const real gradient = take * g[i];
        m[i] = keep * m[i] + gradient;
        g[i] = gradient + keep * m[i];
    }
}

static void unit_norm(long n, const real *x, double eps, real *y) {
    const real factor = (real)(1 / (sqrt(sum_of_squares(n, x)) + eps));
#pragma omp parallel for simd schedule(static) if (n > PARALLEL_WORK)
    for (long i = 0; i < n; i++) y[i] = factor * x[i];
}

static void descend(long n, real *w, const real *x, double rate, double decay, bool cautious) {
    const real keep = (real)(1 - decay), keep_opposed = cautious ? 1 : keep, along = (real)rate;
#pragma omp parallel for simd schedule(static) if (n > PARALLEL_WORK)
    for (long i = 0; i < n; i++)
        w[i] = (decay_opposed(x[i], w[i]) ? keep_opposed : keep) * w[i] - along * x[i];
}

void ISA_NAME(cpu_vectors)(struct ops *ops) {
    ops->zero = zero;
    ops->copy = copy;
    ops->round_bf16 = round_bf16;
    ops->add = add;
    ops->add_to = add_to;
    ops->scale = scale;
    ops->add_dot = add_dot;
    ops->add_signs = add_signs;
    ops->add_absolutes = add_absolutes;
    ops->add_column_sums = add_column_sums;
    ops->add_scaled_rows = add_scaled_rows;
    ops->dropout = dropout;
    ops->add_squares = add_squares;
    ops->add_hash = add_hash;
    ops->add_parts = add_parts;
    ops->max_parts = max_parts;
    ops->adamw = adamw;
    ops->nesterov = nesterov;
    ops->unit_norm = unit_norm;
    ops->descend = descend;
}
