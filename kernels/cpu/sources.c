/* CPU backend: weighted sums of many sources, and their backward pass. A token's rows stay in the nearest
 * cache while all sums are made of them, so that each source comes from memory once for all, and sums stay in
 * registers. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"

/* Vectors of each sum that are under way: with OPS_SUMS sums half of the registers. */
enum { VECTORS = ISA_VECTOR_BYTES == 64 ? 4 : 2 };

/* What both passes take. */
struct sources {
    long D, n, lda;
    const real *const *weight, *const *x;
};

TILE_INLINE tile_vector load(const real *at) {
    return *(const tile_vector *)at;
}

TILE_INLINE void store(real *at, tile_vector v) {
    *(tile_vector *)at = v;
}

TILE_INLINE real weight_of(const struct sources *s, int sum, long t, long i) {
    return s->weight[sum][t * s->lda + i];
}

/* Columns of token t's row, from element `at` of all rows on. Called with constants for sums and vectors. */
TILE_INLINE void add_block(const struct sources *s, int sums, int vectors, long t, long at,
                           const real *const *base, real *const *y) {
    tile_vector sum[OPS_SUMS][VECTORS];
    for (int v = 0; v < vectors; v++)
        for (int c = 0; c < sums; c++) sum[c][v] = load(base[c] + at + v * TILE_LANES);
    for (long i = 0; i < s->n; i++)
        for (int c = 0; c < sums; c++)
            for (int v = 0; v < vectors; v++)
                sum[c][v] += weight_of(s, c, t, i) * load(s->x[i] + at + v * TILE_LANES);
    for (int v = 0; v < vectors; v++)
        for (int c = 0; c < sums; c++) store(y[c] + at + v * TILE_LANES, sum[c][v]);
}

static void add_element(const struct sources *s, long sums, long t, long at, const real *const *base,
                        real *const *y) {
    for (int c = 0; c < sums; c++) {
        real sum = base[c][at];
        for (long i = 0; i < s->n; i++) sum += weight_of(s, c, t, i) * s->x[i][at];
        y[c][at] = sum;
    }
}

/* The call with a constant for the number of sums, its first argument. */
#define OF_SUMS(sums, call, ...)                                                                             \
    ((sums) == 1   ? call(1, __VA_ARGS__)                                                                    \
     : (sums) == 2 ? call(2, __VA_ARGS__)                                                                    \
     : (sums) == 3 ? call(3, __VA_ARGS__)                                                                    \
                   : call(OPS_SUMS, __VA_ARGS__))

TILE_INLINE void add_row(int sums, const struct sources *s, long t, const real *const *base, real *const *y) {
    long at = t * s->D, end = at + s->D;
    for (; at + VECTORS * TILE_LANES <= end; at += VECTORS * TILE_LANES)
        add_block(s, sums, VECTORS, t, at, base, y);
    for (; at + TILE_LANES <= end; at += TILE_LANES) add_block(s, sums, 1, t, at, base, y);
    for (; at < end; at++) add_element(s, sums, t, at, base, y);
}

static void add_sources(long T, long D, long n, long sums, const real *const *weight, long lda,
                        const real *const *x, const real *const *base, real *const *y) {
    const struct sources s = {D, n, lda, weight, x};
#pragma omp parallel for schedule(static) if (T * D * sums > PARALLEL_WORK)
    for (long t = 0; t < T; t++) OF_SUMS(sums, add_row, &s, t, base, y);
}

TILE_INLINE real sum_of_lanes(tile_vector v) {
    real lane[TILE_LANES], sum = 0;
    store(lane, v);
#pragma omp simd reduction(+ : sum)
    for (int l = 0; l < TILE_LANES; l++) sum += lane[l];
    return sum;
}

/* Of token t and source i. dx may be NULL, and is so or not in a whole call. */
TILE_INLINE void row_back(int sums, const struct sources *s, long t, long i, const real *const *dy, real *dx,
                          real *const *dweight, long ldd) {
    const real *x = s->x[i];
    tile_vector product[OPS_SUMS], w[OPS_SUMS];
    real rest[OPS_SUMS] = {0};
    long at = t * s->D, end = at + s->D;
    for (int c = 0; c < sums; c++)
        product[c] = (tile_vector){0}, w[c] = (tile_vector){0} + weight_of(s, c, t, i);
    for (; at + TILE_LANES <= end; at += TILE_LANES) {
        tile_vector from = load(x + at), to = {0};
        if (dx) to = load(dx + at);
        for (int c = 0; c < sums; c++) {
            tile_vector d = load(dy[c] + at);
            product[c] += d * from;
            to += w[c] * d;
        }
        if (dx) store(dx + at, to);
    }
    for (; at < end; at++)
        for (int c = 0; c < sums; c++) {
            rest[c] += dy[c][at] * x[at];
            if (dx) dx[at] += weight_of(s, c, t, i) * dy[c][at];
        }
    for (int c = 0; c < sums; c++) dweight[c][t * ldd + i] = sum_of_lanes(product[c]) + rest[c];
}

static void sources_back(long T, long D, long n, long sums, const real *const *weight, long lda,
                         const real *const *x, const real *const *dy, real *const *dx, real *const *dweight,
                         long ldd) {
    const struct sources s = {D, n, lda, weight, x};
#pragma omp parallel for schedule(static) if (T * D * sums > PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++) OF_SUMS(sums, row_back, &s, t, i, dy, dx ? dx[i] : NULL, dweight, ldd);
}

void ISA_NAME(cpu_sources)(struct ops *ops) {
    ops->add_sources = add_sources;
    ops->sources_back = sources_back;
}
