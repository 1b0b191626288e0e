/* CUDA operations gated_delta and gated_delta_back: contributions that gate the delta itself (kinds `full`
 * and `adaptive`). Difference, row factor, distance scale, gate and weight meet in one pass over memory
 * forward and one backward. */
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

/* A contribution c = factor·(t − s)⊙gate, factor = scale·r, by tokens. */
struct contribution {
    long T, D, G; /* G gates of D/G columns each */
    const real *t, *s, *gate;
    long ldg;
    const real *r, *weight;
    real scale;
    long ldw;
    bool aligned;
};

static struct contribution contribution(long T, long D, long G, const real *t, const real *s,
                                        const real *gate, long ldg, const real *r, double scale,
                                        const real *weight, long ldw) {
    bool aligned = on_quads(t, D) && on_quads(s, D) && (G < D ? D / G % 4 == 0 : on_quads(gate, ldg));
    return {T, D, G, t, s, gate, ldg, r, weight, (real)scale, ldw, aligned};
}

static __device__ inline real factor_of(const struct contribution &c, long row) {
    return c.scale * (c.r ? c.r[row] : 1);
}

static __device__ inline real weight_of(const struct contribution &c, long row) {
    return c.weight ? c.weight[row * c.ldw] : 1;
}

/* The gates of four columns of a row. */
static __device__ inline quad gates_of(const struct contribution &c, const real *gate, long at) {
    if (c.G == c.D) return load_quad(gate + at, c.D - at, c.aligned);
    unsigned group = (unsigned)(c.D / c.G), first = (unsigned)at / group;
    quad q;
    for (unsigned i = 0; i < 4;
         i++) /* those of columns that do not exist are never used, but must be read there */
        q.v[i] = gate[c.aligned ? first : at + i < c.D ? (unsigned)(at + i) / group : first];
    return q;
}

/* 12 bytes an element, 4 more where it adds and 4 more for a gate a column (G = D). */
static __global__ void __launch_bounds__(MAX_TEAM)
    gated_kernel(struct contribution c, bool add, real *__restrict__ out, long ldo, real *__restrict__ rms) {
    EACH_TEAM_ROW(row, c.T) {
        const real *t = c.t + row * c.D, *s = c.s + row * c.D, *gate = c.gate + row * c.ldg;
        real factor = factor_of(c, row), weight = weight_of(c, row), squares = 0, *to = out + row * ldo;
        EACH_TEAM_QUAD(at, c.D) {
            long left = c.D - at;
            quad a = load_quad(t + at, left, c.aligned), b = load_quad(s + at, left, c.aligned), sum = {};
            quad g = gates_of(c, gate, at);
            if (add) sum = load_quad(to + at, left, c.aligned);
            for (int i = 0; i < 4; i++) {
                real x = factor * (a.v[i] - b.v[i]) * g.v[i];
                sum.v[i] += weight * x;
                squares += x * x;
            }
            store_quad(to + at, left, c.aligned, sum);
        }
        if (!rms) continue;
        squares = team_sum(squares);
        if (threadIdx.x == 0) rms[row] = (real)sqrt((double)squares / (double)c.D + 1e-12);
    }
}

static void gated_delta(long T, long D, long G, const real *t, const real *s, const real *gate, long ldg,
                        const real *r, double scale, const real *weight, long ldw, bool add, real *out,
                        long ldo, real *rms) {
    struct contribution c = contribution(T, D, G, t, s, gate, ldg, r, scale, weight, ldw);
    c.aligned = c.aligned && on_quads(out, ldo);
    LAUNCH(gated_kernel, team_grid(T, D), team_block(D), 0, c, add, out, ldo, rms);
}

/* What the backward pass reads and writes beside c. */
struct contribution_back {
    const real *dout;
    long ldo;
    const real *rms;
    double sparsity;
    real *dweight;
    long n;
    real *dgate, *dd, *dr;
};

/* What is constant along a row of it, and sums over the row. */
struct row_back {
    real factor, weight;
    real k; /* sparsity/(D·rms): the gradient of sparsity is k·c */
    real dweight, dr;
};

/* Four columns from `at`, of which `left` exist: with dc = weight·dout + k·c, dd = factor·dc⊙gate; returns
 * factor·dc⊙δ, the gates' gradients. */
static __device__ inline quad quad_back(const struct contribution &c, const struct contribution_back &b,
                                        struct row_back *r, long row, long at, long left, const quad &gate) {
    quad t = load_quad(c.t + row * c.D + at, left, c.aligned),
         s = load_quad(c.s + row * c.D + at, left, c.aligned);
    quad dout = load_quad(b.dout + row * b.ldo + at, left, c.aligned), dd, dgate;
    for (int i = 0; i < 4; i++) {
        real delta = t.v[i] - s.v[i], gated = delta * gate.v[i], x = r->factor * gated;
        real dc = r->weight * dout.v[i] + r->k * x;
        r->dweight += dout.v[i] * x;
        r->dr += dc * gated;
        dd.v[i] = r->factor * dc * gate.v[i];
        dgate.v[i] = r->factor * dc * delta;
    }
    store_quad(b.dd + row * c.D + at, left, c.aligned, dd);
    return dgate;
}

/* The sum over `lanes` neighbouring threads, a power of two up to a warp. */
static __device__ inline real lanes_sum(real x, int lanes) {
    for (int flip = lanes / 2; flip > 0; flip /= 2) x += __shfl_xor_sync(0xffffffffu, x, flip);
    return x;
}

/* A row whose gates have a column each. */
static __device__ inline void columns_back(const struct contribution &c, const struct contribution_back &b,
                                           struct row_back *r, long row) {
    EACH_TEAM_QUAD(at, c.D) {
        quad gate = load_quad(c.gate + row * c.ldg + at, c.D - at, c.aligned);
        quad dgate = quad_back(c, b, r, row, at, c.D - at, gate);
        store_quad(b.dgate + row * c.G + at, c.D - at, c.aligned, dgate);
    }
}

/* A row of groups of columns, `lanes` threads a group: as the gradient of its gate is a sum over it. */
static __device__ inline void groups_back(const struct contribution &c, const struct contribution_back &b,
                                          struct row_back *r, long row, int lanes) {
    long width = c.D / c.G, lane = threadIdx.x % lanes;
    for (long first = 0; first < c.G; first += blockDim.x / lanes) {
        long group = first + threadIdx.x / lanes, end = group < c.G ? (group + 1) * width : 0;
        real value = group < c.G ? c.gate[row * c.ldg + group] : 0, sum = 0;
        for (long at = group * width + 4 * lane; at < end; at += 4 * lanes) {
            quad dgate = quad_back(c, b, r, row, at, end - at, {value, value, value, value});
            for (int i = 0; i < 4; i++) sum += dgate.v[i];
        }
        sum = lanes_sum(sum, lanes);
        if (group < c.G && lane == 0) b.dgate[row * c.G + group] = sum;
    }
}

/* 16 bytes an element; a gate a column 8 more. */
static __global__ void __launch_bounds__(MAX_TEAM)
    gated_back_kernel(struct contribution c, struct contribution_back b, int lanes) {
    EACH_TEAM_ROW(row, c.T) {
        real k = b.rms && b.rms[row] != 0 ? (real)(b.sparsity / ((double)c.D * b.rms[row])) : 0;
        struct row_back r = {factor_of(c, row), weight_of(c, row), k, 0, 0};
        if (c.G == c.D)
            columns_back(c, b, &r, row);
        else
            groups_back(c, b, &r, row, lanes);
        r.dweight = team_sum(r.dweight);
        if (c.r) r.dr = team_sum(r.dr);
        if (threadIdx.x > 0) continue;
        b.dweight[row * b.n] = r.dweight;
        if (c.r) b.dr[row] = c.scale * r.dr;
    }
}

/* Threads for a group of so many columns: as few idle as a power of two allows. */
static int lanes_for(long columns) {
    int lanes = 1;
    while (lanes < WARP && 8 * lanes <= columns) lanes *= 2;
    return lanes;
}

static void gated_delta_back(long T, long D, long G, const real *t, const real *s, const real *gate, long ldg,
                             const real *r, double scale, const real *weight, long ldw, const real *dout,
                             long ldo, const real *rms, double sparsity, real *dweight, long n, real *dgate,
                             real *dd, real *dr) {
    struct contribution c = contribution(T, D, G, t, s, gate, ldg, r, scale, weight, ldw);
    struct contribution_back b = {dout, ldo, rms, sparsity, dweight, n, dgate, dd, dr};
    c.aligned = c.aligned && on_quads(dout, ldo) && on_quads(dd, D) && (G < D || on_quads(dgate, D));
    int lanes = lanes_for(D / G);
    long threads = G == D ? D : 4 * G * lanes; /* as for a row of so many columns */
    LAUNCH(gated_back_kernel, team_grid(T, threads), team_block(threads), 0, c, b, lanes);
}

void cuda_delta_gated(struct ops *ops) {
    ops->gated_delta = gated_delta;
    ops->gated_delta_back = gated_delta_back;
}
