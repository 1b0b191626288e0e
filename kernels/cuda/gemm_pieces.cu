/* A product in 16 or 8 bits. Its operands are converted into two buffers of a fixed size, and where they do
 * not fit, the product is made in pieces, over k added up in C. Pieces depend on the shape alone, and so do
 * the bits.
 *
 * Every product converts both operands anew. Weights change once a step but are multiplied many times: a copy
 * kept for each would replace `fill`. */
#include "kernels/cuda/gemm.h"

#include <limits.h>
#include <stdlib.h>

#include "kernels/cuda/scale.h"

enum {
    SCRATCH = 64 << 20, /* bytes of an operand's buffer */
    SCRATCH_MIN = 1024, /* a result of STEP × STEP */
    STEP = 16,          /* pieces are multiples of this, but for the last */
    ROWS = 2048,        /* of a piece, before k is cut */
};

static long scratch; /* bytes; GDN_GEMM_SCRATCH, for tests, makes it smaller */
static char *buffer[2];

void pieces_open(void) {
    if (scratch) return;
    const char *wanted = getenv("GDN_GEMM_SCRATCH");
    scratch = wanted ? max((long)SCRATCH_MIN, min((long)SCRATCH, atol(wanted))) : (long)SCRATCH;
    for (int side = 0; side < 2; side++) buffer[side] = (char *)reserve(scratch);
}

static long up(long count) {
    return ceil_div(count, STEP) * STEP;
}
static long down(long count) {
    return max((long)STEP, count / STEP * STEP);
}

struct cut {
    long m, n, k; /* of a piece */
};

/* Rows are cut before k, which would have C read and written once more. `numbers` is what a buffer takes,
 * `results` what a piece of C may have. */
static struct cut cut_for(long m, long n, long k, long numbers, long results) {
    struct cut cut;
    cut.k = min(up(k), down(numbers / min(up(max(m, n)), (long)ROWS)));
    cut.m = min(up(m), down(numbers / cut.k));
    cut.n = min(up(n), down(numbers / cut.k));
    while (cut.m * cut.n > results) {
        long *longer = cut.m > cut.n ? &cut.m : &cut.n;
        *longer = down(*longer / 2);
    }
    return cut;
}

/* Piece i of an operand's rows, `rows` each, in piece p of k. */
static struct operand part(const struct operand *x, long i, long rows, long p, long k) {
    struct operand piece = *x;
    piece.at += x->along ? i * rows * x->ld + p * k : p * k * x->ld + i * rows;
    piece.count = min(rows, x->count - i * rows);
    piece.k = min(k, x->k - p * k);
    return piece;
}

/* Converts into the buffer of operand 0 or 1. */
static struct factor fill(int which, const struct operand *x) {
    long k_to = up(x->k);
    convert(x, x->scale ? up(x->count) : x->count, k_to, buffer[which],
            x->scale ? scales_largest(which) : NULL);
    return (struct factor){buffer[which], x->type, k_to, x->scale ? &x->scale->unit : NULL};
}

/* The product of two pieces, into C or, where the library would not have C as it is, beside it. In 8 bits it
 * wants whole tiles of STEP × STEP. */
static void multiply(const struct operand *a, const struct factor *factor_a, const struct operand *b,
                     const struct factor *factor_b, float alpha, float beta, float *c, long ldc,
                     bool beside) {
    long m = a->count, n = b->count, k_to = up(a->k);
    if (!beside) {
        library_product('N', 'T', m, n, k_to, alpha, factor_a, factor_b, beta, c, ldc);
        return;
    }
    bool tiles = a->scale != NULL;
    float *result = (float *)workspace((size_t)(up(m) * up(n)) * sizeof *result);
    library_product('N', 'T', tiles ? up(m) : m, tiles ? up(n) : n, k_to, alpha, factor_a, factor_b, 0,
                    result, up(n));
    add_result(m, n, beta, result, up(n), c, ldc);
}

void pieces_product(const struct operand *a, const struct operand *b, float alpha, float beta, float *c,
                    long ldc) {
    long m = a->count, n = b->count, k = a->k;
    bool eight = a->scale != NULL;
    bool beside = ldc % 4 || (uintptr_t)c % 16 || (eight && (m % STEP || n % STEP));
    struct cut cut =
        cut_for(m, n, k, scratch / (eight ? 1 : 2), beside ? scratch / (long)sizeof *c : LONG_MAX);
    long down_m = ceil_div(m, cut.m), across_n = ceil_div(n, cut.n);
    /* The operand whose pieces change last is converted once, the other for each of those, unless it is one
     * piece. */
    bool m_last = m + (across_n > 1 ? down_m : 1) * n <= n + (down_m > 1 ? across_n : 1) * m;
    for (long p = 0; p * cut.k < k; p++) {
        struct factor factor_a, factor_b;
        long held_i = -1, held_j = -1;
        for (long piece = 0; piece < down_m * across_n; piece++) {
            long i = m_last ? piece / across_n : piece % down_m,
                 j = m_last ? piece % across_n : piece / down_m;
            struct operand part_a = part(a, i, cut.m, p, cut.k), part_b = part(b, j, cut.n, p, cut.k);
            if (i != held_i) factor_a = fill(0, &part_a);
            if (j != held_j) factor_b = fill(1, &part_b);
            held_i = i;
            held_j = j;
            multiply(&part_a, &factor_a, &part_b, &factor_b, alpha, p == 0 ? beta : 1,
                     c + i * cut.m * ldc + j * cut.n, ldc, beside);
        }
    }
}
