/* The operations table: everything the model computes is a call through one of these functions.
 *
 * `reference/` fills every operation with plain, obvious C; `cpu/` starts from a copy of that table and
 * replaces operations; `cuda/` fills every operation of a table of its own. Every operation of every backend
 * is tested against the reference, and the reference against finite differences.
 *
 * Conventions. Matrices are row-major; `ld` is the distance between rows in elements. T counts tokens, D is
 * the hidden size. Weights are [out, in] unless said otherwise. "adds" means `+=`: gradients accumulate, so
 * the caller zeroes them; everything else is overwritten. Buffers do not overlap unless said.
 *
 * Buffers lie in the memory of the table's device (kernels/base/device.h), sums in double included; short
 * lists marked "on the host" do not, and have been read when the call returns. On a device other than the
 * host a call only queues its work: calls take effect in the order they were made, and who wants to see a
 * result copies it with the device's download. No operation can fail (a device's faults show in its status),
 * allocate on the heap in a way that grows, or keep state between calls. Sums over tokens have one fixed
 * order for a given thread count. Operations marked [any threads] give the same bits for every thread
 * count. */
#ifndef GDN_OPS_H
#define GDN_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/base/device.h"
#include "kernels/base/mask.h"
#include "kernels/base/real.h"

enum {
    OPS_CONNECTIONS = 64,  /* the most connections into a layer: of lists on the host */
    OPS_SUMS = 4,          /* the most weighted sums of the same sources: a stream's, queries', keys' and values' */
    OPS_WIDEST_HEAD = 256, /* of attention on a device other than the host */
};

/* How numbers enter matrix products and attention. Sums, norms, softmax, weights and all buffers are `real`
 * in each of them. On the host bf16 is of products of which no dimension is below BF16_LEAST, of B alone in
 * those by rows, and of attention as base/bf16.h says; alpha is multiplied into A before that is rounded. */
enum precision {
    PRECISION_FP32, /* as they are: no tf32 */
    PRECISION_BF16,
    PRECISION_FP16, /* gradients need a loss scale */
    PRECISION_FP8,  /* the trunk's products: e4m3, gradients e5m2, with delayed scales; bf16 elsewhere */
    PRECISIONS,
};

extern const char *const precision_word[PRECISIONS]; /* "fp32", … */

/* Bytes of the copy of a weight, below, in training: devices other than the host have one in fewer bits than
 * fp32. */
static inline long weight_copy_bytes(bool host, enum precision precision) {
    return host || precision == PRECISION_FP32 ? 0 : 2;
}

struct ops {
    const char *name; /* "reference", "cpu", "cuda", "emulated" */
    enum precision precision;
    const struct device *device; /* where all buffers lie */

    /* Weights a second time, in the numbers that products read. `hold` queues the conversion of w [count],
     * a multiple of 64, into `copy`, ops_weight_copy bytes each and aligned as reserved memory is. From then
     * on products with operands among w may read the copy instead, until `release` or the next `hold`; before
     * that nobody writes either. Results are those of products that convert by themselves, to the bit, but
     * for the scales of fp8: a weight's counts a hold as one call. Neither can fail. NULL where there are no
     * copies. */
    void (*hold)(const real *w, long count, void *copy);
    void (*release)(void);

    /* The operations, each with what it does: kernels/trunk_operations.h and kernels/delta_operations.h, the
     * only lists of them. OPERATION(rms_norm, (long T, …), …) is the member void (*rms_norm)(long T, …). */
#define OPERATION(name, parameters, ...) void (*name) parameters;
#include "kernels/trunk_operations.h"
#include "kernels/delta_operations.h"
#undef OPERATION
};

/* Bytes of each weight's copy that `hold` fills. */
static inline long ops_weight_copy(const struct ops *ops) {
    return ops->hold ? 2 : 0;
}

/* How many pairs of a query and a key that it sees a piece of S queries on N keys has, of which query t sees those
 * up to number first + t. */
static inline double attention_pairs(long S, long N, long first) {
    const double causal = N > first ? (double)(N - first) : 0; /* queries that do not see all N */
    return causal * ((double)first + (causal + 1) / 2) + ((double)S - causal) * (double)N;
}

#endif
