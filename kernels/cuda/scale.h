/* Delayed scaling of numbers of 8 bits: one scale for each weight and role of an operand.
 *
 * An operand is multiplied by a power of two before it is rounded to 8 bits, the largest that keeps the
 * largest |x| of the last HISTORY calls in range; cuBLASLt multiplies the result back. The call itself only
 * records its largest |x|, so that one pass over the operand does; numbers that grow beyond the range
 * saturate for one call. The first call looks at its operand first. Powers of two change no digit and leave
 * at most half of the range unused, of which floating-point numbers have plenty. Numbers that are not finite
 * are not recorded: they come through as they are. */
#ifndef GDN_CUDA_SCALE_H
#define GDN_CUDA_SCALE_H

#include "kernels/cuda/gemm.h"

enum { HISTORY = 16 };
enum role { ROLE_X, ROLE_W, ROLE_DY, ROLES }; /* DY: e5m2, the others e4m3 */

/* Nothing here is negative, so that the greatest of each word over processes is the scale that suits all. */
struct scale {
    float history[HISTORY]; /* the largest |x| of call i at i % HISTORY */
    float unit;             /* 1/factor of the next call */
    uint32_t calls;         /* 0: the factor is not known yet */
    uint32_t none[2];
};

/* Reserves the scales. */
void scales_open(void);
struct scale *scale_of(int weight_id, enum role role); /* on the device */

/* Before the operands of a call are converted: readies the scales that have seen nothing yet. Of a second
 * operand that is ready nothing happens, here and after the product. */
void scales_begin(const struct operand *a, const struct operand *b);
/* Where `convert` keeps the largest |x| of operand 0 or 1. */
float *scales_largest(int operand);
/* Where it leaves, with the second operand, what a 1 in a product of the two means. The library is told of
 * this alone: it would multiply the two itself, and where that is infinite, a sum of 0 not a number. */
float *scales_unit(void);
/* After the product: records the call and makes the factors of the next. */
void scales_end(const struct operand *a, const struct operand *b);

/* Of an operand that is converted for all calls of a while, as one call: before that makes the factor, which
 * stays as it is until the next time, and after it records the call. */
void scales_copy_begin(const struct operand *x);
void scales_copy_end(const struct operand *x);

#endif
