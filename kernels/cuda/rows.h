/* Who works on which row: tiles, where elements do not know of each other, and teams, where a row is summed.
 * Both depend on shapes alone. */
#ifndef GDN_CUDA_ROWS_H
#define GDN_CUDA_ROWS_H

#include "kernels/cuda/quad.h"

static inline long least(long a, long b) {
    return a < b ? a : b;
}

/* ------------------------------------------------------------------------------------------------- tiles
 * LAUNCH(kernel, tile_grid(T, W), tile_block(W), 0, …): a thread has the columns tile_column() to + 3, if
 * that is below W, of each row t of EACH_TILE_ROW(t, T). */
enum { TILE = 256, TILE_ROWS = 4096 /* more blocks than any GPU holds at once */ };

static inline dim3 tile_block(long W) {
    unsigned columns = 1;
    while (columns < TILE && 4 * columns < W) columns *= 2;
    return dim3(columns, TILE / columns);
}

static inline dim3 tile_grid(long T, long W) {
    dim3 block = tile_block(W);
    return dim3((unsigned)ceil_div(W, 4 * block.x), (unsigned)least(ceil_div(T, block.y), TILE_ROWS));
}

static __device__ inline long tile_column(void) {
    return 4 * ((long)blockIdx.x * blockDim.x + threadIdx.x);
}

#define EACH_TILE_ROW(t, T)                                                                                  \
    for (long t = (long)blockIdx.y * blockDim.y + threadIdx.y; t < (T); t += (long)gridDim.y * blockDim.y)

/* ------------------------------------------------------------------------------------------------- teams
 * LAUNCH(kernel, team_grid(T, W), team_block(W), 0, …): the threads of a team have a row t of
 * EACH_TEAM_ROW(t, T) together: a warp has a narrow row, a block any other. A thread's quads are those at
 * team_quad(0), team_quad(1), … A kernel keeps the first KEPT of them in registers from one pass over the row
 * to the next, which is all of a row up to MAX_TEAM · 4 · KEPT = 8192 columns, and reads what is left of a
 * wider one again. */
enum { KEPT = 4, NARROW = 4 * KEPT * WARP, NARROW_ROWS = 8, MAX_TEAM = 512 };

static inline dim3 team_block(long W) {
    if (W <= NARROW) return dim3(WARP, NARROW_ROWS);
    return dim3(W <= MAX_TEAM / 2 * 4 * KEPT ? MAX_TEAM / 2 : MAX_TEAM);
}

static inline unsigned team_grid(long T, long W) {
    return (unsigned)least(ceil_div(T, team_block(W).y), 1 << 20);
}

#define EACH_TEAM_ROW(t, T)                                                                                  \
    for (long t = (long)blockIdx.x * blockDim.y + threadIdx.y; t < (T); t += (long)gridDim.x * blockDim.y)

static __device__ inline long team_quad(int k) {
    return 4 * ((long)k * blockDim.x + threadIdx.x);
}

#define EACH_KEPT(k) for (int k = 0; k < KEPT; k++)
#define EACH_OTHER(at, W) for (long at = team_quad(KEPT); at < (W); at += 4 * (long)blockDim.x)

/* One pass over a row. */
#define EACH_TEAM_QUAD(at, W) for (long at = team_quad(0); at < (W); at += 4 * (long)blockDim.x)

/* The sum or the largest of all the team's values, for each of its threads; what one wrote before, all see
 * after. */
static __device__ inline real team_sum(real x) {
    return blockDim.x == WARP ? warp_sum(x) : block_sum(x);
}

static __device__ inline real team_max(real x) {
    return blockDim.x == WARP ? warp_max(x) : block_max(x);
}

/* sum [W] += Σ_t x[t] of up to some hundred rows; sums.cu. Uses no workspace. */
void add_few_rows(long T, long W, const real *x, long ldx, real *sum);

#endif
