/* Matrix products on the device: what the files of gemm share.
 *
 *     gemm_operations.cu  the operations: which numbers a product is made in
 *     gemm_pieces.cu      a product in 16 or 8 bits, in pieces whose operands fit into the scratch
 *     gemm_library.cu     one product by cuBLASLt
 *     convert.cu          operands from float to 16 or 8 bits
 *     weights.cu          weights that are converted once for many products
 *     scale.cu            the scales of 8 bits */
#ifndef GDN_CUDA_GEMM_H
#define GDN_CUDA_GEMM_H

#include <cublasLt.h>

#include "kernels/cuda/cuda.h"

struct scale; /* scale.h */

/* op(A) or op(B) of a product, as what is summed over sees it: rows [count, k], along memory, element x[i·ld
 * + p], or across it, x[p·ld + i]; to be multiplied in numbers of `type`. */
struct operand {
    const void *at; /* float, or once it is ready `type` */
    long ld;
    bool along;
    long count, k;
    cudaDataType_t type;
    bool ready;                  /* needs no conversion; of 8 bits only with rows along memory */
    struct scale *scale;         /* on the device; of 8 bits alone */
    const struct scale *partner; /* of the product's operand that is converted last: the other one's */
    float *unit;                 /* and where the product of both units goes, scales_unit() */
};

/* A matrix for the library, row-major. `unit`, on the device: what a 1 in it means; NULL: 1. */
struct factor {
    const void *at;
    cudaDataType_t type;
    long ld;
    const float *unit;
};

/* Zeroed device memory for good; NULL with a failure. */
void *reserve(size_t bytes);

/* Once, before the first product. */
void library_open(void);

/* The gemm operation for operands of any type. Nothing of m, n and k is 0. Of 8 bits: 'N', 'T', all of m, n,
 * k and the row distances multiples of 16, C at a multiple of 16 bytes. Of 16 bits row distances are
 * multiples of 8. */
void library_product(char ta, char tb, long m, long n, long k, float alpha, const struct factor *a,
                     const struct factor *b, float beta, float *c, long ldc);

/* Writes an operand in numbers of its type, [count_to, k_to] with rows along memory, zero beyond [count, k];
 * k_to is a multiple of 8; of 16 bits an operand along memory. With a scale, numbers are multiplied by its
 * factor, and largest [MAX_BLOCKS] keeps the largest finite |x| per block; with a partner it leaves
 * scales_unit. `to` NULL: only that, and only where the scale has seen nothing yet. */
void convert(const struct operand *x, long count_to, long k_to, void *to, float *largest);
enum { MAX_BLOCKS = 1024 };

/* What `hold` does (ops.h), with copies in 16 bits of `type`; count 0: what `release` does. */
void weights_hold(const float *weights, long count, void *copy, cudaDataType_t type);
/* Where the operand, of 16 bits, lies in weights that are held in such numbers, it becomes its copy. */
void weights_find(struct operand *x);
/* The same of a weight of `linear` in 8 bits, as x·Wᵀ or dy·W reads it. */
void weights_find_eight(int weight_id, struct operand *x);

/* C [m, n] = beta·C + R; r NULL: zeros. With beta 0, C is not read. */
void add_result(long m, long n, float beta, const float *r, long ldr, float *c, long ldc);

/* Reserves the scratch, once, before the first of these. */
void pieces_open(void);

/* C [a.count, b.count] = alpha·A·Bᵀ + beta·C, both operands of 16 bits or both of 8. Nothing is 0. */
void pieces_product(const struct operand *a, const struct operand *b, float alpha, float beta, float *c,
                    long ldc);

#endif
