/* Both operands are copied, rounded, into memory of a fixed size, in pieces where they are larger; then all
 * threads multiply the copies, a block of C each. Copies lie as their operands do, without gaps. */
#include "kernels/cpu/gemm_bf16.h"

#include <omp.h>
#include <pthread.h>
#include <stdalign.h>

#include "kernels/cpu/bf16_product.h"
#include "kernels/cpu/gemm.h"

enum {
    PIECE_ELEMENTS = 1 << 23, /* of a copy */
    PIECE_K = 1 << 17,        /* what is summed over at a time: then there is room for 64 rows and columns */
};

/* Pages that no product has touched are no memory. */
union copy {
    uint16_t narrow[PIECE_ELEMENTS];
    real rounded[PIECE_ELEMENTS];
};
static alignas(64) union copy copy_a, copy_b;
static pthread_mutex_t copies = PTHREAD_MUTEX_INITIALIZER;
static bool native;

void gemm_bf16_prepare(const char *isa) {
    native = !isa && sizeof(real) == sizeof(float) && bf16_product_open();
}

bool gemm_bf16_native(void) {
    return native;
}

const char *gemm_bf16_describe(void) {
    return native ? bf16_product_describe() : "bf16 in software";
}

/* An operand or a piece of it, as it lies: rows of `width` elements. */
struct matrix {
    const real *at;
    long rows, width, ld;
    real factor;
};

/* Of all threads of the region, each copies some rows. */
static void copy_rows(const struct bf16_rows *to, const struct matrix *x, union copy *copy) {
#pragma omp for schedule(static) nowait
    for (long r = 0; r < x->rows; r++)
        if (native)
            to->narrow(x->width, x->factor, x->at + r * x->ld, copy->narrow + r * x->width);
        else
            to->round(x->width, x->factor, x->at + r * x->ld, copy->rounded + r * x->width);
}

/* A block of C from the copies, by the calling thread. */
static void multiply(char ta, char tb, long m, long n, long k, long a, long lda, long b, long ldb, bool add,
                     real *c, long ldc) {
#ifndef GDN_DOUBLE
    if (native) {
        bf16_product(omp_get_thread_num(), ta, tb, m, n, k, copy_a.narrow + a, lda, copy_b.narrow + b, ldb,
                     add, c, ldc);
        return;
    }
#endif
    gemm_library(ta, tb, m, n, k, 1, copy_a.rounded + a, lda, copy_b.rounded + b, ldb, add, c, ldc);
}

/* C (+)= A·B of a piece of each; `fresh_a` and `fresh_b`: which has not been copied yet. */
static void piece(const struct bf16_rows *to, char ta, char tb, long m, long n, long k,
                  const struct matrix *a, bool fresh_a, const struct matrix *b, bool fresh_b, bool add,
                  real *c, long ldc) {
    const struct gemm_blocks blocks = gemm_blocks(m, n, k);
    const long height = blocks.height, width = blocks.width;
#pragma omp parallel num_threads(blocks.threads)
    {
        if (fresh_a) copy_rows(to, a, &copy_a);
        if (fresh_b) copy_rows(to, b, &copy_b);
#pragma omp barrier
#pragma omp for schedule(static, 1) nowait
        for (long block = 0; block < blocks.threads; block++) {
            long i = block / blocks.columns * height, j = block % blocks.columns * width;
            if (i >= m || j >= n) continue;
            multiply(ta, tb, m - i < height ? m - i : height, n - j < width ? n - j : width, k,
                     ta == 'N' ? i * a->width : i, a->width, tb == 'N' ? j : j * b->width, b->width, add,
                     c + i * ldc + j, ldc);
        }
    }
}

static long min(long a, long b) {
    return a < b ? a : b;
}

static void scale_rows(long m, long n, real beta, real *c, long ldc) {
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) c[i * ldc + j] = beta == 0 ? 0 : beta * c[i * ldc + j];
}

/* Element (i, p) of op(X) lies at x[i·ld + p] where it is along memory, else at x[p·ld + i]. */
static struct matrix part(bool along, const real *x, long ld, long i, long p, long count, long k,
                          real factor) {
    if (along) return (struct matrix){x + i * ld + p, count, k, ld, factor};
    return (struct matrix){x + p * ld + i, k, count, ld, factor};
}

void gemm_bf16(const struct bf16_rows *rows, char ta, char tb, long m, long n, long k, real alpha,
               const real *a, long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    if (m <= 0 || n <= 0) return;
    if (k <= 0 || (beta != 0 && beta != 1)) scale_rows(m, n, beta, c, ldc);
    pthread_mutex_lock(&copies);
    for (long p = 0, deep; p < k; p += deep) {
        deep = min(k - p, PIECE_K);
        long most = PIECE_ELEMENTS / deep, high = min(m, most), wide = min(n, most);
        for (long j = 0; j < n; j += wide)
            for (long i = 0; i < m; i += high) {
                long own_m = min(m - i, high), own_n = min(n - j, wide);
                const struct matrix own_a = part(ta == 'N', a, lda, i, p, own_m, deep, alpha),
                                    own_b = part(tb == 'T', b, ldb, j, p, own_n, deep, 1);
                piece(rows, ta, tb, own_m, own_n, deep, &own_a, j == 0 || high < m, &own_b, i == 0,
                      beta != 0 || p > 0, c + i * ldc + j, ldc);
            }
    }
    pthread_mutex_unlock(&copies);
}
