/* Weights a second time, in the numbers that products read (ops.h, hold): converted once for all products of
 * a while in which weights stay as they are, where each product would convert its own.
 *
 * A weight's copy has two bytes, at the weight's own place. In 16 bits it lies as the weights do, so that any
 * part of them can be multiplied. In 8 bits products demand rows along what is summed over, so that x·Wᵀ and
 * dy·W read W and Wᵀ: both together take the two bytes, and the first product of `linear` with a weight makes
 * them. Where the library could not read a copy as it lies, there is none, and a product converts as always.
 */
#include "kernels/cuda/gemm.h"

#include "kernels/cuda/scale.h"

enum {
    ROW = 64,           /* weights are converted in rows of so many */
    WORD = 8,           /* numbers of 16 bits that the library reads at once */
    TILE_OF_EIGHT = 16, /* of a matrix in 8 bits all sides are multiples of this */
};

static struct {
    const float *weights;
    long count;
    char *copy;
    cudaDataType_t type; /* of 16 bits */
} held;

/* Matrices whose copies are in 8 bits by now. */
struct matrix {
    const float *at; /* NULL: none */
    long rows, columns;
};
static struct matrix eight[CUDA_WEIGHT_IDS];
static int made[CUDA_WEIGHT_IDS], made_count; /* weight ids */

void weights_hold(const float *weights, long count, void *copy, cudaDataType_t type) {
    while (made_count > 0) eight[made[--made_count]].at = NULL;
    held = {weights, count, (char *)copy, type};
    const struct operand all = {weights, ROW, true, count / ROW, ROW, type, false, NULL, NULL, NULL};
    if (count > 0) convert(&all, all.count, all.k, copy, NULL);
}

static bool is_held(const struct operand *x) {
    const float *at = (const float *)x->at;
    return held.count > 0 && at >= held.weights && at < held.weights + held.count;
}

/* The first weight beyond the operand's. */
static const float *end_of(const struct operand *x) {
    long rows = x->along ? x->count : x->k, columns = x->along ? x->k : x->count;
    return (const float *)x->at + (rows - 1) * x->ld + columns;
}

static bool is_in_eight(const struct operand *x) {
    for (int i = 0; i < made_count; i++) {
        const struct matrix *other = &eight[made[i]];
        if ((const float *)x->at < other->at + other->rows * other->columns && end_of(x) > other->at)
            return true;
    }
    return false;
}

static char *copy_of(const float *at) {
    return held.copy + 2 * (at - held.weights);
}

void weights_find(struct operand *x) {
    const float *at = (const float *)x->at;
    if (!is_held(x) || x->type != held.type || x->ld % WORD || (at - held.weights) % WORD || is_in_eight(x))
        return;
    x->at = copy_of(at), x->ready = true;
}

/* W as it lies, and Wᵀ behind it, by one scale. */
static void make_eight(const struct operand *x, const struct matrix *w) {
    struct operand rows = *x, columns = *x;
    rows.along = true, rows.count = w->rows, rows.k = w->columns;
    columns.along = false, columns.count = w->columns, columns.k = w->rows;
    scales_copy_begin(&rows);
    convert(&rows, rows.count, rows.k, copy_of(w->at), scales_largest(0));
    convert(&columns, columns.count, columns.k, copy_of(w->at) + w->rows * w->columns, scales_largest(0));
    scales_copy_end(&rows);
}

void weights_find_eight(int weight_id, struct operand *x) {
    const float *at = (const float *)x->at;
    const struct matrix w = {at, x->along ? x->count : x->k, x->along ? x->k : x->count};
    struct matrix *known = &eight[weight_id];
    if (!is_held(x) || x->ld != w.columns || w.rows % TILE_OF_EIGHT || w.columns % TILE_OF_EIGHT ||
        (at - held.weights) % WORD)
        return;
    if (!known->at && !is_in_eight(x)) {
        made[made_count++] = weight_id;
        *known = w;
        make_eight(x, &w);
    }
    if (known->at != at || known->rows != w.rows || known->columns != w.columns) return;
    x->at = copy_of(at) + (x->along ? 0 : w.rows * w.columns);
    x->along = true, x->ld = x->k, x->ready = true;
}
