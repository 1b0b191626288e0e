/* CUDA backend: sums of rows of several sources, each with a weight a token or one for all tokens. */
#include "kernels/cuda/host_list.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

/* 4·(n + 2)·D bytes a token. */
static __global__ void add_kernel(long T, long D, long n, const real *weight, long lda, long step,
                                  host_list<const real> source, real *y, bool aligned) {
    long at = tile_column(), left = D - at;
    if (at >= D) return;
    EACH_TILE_ROW(t, T) {
        quad sum = load_quad(y + t * D + at, left, aligned);
        for (long i = 0; i < n; i++) {
            quad from = load_quad(source.of[i] + t * D + at, left, aligned);
            real w = weight[t * lda + i * step];
            for (int j = 0; j < 4; j++) sum.v[j] += w * from.v[j];
        }
        store_quad(y + t * D + at, left, aligned, sum);
    }
}

static void add_sources(long T, long D, long n, const real *weight, long lda, long step, const real *const *x,
                        real *y) {
    host_list<const real> source = take_list(n, x);
    bool aligned = on_quads(y, D) && list_on_quads(n, source, D);
    LAUNCH(add_kernel, tile_grid(T, D), tile_block(D), 0, T, D, n, weight, lda, step, source, y, aligned);
}

/* 16·D bytes a token, of which a team has the row. */
static __global__ void back_kernel(long T, long D, const real *weight, long lda, const real *x,
                                   const real *dy, real *dx, real *dweight, long n, bool aligned) {
    EACH_TEAM_ROW(t, T) {
        real sum = 0, w = weight[t * lda];
        EACH_TEAM_QUAD(at, D) {
            long left = D - at, place = t * D + at;
            quad from = load_quad(x + place, left, aligned), d = load_quad(dy + place, left, aligned), to;
            for (int j = 0; j < 4; j++) sum += d.v[j] * from.v[j];
            if (!dx) continue;
            to = load_quad(dx + place, left, aligned);
            for (int j = 0; j < 4; j++) to.v[j] += w * d.v[j];
            store_quad(dx + place, left, aligned, to);
        }
        sum = team_sum(sum);
        if (threadIdx.x == 0) dweight[t * n] = sum;
    }
}

static void source_back(long T, long D, const real *weight, long lda, const real *x, const real *dy, real *dx,
                        real *dweight, long n) {
    bool aligned = on_quads(x, D) && on_quads(dy, D) && (!dx || on_quads(dx, D));
    LAUNCH(back_kernel, team_grid(T, D), team_block(D), 0, T, D, weight, lda, x, dy, dx, dweight, n, aligned);
}

extern "C" void cuda_sources(struct ops *ops) {
    ops->add_sources = add_sources;
    ops->source_back = source_back;
}
