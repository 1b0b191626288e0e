/* CUDA backend: RMS norm, a team of threads a row. Forward and backward pass over memory once for rows that
 * fit in registers; the backward one sums its rows' share of dw on the way. */
#include "kernels/cuda/host_list.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

/* Arguments of a norm: sum = x + r where r is not NULL, else x; y may be NULL, then only rstd is wanted. */
struct norm {
    long T, D;
    const real *x, *r, *w;
    real eps, *sum, *y, *rstd;
    bool aligned;
};

/* Four columns of the row that is normed, stored where it had to be formed. */
static __device__ inline quad form(const struct norm &a, long t, long at) {
    long left = a.D - at, from = t * a.D + at;
    quad q = load_quad(a.x + from, left, a.aligned);
    if (a.r) {
        quad r = load_quad(a.r + from, left, a.aligned);
        for (int i = 0; i < 4; i++) q.v[i] += r.v[i];
        store_quad(a.sum + from, left, a.aligned, q);
    }
    return q;
}

static __device__ inline real square_of(const quad &q) {
    return q.v[0] * q.v[0] + q.v[1] * q.v[1] + (q.v[2] * q.v[2] + q.v[3] * q.v[3]);
}

static __device__ inline void put(const struct norm &a, long t, long at, quad q, real rstd) {
    quad w = load_quad(a.w + at, a.D - at, a.aligned);
    for (int i = 0; i < 4; i++) q.v[i] = q.v[i] * rstd * w.v[i];
    store_quad(a.y + t * a.D + at, a.D - at, a.aligned, q);
}

static __global__ void __launch_bounds__(MAX_TEAM, 2) norm_kernel(struct norm a) {
    EACH_TEAM_ROW(t, a.T) {
        quad kept[KEPT];
        real square = 0;
        EACH_KEPT(k) {
            kept[k] = {};
            if (team_quad(k) < a.D) kept[k] = form(a, t, team_quad(k));
            square += square_of(kept[k]);
        }
        EACH_OTHER(at, a.D) square += square_of(form(a, t, at));
        real rstd = 1 / sqrtf(team_sum(square) / (real)a.D + a.eps);
        if (threadIdx.x == 0) a.rstd[t] = rstd;
        if (!a.y) continue;
        EACH_KEPT(k) if (team_quad(k) < a.D) put(a, t, team_quad(k), kept[k], rstd);
        const real *row = (a.r ? a.sum : a.x) + t * a.D;
        EACH_OTHER(at, a.D) put(a, t, at, load_quad(row + at, a.D - at, a.aligned), rstd);
    }
}

static void add_rms_norm(long T, long D, const real *x, const real *r, const real *w, double eps, real *sum,
                         real *y, real *rstd) {
    bool aligned = on_quads(x, D) && on_quads(r, D) && on_quads(w, D) && on_quads(sum, D) && on_quads(y, D);
    struct norm a = {T, D, x, r, w, (real)eps, sum, y, rstd, aligned};
    LAUNCH(norm_kernel, team_grid(T, D), team_block(D), 0, a);
}

static void rms_norm(long T, long D, const real *x, const real *w, double eps, real *y, real *rstd) {
    add_rms_norm(T, D, x, NULL, w, eps, NULL, y, rstd);
}

static void row_rstd(long T, long D, const real *x, double eps, real *rstd) {
    add_rms_norm(T, D, x, NULL, NULL, eps, NULL, NULL, rstd);
}

static __global__ void rstd_back_kernel(long T, long D, const real *__restrict__ rstd,
                                        const real *__restrict__ drstd, real *__restrict__ k) {
    long t = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t < T) k[t] = -drstd[t] / (real)D * rstd[t] * rstd[t] * rstd[t];
}

static void row_rstd_back(long T, long D, const real *rstd, const real *drstd, real *k) {
    enum { THREADS = 256 };
    LAUNCH(rstd_back_kernel, (unsigned)ceil_div(T, THREADS), THREADS, 0, T, D, rstd, drstd, k);
}

/* Arguments of a sum of n sources' norms, y += Σ c_i ⊙ (s[i] − p[i])·rstd, c = w + a: of G groups of columns
 * where there is an a. */
struct norms {
    long T, D, G;
    int n;
    bool less; /* there is a p */
    host_list<const real> s, p;
    const real *w, *a;
    long lda;
    real eps, *y, *rstd;
    bool aligned;
};

/* Four columns of s − p; p may be NULL. */
static __device__ inline quad load_less(const real *s, const real *p, long left, bool aligned) {
    quad q = load_quad(s, left, aligned);
    if (!p) return q;
    quad before = load_quad(p, left, aligned);
    for (int i = 0; i < 4; i++) q.v[i] -= before.v[i];
    return q;
}

/* Which of G groups column j is in; columns that do not exist are in the last. */
static __device__ inline unsigned group_of(long D, long G, long j) {
    return (unsigned)(j < D ? j : D - 1) / (unsigned)(D / G);
}

/* Four columns of w + a, a [G] of a token or NULL. */
static __device__ inline quad load_weights(const real *w, const real *a, long D, long G, long at,
                                           bool aligned) {
    quad q = load_quad(w + at, D - at, aligned);
    if (!a) return q;
    for (int i = 0; i < 4; i++) q.v[i] += a[group_of(D, G, at + i)];
    return q;
}

static __device__ inline void add_norm(const struct norms &a, int i, long t, long at, const quad &x,
                                       real rstd, quad *sum) {
    quad w = load_weights(a.w + i * a.D, a.a ? a.a + t * a.lda + i * a.G : NULL, a.D, a.G, at, a.aligned);
    for (int k = 0; k < 4; k++) sum->v[k] += x.v[k] * rstd * w.v[k];
}

static __device__ inline quad load_row(const struct norms &a, const real *s, const real *p, long at) {
    return load_less(s + at, p ? p + at : NULL, a.D - at, a.aligned);
}

/* 4·n + 8 bytes an element: a row's sum stays in registers from one source to the next. */
static __global__ void __launch_bounds__(MAX_TEAM) norms_kernel(struct norms a) {
    EACH_TEAM_ROW(t, a.T) {
        real *y = a.y + t * a.D;
        quad sum[KEPT];
        EACH_KEPT(k) sum[k] = load_quad(y + team_quad(k), a.D - team_quad(k), a.aligned);
        for (int i = 0; i < a.n; i++) {
            const real *s = a.s.of[i] + t * a.D, *p = a.less ? a.p.of[i] + t * a.D : NULL;
            quad x[KEPT];
            real square = 0;
            EACH_KEPT(k) {
                x[k] = load_row(a, s, p, team_quad(k));
                square += square_of(x[k]);
            }
            EACH_OTHER(at, a.D) square += square_of(load_row(a, s, p, at));
            real rstd = 1 / sqrtf(team_sum(square) / (real)a.D + a.eps);
            if (threadIdx.x == 0) a.rstd[i * a.T + t] = rstd;
            EACH_KEPT(k) if (team_quad(k) < a.D) add_norm(a, i, t, team_quad(k), x[k], rstd, &sum[k]);
            EACH_OTHER(at, a.D) {
                quad wide = load_quad(y + at, a.D - at, a.aligned);
                add_norm(a, i, t, at, load_row(a, s, p, at), rstd, &wide);
                store_quad(y + at, a.D - at, a.aligned, wide);
            }
        }
        EACH_KEPT(k) store_quad(y + team_quad(k), a.D - team_quad(k), a.aligned, sum[k]);
    }
}

static void add_norms(long T, long D, long G, long n, const real *const *s, const real *const *p,
                      const real *w, const real *a_, long lda, double eps, real *y, real *rstd) {
    struct norms a = {T,
                      D,
                      G,
                      (int)n,
                      p != NULL,
                      take_list(n, s),
                      take_list(p ? n : 0, p),
                      w,
                      a_,
                      lda,
                      (real)eps,
                      y,
                      rstd,
                      on_quads(w, D) && on_quads(y, D)};
    a.aligned = a.aligned && list_on_quads(n, a.s, D) && list_on_quads(p ? n : 0, a.p, D);
    LAUNCH(norms_kernel, team_grid(T, D), team_block(D), 0, a);
}

/* Arguments of the backward pass; part [blocks, D] receives each block's share of dw. The last row is
 * add_norm_back's alone: what is taken off x, and its gradient, NULL: nothing; the tokens' own weights of G
 * groups, and their gradient, likewise. */
struct back {
    long T, D;
    const real *x, *w, *rstd, *dy;
    real *dx, *part; /* dx NULL: da alone */
    bool aligned;
    const real *p, *a;
    real *dp, *da;
    long G, lda;
};

static __device__ inline quad load(const struct back &a, const real *row, long at) {
    return load_quad(row + at, a.D - at, a.aligned);
}

/* The quad's part of Σ_j dy·w·x. */
static __device__ inline real dot_of(const quad &w, const quad &x, const quad &dy) {
    real dot = 0;
    for (int i = 0; i < 4; i++) dot += dy.v[i] * w.v[i] * x.v[i];
    return dot;
}

/* What is normed, and the weights: with `source` as add_norm_back has them. */
template <bool source> static __device__ inline quad load_x(const struct back &a, long t, long at) {
    if (!source) return load(a, a.x + t * a.D, at);
    return load_less(a.x + t * a.D + at, a.p ? a.p + t * a.D + at : NULL, a.D - at, a.aligned);
}
template <bool source> static __device__ inline quad load_w(const struct back &a, long t, long at) {
    if (!source) return load(a, a.w, at);
    return load_weights(a.w, a.a ? a.a + t * a.lda : NULL, a.D, a.G, at, a.aligned);
}

/* With u = w ⊙ dy: dx += rstd·u − x·rstd³·(u·x)/D, where `by` is rstd³·(u·x)/D; dw += dy ⊙ x·rstd. */
template <bool source>
static __device__ inline void back_quad(const struct back &a, long t, long at, const quad &x, const quad &dy,
                                        quad dx, real rstd, real by, quad *dw) {
    quad w = load_w<source>(a, t, at), slope;
    for (int i = 0; i < 4; i++) {
        slope.v[i] = rstd * w.v[i] * dy.v[i] - by * x.v[i];
        dx.v[i] += slope.v[i];
        dw->v[i] += dy.v[i] * x.v[i] * rstd;
    }
    store_quad(a.dx + t * a.D + at, a.D - at, a.aligned, dx);
    if (!source || !a.p) return;
    quad dp = load(a, a.dp + t * a.D, at);
    for (int i = 0; i < 4; i++) dp.v[i] -= slope.v[i];
    store_quad(a.dp + t * a.D + at, a.D - at, a.aligned, dp);
}

/* The part of Σ dy·x that four columns have, as far as they are from `first` to `end`. */
static __device__ inline real part_dot(long first, long end, long at, const quad &x, const quad &dy) {
    real dot = 0;
    for (int i = 0; i < 4; i++)
        if (at + i >= first && at + i < end) dot += dy.v[i] * x.v[i];
    return dot;
}

/* Row t of da. Narrow groups are a thread's each, of wide ones, which are few, the team has one after the
 * other. */
static __device__ inline void back_groups(const struct back &a, long t, const quad *x, const quad *dy,
                                          real rstd) {
    enum { NARROW_GROUP = 64 };
    const long width = a.D / a.G, row = t * a.D;
    real *da = a.da + t * a.lda;
    if (width <= NARROW_GROUP) {
        for (long g = threadIdx.x; g < a.G; g += blockDim.x) {
            real dot = 0;
            for (long j = row + g * width; j < row + (g + 1) * width; j++)
                dot += a.dy[j] * (a.p ? a.x[j] - a.p[j] : a.x[j]);
            da[g] = dot * rstd;
        }
        return;
    }
    for (long g = 0; g < a.G; g++) {
        const long first = g * width, end = first + width;
        real dot = 0;
        EACH_KEPT(k) dot += part_dot(first, end, team_quad(k), x[k], dy[k]);
        EACH_OTHER(at, a.D) dot += part_dot(first, end, at, load_x<true>(a, t, at), load(a, a.dy + row, at));
        dot = team_sum(dot);
        if (threadIdx.x == 0) da[g] = dot * rstd;
    }
}

/* The shares of a block's narrow teams, added in order. All its threads come here. */
static __device__ inline void add_teams(const struct back &a, const quad *dw) {
    __shared__ real share[NARROW_ROWS][NARROW];
    EACH_KEPT(k) for (int i = 0; i < 4; i++) share[threadIdx.y][team_quad(k) + i] = dw[k].v[i];
    __syncthreads();
    for (long j = threadIdx.y * WARP + threadIdx.x; j < a.D; j += NARROW_ROWS * WARP) {
        real sum = 0;
        for (int row = 0; row < NARROW_ROWS; row++) sum += share[row][j];
        a.part[blockIdx.x * a.D + j] = sum;
    }
}

template <bool source> static __global__ void __launch_bounds__(MAX_TEAM) back_kernel(struct back a) {
    real *part = a.part + blockIdx.x * a.D;
    bool started = false;
    quad dw[KEPT];
    EACH_KEPT(k) dw[k] = {};
    EACH_TEAM_ROW(t, a.T) {
        const real *dyt = a.dy + t * a.D, *dxt = a.dx + t * a.D;
        quad x[KEPT], dy[KEPT];
        real dot = 0, rstd = a.rstd[t];
        EACH_KEPT(k) {
            x[k] = {}, dy[k] = {};
            if (team_quad(k) >= a.D) continue;
            x[k] = load_x<source>(a, t, team_quad(k)), dy[k] = load(a, dyt, team_quad(k));
            dot += dot_of(load_w<source>(a, t, team_quad(k)), x[k], dy[k]);
        }
        if (source && a.a) back_groups(a, t, x, dy, rstd);
        if (source && !a.dx) continue;
        EACH_OTHER(at, a.D)
        dot += dot_of(load_w<source>(a, t, at), load_x<source>(a, t, at), load(a, dyt, at));
        real by = team_sum(dot) / (real)a.D * rstd * rstd * rstd;
        quad dx[KEPT];
        EACH_KEPT(k) dx[k] = load(a, dxt, team_quad(k));
        EACH_KEPT(k)
        if (team_quad(k) < a.D) back_quad<source>(a, t, team_quad(k), x[k], dy[k], dx[k], rstd, by, &dw[k]);
        EACH_OTHER(at, a.D) {
            quad sum = {};
            if (started) sum = load_quad(part + at, a.D - at, a.aligned);
            back_quad<source>(a, t, at, load_x<source>(a, t, at), load(a, dyt, at), load(a, dxt, at), rstd,
                              by, &sum);
            store_quad(part + at, a.D - at, a.aligned, sum);
        }
        started = true;
    }
    if (blockDim.x == WARP)
        add_teams(a, dw);
    else
        EACH_KEPT(k) store_quad(part + team_quad(k), a.D - team_quad(k), a.aligned, dw[k]);
}

template <bool source> static void launch_back(struct back a, real *dw) {
    enum { MAX_BLOCKS = 512, TEAM_ROWS = 4 }; /* several rows a team, next to which a share of dw is little */
    long room = WORKSPACE_BYTES / (a.D * (long)sizeof(real));
    long blocks = least(ceil_div(team_grid(a.T, a.D), TEAM_ROWS), least(MAX_BLOCKS, room));
    a.part = (real *)workspace((size_t)(blocks * a.D) * sizeof(real));
    a.aligned = on_quads(a.x, a.D) && on_quads(a.w, a.D) && on_quads(a.dy, a.D) &&
                (!a.dx || on_quads(a.dx, a.D)) && (!a.p || on_quads(a.p, a.D)) &&
                (!a.dp || on_quads(a.dp, a.D));
    LAUNCH(back_kernel<source>, (unsigned)blocks, team_block(a.D), 0, a);
    if (a.dx) add_few_rows(blocks, a.D, a.part, a.D, dw);
}

static void rms_norm_back(long T, long D, const real *x, const real *w, const real *rstd, const real *dy,
                          real *dx, real *dw) {
    launch_back<false>({T, D, x, w, rstd, dy, dx, NULL, false, NULL, NULL, NULL, NULL, 1, 0}, dw);
}

static void add_norm_back(long T, long D, long G, const real *s, const real *p, const real *w, const real *a,
                          long lda, const real *rstd, const real *dy, real *ds, real *dp, real *dw,
                          real *da) {
    launch_back<true>({T, D, s, w, rstd, dy, ds, NULL, false, p, a, dp, da, G, lda}, dw);
}

extern "C" void cuda_norm(struct ops *ops) {
    ops->rms_norm = rms_norm;
    ops->add_rms_norm = add_rms_norm;
    ops->row_rstd = row_rstd;
    ops->row_rstd_back = row_rstd_back;
    ops->add_norms = add_norms;
    ops->rms_norm_back = rms_norm_back;
    ops->add_norm_back = add_norm_back;
}
