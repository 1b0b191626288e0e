/* CUDA backend: sums over rows, over ranks' pieces and over whole vectors. A long sum is made of parts, whose
 * number depends on the shape alone and which are added in order. */
#include <math.h>

#include "kernels/base/hash.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

/* ---------------------------------------------------------------------------------------------- of columns
 * A block sums COLUMNS columns over the rows of its part, in STRIPS strips of rows side by side. */
enum { COLUMNS = 32, STRIPS = 8, PART_ROWS = 64, MAX_PARTS = 512 };

/* to[part] = Σ x[t] over the part's `rows` rows; with `add`, to += Σ x[t]. */
static __global__ void column_sums_kernel(long T, long W, long rows, const real *x, long ldx, bool add,
                                          real *to) {
    __shared__ real strip[STRIPS][COLUMNS];
    long column = (long)blockIdx.x * COLUMNS + threadIdx.x, first = blockIdx.y * rows;
    long end = first + rows < T ? first + rows : T;
    real sum = 0;
    if (column < W)
        for (long t = first + threadIdx.y; t < end; t += STRIPS) sum += x[t * ldx + column];
    strip[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= W) return;
    for (int i = 1; i < STRIPS; i++) sum += strip[i][threadIdx.x];
    to += blockIdx.y * W + column;
    *to = add ? *to + sum : sum;
}

static void column_sums(long T, long W, long rows, const real *x, long ldx, bool add, real *to) {
    if (T <= 0) return; /* a tensor rank without rows */
    dim3 grid((unsigned)ceil_div(W, COLUMNS), (unsigned)ceil_div(T, rows));
    LAUNCH(column_sums_kernel, grid, dim3(COLUMNS, STRIPS), 0, T, W, rows, x, ldx, add, to);
}

void add_few_rows(long T, long W, const real *x, long ldx, real *sum) {
    column_sums(T, W, T, x, ldx, true, sum);
}

static void add_column_sums(long T, long W, const real *x, long ldx, real *sum) {
    long most = least(MAX_PARTS, WORKSPACE_BYTES / (W * (long)sizeof(real)));
    long parts = least(ceil_div(T, PART_ROWS), most);
    if (parts <= 1) {
        add_few_rows(T, W, x, ldx, sum);
        return;
    }
    long rows = ceil_div(T, parts);
    parts = ceil_div(T, rows);
    real *part = (real *)workspace((size_t)(parts * W) * sizeof(real)); /* [parts, W] */
    column_sums(T, W, rows, x, ldx, false, part);
    add_few_rows(parts, W, part, W, sum);
}

/* ------------------------------------------------------------------------------------------- of pieces */

struct added {
    static __device__ real of(real a, real b) { return a + b; }
};
struct greater { /* NaN is greatest */
    static __device__ real of(real a, real b) { return b > a || b != b ? b : a; }
};

template <typename both>
static __global__ void parts_kernel(long count, int parts, const real *pieces, real *out, bool aligned) {
    EACH_QUAD(at, count) {
        quad all = load_quad(pieces + at, count - at, aligned);
        for (int p = 1; p < parts; p++) {
            quad q = load_quad(pieces + p * count + at, count - at, aligned);
            for (int i = 0; i < 4; i++) all.v[i] = both::of(all.v[i], q.v[i]);
        }
        store_quad(out + at, count - at, aligned, all);
    }
}

template <typename both> static void join_parts(long count, int parts, const real *pieces, real *out) {
    bool aligned = on_quads(pieces, count) && on_quads(out, 0);
    LAUNCH(parts_kernel<both>, vector_grid(count), VECTOR_BLOCK, 0, count, parts, pieces, out, aligned);
}

static void add_parts(long count, int parts, const real *pieces, real *sum) {
    join_parts<added>(count, parts, pieces, sum);
}

static void max_parts(long count, int parts, const real *pieces, real *greatest) {
    join_parts<greater>(count, parts, pieces, greatest);
}

/* ----------------------------------------------------------------------------------- in double, of all */

enum { SUM_BLOCK = 256, SUM_LENGTH = 16 * SUM_BLOCK, MAX_SUMS = 1024 };

/* sum[part] = Σ x, or |x|, over the part's `length` elements; with `add`, sum += that. */
template <typename number, bool absolute = false>
static __global__ void add_up_kernel(long n, long length, const number *x, bool add, double *sum) {
    long first = blockIdx.x * length, end = first + length < n ? first + length : n;
    double own = 0;
    for (long i = first + threadIdx.x; i < end; i += blockDim.x) own += absolute ? fabs((double)x[i]) : x[i];
    own = block_sum(own);
    if (threadIdx.x == 0) sum[blockIdx.x] = add ? sum[blockIdx.x] + own : own;
}

template <bool absolute> static void sum_up(long n, const real *x, double *sum) {
    auto add_up_reals = add_up_kernel<real, absolute>;
    long parts = least(ceil_div(n, SUM_LENGTH), MAX_SUMS), length = ceil_div(n, parts > 0 ? parts : 1);
    if (parts <= 1) {
        LAUNCH(add_up_reals, 1, SUM_BLOCK, 0, n, n, x, true, sum);
        return;
    }
    double *part = (double *)workspace((size_t)parts * sizeof(double));
    LAUNCH(add_up_reals, (unsigned)parts, SUM_BLOCK, 0, n, length, x, false, part);
    LAUNCH(add_up_kernel<double>, 1, SUM_BLOCK, 0, parts, parts, part, true, sum);
}

static void add_up(long n, const real *x, double *sum) {
    sum_up<false>(n, x, sum);
}

static void add_absolutes(long n, const real *x, double *sum) {
    sum_up<true>(n, x, sum);
}

/* sum[part] = Σ x·y over the part's `length` elements. */
static __global__ void sum_products_kernel(long n, long length, const real *x, const real *y, double *sum) {
    long first = blockIdx.x * length, end = first + length < n ? first + length : n;
    double own = 0;
    for (long i = first + threadIdx.x; i < end; i += blockDim.x) own += (double)x[i] * y[i];
    own = block_sum(own);
    if (threadIdx.x == 0) sum[blockIdx.x] = own;
}

/* Σ x·y in the workspace. */
static double *sum_products(long n, const real *x, const real *y) {
    long parts = least(ceil_div(n, SUM_LENGTH), MAX_SUMS), length = ceil_div(n, parts);
    double *part = (double *)workspace((size_t)(parts + 1) * sizeof(double)), *sum = part + parts;
    LAUNCH(sum_products_kernel, (unsigned)parts, SUM_BLOCK, 0, n, length, x, y, part);
    LAUNCH(add_up_kernel<double>, 1, SUM_BLOCK, 0, parts, parts, part, false, sum);
    return sum;
}

static __global__ void add_number_kernel(const double *x, real *y) {
    *y += (real)*x;
}

static void add_dot(long n, const real *x, const real *y, real *sum) {
    if (n <= 0) return;
    LAUNCH(add_number_kernel, 1, 1, 0, sum_products(n, x, y), sum);
}

static __global__ void unit_norm_kernel(long n, const real *x, const double *sum, double eps, real *y,
                                        bool aligned) {
    const real factor = (real)(1 / (sqrt(*sum) + eps));
    EACH_QUAD(at, n) {
        quad q = load_quad(x + at, n - at, aligned);
        for (int i = 0; i < 4; i++) q.v[i] *= factor;
        store_quad(y + at, n - at, aligned, q);
    }
}

static void unit_norm(long n, const real *x, double eps, real *y) {
    if (n <= 0) return;
    LAUNCH(unit_norm_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, x, sum_products(n, x, x), eps, y,
           on_quads(x, 0) && on_quads(y, 0));
}

/* A warp has a block of `grain` elements, of which those from `first` to `end` count. */
static __global__ void add_squares_kernel(long first, long end, long grain, const real *x, double *square) {
    const long blocks_end = (end + grain - 1) / grain, step = (long)gridDim.x * blockDim.y;
    long block = first / grain + (long)blockIdx.x * blockDim.y + threadIdx.y;
    for (; block < blocks_end; block += step) {
        long from = block * grain > first ? block * grain : first;
        long to = (block + 1) * grain < end ? (block + 1) * grain : end;
        double sum = 0;
        for (long i = from + threadIdx.x; i < to; i += WARP) sum += (double)x[i] * x[i];
        sum = warp_sum(sum);
        if (threadIdx.x == 0) square[block] += sum;
    }
}

static void add_squares(long first, long count, long grain, const real *x, double *square) {
    enum { WARPS = 8 };
    if (count <= 0) return;
    long blocks = ceil_div(first + count, grain) - first / grain;
    unsigned grid = (unsigned)least(ceil_div(blocks, WARPS), VECTOR_GRID);
    LAUNCH(add_squares_kernel, grid, dim3(WARP, WARPS), 0, first, first + count, grain, x, square);
}

/* ------------------------------------------------------------------------------------------- checksums
 * Sums of whole numbers, so that atomics may add the blocks' in any order. With one column ld is the step
 * from element to element, so `rows` may be what is long. */
typedef unsigned long long whole_number;

static __global__ void add_hash_kernel(const real *x, long rows, long width, long ld, uint64_t index,
                                       uint64_t stride, whole_number *sum) {
    whole_number own = 0;
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * width; i += step) {
        long r = i / width, c = i - r * width;
        own += hash_element(x[r * ld + c], index + (uint64_t)r * stride + (uint64_t)c);
    }
    own = block_sum(own);
    if (threadIdx.x == 0) atomicAdd(sum, own);
}

static void add_hash(const real *x, long rows, long width, long ld, uint64_t index, uint64_t stride,
                     uint64_t *sum) {
    unsigned grid = (unsigned)least(ceil_div(rows * width, SUM_LENGTH), MAX_SUMS);
    LAUNCH(add_hash_kernel, grid, SUM_BLOCK, 0, x, rows, width, ld, index, stride, (whole_number *)sum);
}

extern "C" void cuda_sums(struct ops *ops) {
    ops->add_column_sums = add_column_sums;
    ops->add_parts = add_parts;
    ops->max_parts = max_parts;
    ops->add_up = add_up;
    ops->add_dot = add_dot;
    ops->add_absolutes = add_absolutes;
    ops->add_squares = add_squares;
    ops->unit_norm = unit_norm;
    ops->add_hash = add_hash;
}
