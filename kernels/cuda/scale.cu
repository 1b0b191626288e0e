/* See scale.h. Everything happens on the device: the host never learns a scale. */
#include "kernels/cuda/scale.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/number.h"

enum { THREADS = 256 };

static struct scale *scales; /* [weight ids, ROLES] */
static float *largest;       /* [2, MAX_BLOCKS], 0 between calls */
static float *unit;          /* of both operands' product */
static bool *seen; /* [weight ids, ROLES], on the host: this process has made a call (spares asking) */

static size_t count(void) {
    return (size_t)CUDA_WEIGHT_IDS * ROLES;
}

void scales_open(void) {
    if (scales) return;
    scales = (struct scale *)reserve(count() * sizeof *scales);
    seen = (bool *)calloc(count(), sizeof *seen);
    largest = (float *)reserve(2 * MAX_BLOCKS * sizeof *largest);
    unit = (float *)reserve(sizeof *unit);
}

void *cuda_scales(size_t *bytes) {
    *bytes = scales ? count() * sizeof *scales : 0;
    if (scales) memset(seen, 0, count() * sizeof *seen);
    return scales;
}

struct scale *scale_of(int weight_id, enum role role) {
    return scales + (long)weight_id * ROLES + role;
}

float *scales_largest(int operand) {
    return largest + operand * MAX_BLOCKS;
}

float *scales_unit(void) {
    return unit;
}

/* The exponent of the largest number, 1.75·2^top, of both formats. */
static int top(cudaDataType_t type) {
    return type == CUDA_R_8F_E5M2 ? 15 : 8;
}

/* The power of two, by its exponent, that takes numbers up to `most` just into range, such that it and 1/it
 * are normal. */
static __device__ int room(float most, int top) {
    if (most == 0) return 0;
    uint32_t bits = bits_of(most), three_quarters = 0x600000;
    int exponent = (int)(bits >> 23) - 127;
    return min(126, top - exponent - ((bits & 0x7fffff) > three_quarters));
}

/* Records the call, makes the factor from all that is recorded, or both: from what was seen where that is
 * nothing. Block b: operand b. */
static __global__ void settle(struct scale *scale_a, struct scale *scale_b, int top_a, int top_b,
                              float *largest, bool record, bool renew) {
    struct scale *scale = blockIdx.x == 0 ? scale_a : scale_b;
    float *mine = largest + blockIdx.x * MAX_BLOCKS, most = 0;
    for (int i = threadIdx.x; i < MAX_BLOCKS; i += blockDim.x) {
        most = fmaxf(most, mine[i]);
        mine[i] = 0;
    }
    most = block_max(most);
    if (threadIdx.x != 0) return;
    if (record) scale->history[scale->calls++ % HISTORY] = most;
    if (!renew) return;
    for (unsigned i = 0; i < min(scale->calls, (unsigned)HISTORY); i++) most = fmaxf(most, scale->history[i]);
    int exponent = room(most, blockIdx.x == 0 ? top_a : top_b);
    scale->unit = float_of((uint32_t)(127 - exponent) << 23);
}

/* b NULL: of a alone. */
static void settle_operands(const struct operand *a, const struct operand *b, bool record, bool renew) {
    LAUNCH(settle, dim3(b ? 2 : 1), THREADS, 0, a->scale, b ? b->scale : nullptr, top(a->type),
           b ? top(b->type) : 0, largest, record, renew);
}

static bool is_seen(const struct operand *x) {
    return x->ready || seen[x->scale - scales];
}

/* Of operand 0 or 1. */
static void look(int operand, const struct operand *x) {
    seen[x->scale - scales] = true;
    convert(x, x->count, x->k, NULL, scales_largest(operand));
}

void scales_begin(const struct operand *a, const struct operand *b) {
    if (is_seen(a) && is_seen(b)) return;
    look(0, a);
    if (!b->ready) look(1, b);
    settle_operands(a, b->ready ? NULL : b, false, true);
}

void scales_end(const struct operand *a, const struct operand *b) {
    settle_operands(a, b->ready ? NULL : b, true, true);
}

void scales_copy_begin(const struct operand *x) {
    if (!is_seen(x)) look(0, x);
    settle_operands(x, NULL, false, true);
}

void scales_copy_end(const struct operand *x) {
    settle_operands(x, NULL, true, false);
}
