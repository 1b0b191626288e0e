/* A product in 16 or 8 bits. Its operands are converted into two buffers of a fixed size, and where they do
 * not fit, the product is made in pieces, over k added up in C. Pieces depend on the shape alone, and so do
 * the bits.
 *
 * A copy serves the next product as well where nothing else has been queued in between: a gradient is
 * multiplied by its weight and by its layer's input, one after the other. Other copies are made anew, but for
 * those of weights that are held (weights.cu), which are read where they lie. */
#include "kernels/cuda/gemm.h"

#include <limits.h>
#include <stdlib.h>

#include "kernels/cuda/scale.h"

enum {
#ifdef GDN_EMULATED
    SCRATCH = 72 << 20, /* bytes of an operand's buffer: the host's memory, of every rank */
#else
    SCRATCH = 256 << 20, /* a gradient of 8192 tokens and 16384 columns in one piece */
#endif
    SCRATCH_MIN = 1024, /* a result of STEP × STEP */
    STEP = 16,          /* pieces are multiples of this, but for the last */
    ROWS = 2048,        /* of a piece, before k is cut */
};

/* What the buffers hold; at NULL: nothing. */
static struct operand held[2];
static uint64_t held_at; /* cuda_queued() after the last product, whose operands these are */

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
    long first = x->along ? i * rows * x->ld + p * k : p * k * x->ld + i * rows;
    long bytes = !x->ready ? sizeof(float) : x->scale ? 1 : 2;
    piece.at = (const char *)x->at + first * bytes;
    piece.count = min(rows, x->count - i * rows);
    piece.k = min(k, x->k - p * k);
    return piece;
}

/* As an operand lies in memory: rows along it. */
static struct operand as_stored(const struct operand *x) {
    struct operand stored = *x;
    stored.along = true;
    stored.count = x->along ? x->count : x->k, stored.k = x->along ? x->k : x->count;
    return stored;
}

static bool is_held(int which, const struct operand *stored) {
    const struct operand *of = &held[which];
    return of->at == stored->at && of->ld == stored->ld && of->count == stored->count && of->k == stored->k &&
           of->type == stored->type;
}

/* The unit of a product of 8 bits goes with its second operand alone. */
static const float *unit_of(int which, const struct operand *x) {
    return which == 1 ? x->unit : NULL;
}

/* Converts what is not ready into the buffer of operand 0 or 1: 8 bits with rows along what is summed over,
 * as the library demands; 16 bits as the operand lies, which the library multiplies as fast and a copy is
 * faster than a turn. */
static struct factor fill(int which, const struct operand *x) {
    if (x->ready) return (struct factor){x->at, x->type, x->ld, unit_of(which, x)};
    if (x->scale) {
        long k_to = up(x->k);
        held[which].at = NULL;
        convert(x, up(x->count), k_to, buffer[which], scales_largest(which));
        return (struct factor){buffer[which], x->type, k_to, unit_of(which, x)};
    }
    struct operand stored = as_stored(x);
    if (!is_held(which, &stored)) convert(&stored, stored.count, up(stored.k), buffer[which], NULL);
    held[which] = stored;
    return (struct factor){buffer[which], x->type, up(stored.k), NULL};
}

/* The product of two pieces, into C or, where the library would not have C as it is, beside it. In 8 bits it
 * wants whole tiles of STEP × STEP. */
static void multiply(const struct operand *a, const struct factor *factor_a, const struct operand *b,
                     const struct factor *factor_b, float alpha, float beta, float *c, long ldc,
                     bool beside) {
    bool tiles = a->scale != NULL;
    long m = a->count, n = b->count, k_to = tiles ? up(a->k) : a->k;
    char ta = tiles || a->along ? 'N' : 'T', tb = tiles || b->along ? 'T' : 'N';
    if (!beside) {
        library_product(ta, tb, m, n, k_to, alpha, factor_a, factor_b, beta, c, ldc);
        return;
    }
    float *result = (float *)workspace((size_t)(up(m) * up(n)) * sizeof *result);
    library_product(ta, tb, tiles ? up(m) : m, tiles ? up(n) : n, k_to, alpha, factor_a, factor_b, 0, result,
                    up(n));
    add_result(m, n, beta, result, up(n), c, ldc);
}

void pieces_product(const struct operand *a, const struct operand *b, float alpha, float beta, float *c,
                    long ldc) {
    long m = a->count, n = b->count, k = a->k;
    bool eight = a->scale != NULL;
    bool beside = ldc % 4 || (uintptr_t)c % 16 || (eight && (m % STEP || n % STEP));
    struct cut cut = cut_for(m, n, k, scratch / (eight ? 1 : 2),
                             beside ? min(scratch, (long)WORKSPACE_BYTES) / (long)sizeof *c : LONG_MAX);
    long down_m = ceil_div(m, cut.m), across_n = ceil_div(n, cut.n);
    if (held_at != cuda_queued()) held[0].at = held[1].at = NULL;
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
    held_at = cuda_queued();
}
