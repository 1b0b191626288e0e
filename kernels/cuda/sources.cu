/* CUDA backend: weighted sums of rows of several sources, some of the same sources at once, and their
 * backward pass. How many sums there are is a constant, so that they lie in registers. */
#include "kernels/cuda/host_list.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

typedef host_list<const real, OPS_SUMS> read_list;
typedef host_list<real, OPS_SUMS> written_list;

/* 4·(n + 2·sums)·D bytes a token. */
template <int sums>
static __global__ void add_kernel(long T, long D, long n, read_list weight, long lda,
                                  host_list<const real> source, read_list base, written_list y,
                                  bool aligned) {
    long at = tile_column(), left = D - at;
    if (at >= D) return;
    EACH_TILE_ROW(t, T) {
        long place = t * D + at;
        quad sum[sums];
        for (int c = 0; c < sums; c++) sum[c] = load_quad(base.of[c] + place, left, aligned);
        for (long i = 0; i < n; i++) {
            quad from = load_quad(source.of[i] + place, left, aligned);
            for (int c = 0; c < sums; c++) {
                real w = weight.of[c][t * lda + i];
                for (int j = 0; j < 4; j++) sum[c].v[j] += w * from.v[j];
            }
        }
        for (int c = 0; c < sums; c++) store_quad(y.of[c] + place, left, aligned, sum[c]);
    }
}

/* The kernel of so many sums. */
#define OF_SUMS(kernel, sums)                                                                                \
    ((sums) == 1 ? kernel<1> : (sums) == 2 ? kernel<2> : (sums) == 3 ? kernel<3> : kernel<OPS_SUMS>)

static void add_sources(long T, long D, long n, long sums, const real *const *weight, long lda,
                        const real *const *x, const real *const *base, real *const *y) {
    host_list<const real> source = take_list(n, x);
    read_list from = take_list<OPS_SUMS>(sums, base);
    written_list to = take_list<OPS_SUMS>(sums, y);
    bool aligned = list_on_quads(n, source, D) && list_on_quads(sums, from, D) && list_on_quads(sums, to, D);
    LAUNCH(OF_SUMS(add_kernel, sums), tile_grid(T, D), tile_block(D), 0, T, D, n,
           take_list<OPS_SUMS>(sums, weight), lda, source, from, to, aligned);
}

/* 12·n·D bytes a token, and 4·sums·D, whose row stays in the nearest cache; a team has the row. Without `to`
 * nothing is left at sources. */
template <int sums>
static __global__ void back_kernel(long T, long D, long n, read_list weight, long lda,
                                   host_list<const real> source, read_list dy, host_list<real> to,
                                   written_list dweight, long ldd, bool aligned) {
    EACH_TEAM_ROW(t, T) for (long i = 0; i < n; i++) {
        real w[sums], product[sums] = {};
        const real *x = source.of[i];
        real *dx = to.of[i];
        for (int c = 0; c < sums; c++) w[c] = weight.of[c][t * lda + i];
        EACH_TEAM_QUAD(at, D) {
            long left = D - at, place = t * D + at;
            quad from = load_quad(x + place, left, aligned), sum = {};
            if (dx) sum = load_quad(dx + place, left, aligned);
            for (int c = 0; c < sums; c++) {
                quad d = load_quad(dy.of[c] + place, left, aligned);
                for (int j = 0; j < 4; j++) product[c] += d.v[j] * from.v[j], sum.v[j] += w[c] * d.v[j];
            }
            if (dx) store_quad(dx + place, left, aligned, sum);
        }
        for (int c = 0; c < sums; c++) {
            real all = team_sum(product[c]);
            if (threadIdx.x == 0) dweight.of[c][t * ldd + i] = all;
        }
    }
}

static void sources_back(long T, long D, long n, long sums, const real *const *weight, long lda,
                         const real *const *x, const real *const *dy, real *const *dx, real *const *dweight,
                         long ldd) {
    host_list<const real> source = take_list(n, x);
    host_list<real> to = take_list(dx ? n : 0, dx);
    read_list d = take_list<OPS_SUMS>(sums, dy);
    bool aligned =
        list_on_quads(n, source, D) && list_on_quads(sums, d, D) && list_on_quads(dx ? n : 0, to, D);
    LAUNCH(OF_SUMS(back_kernel, sums), team_grid(T, D), team_block(D), 0, T, D, n,
           take_list<OPS_SUMS>(sums, weight), lda, source, d, to, take_list<OPS_SUMS>(sums, dweight), ldd,
           aligned);
}

extern "C" void cuda_sources(struct ops *ops) {
    ops->add_sources = add_sources;
    ops->sources_back = sources_back;
}
