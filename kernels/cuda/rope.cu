/* CUDA backend: rotary embedding, four pairs of elements a thread. */
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

/* A row's columns, as tiles see them, are its heads' pairs, each head's rounded up to whole quads. */
static __global__ void rope_kernel(long T, long S, long position, const int32_t *start, long heads, long half,
                                   const real *cosine, const real *sine, real sign, real *x, long ldx,
                                   bool aligned) {
    long quads = (half + 3) / 4, at = tile_column() / 4, head = at / quads, j = at % quads * 4;
    if (head >= heads) return;
    EACH_TILE_ROW(t, T) {
        long row = (position + t % S - (start ? start[t] : 0)) * half + j;
        quad c = load_quad(cosine + row, half - j, aligned), s = load_quad(sine + row, half - j, aligned);
        real *low = x + t * ldx + head * 2 * half + j, *high = low + half;
        quad a = load_quad(low, half - j, aligned), b = load_quad(high, half - j, aligned);
        for (int i = 0; i < 4; i++) {
            real turn = sign * s.v[i], was = a.v[i];
            a.v[i] = was * c.v[i] - b.v[i] * turn;
            b.v[i] = b.v[i] * c.v[i] + was * turn;
        }
        store_quad(low, half - j, aligned, a);
        store_quad(high, half - j, aligned, b);
    }
}

static void rope(long T, long S, long position, const int32_t *start, long heads, long hd, const real *cosine,
                 const real *sine, int direction, real *x, long ldx) {
    long half = hd / 2, W = heads * ceil_div(half, 4) * 4;
    bool aligned = on_quads(x, ldx) && on_quads(cosine, half) && on_quads(sine, half);
    LAUNCH(rope_kernel, tile_grid(T, W), tile_block(W), 0, T, S, position, start, heads, half, cosine, sine,
           (real)direction, x, ldx, aligned);
}

extern "C" void cuda_rope(struct ops *ops) {
    ops->rope = rope;
}
