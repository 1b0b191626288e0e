/* See scale.h. Everything happens on the device: the host never learns a scale. */
#include "kernels/cuda/scale.h"

#include <stdlib.h>

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

/* Block b: operand b. */
static __global__ void settle(struct scale *scale_a, struct scale *scale_b, int top_a, int top_b,
                              float *largest, bool record) {
    struct scale *scale = blockIdx.x == 0 ? scale_a : scale_b;
    float *mine = largest + blockIdx.x * MAX_BLOCKS, most = 0;
    for (int i = threadIdx.x; i < MAX_BLOCKS; i += blockDim.x) {
        most = fmaxf(most, mine[i]);
        mine[i] = 0;
    }
    most = block_max(most);
    if (threadIdx.x != 0 || (!record && scale->calls > 0)) return;
    if (record) {
        scale->history[scale->calls++ % HISTORY] = most;
        for (unsigned i = 0; i < min(scale->calls, (unsigned)HISTORY); i++)
            most = fmaxf(most, scale->history[i]);
    }
    int exponent = room(most, blockIdx.x == 0 ? top_a : top_b);
    scale->unit = float_of((uint32_t)(127 - exponent) << 23);
}

static void settle_both(const struct operand *a, const struct operand *b, bool record) {
    LAUNCH(settle, dim3(2), THREADS, 0, a->scale, b->scale, top(a->type), top(b->type), largest, record);
}

void scales_begin(const struct operand *a, const struct operand *b) {
    bool *seen_a = &seen[a->scale - scales], *seen_b = &seen[b->scale - scales];
    if (*seen_a && *seen_b) return;
    *seen_a = *seen_b = true;
    convert(a, a->count, a->k, NULL, scales_largest(0));
    convert(b, b->count, b->k, NULL, scales_largest(1));
    settle_both(a, b, false);
}

void scales_end(const struct operand *a, const struct operand *b) {
    settle_both(a, b, true);
}
