/* Products on a device in every precision, and what they should be. */
#ifndef GDN_TEST_DEVICE_PRODUCT_H
#define GDN_TEST_DEVICE_PRODUCT_H

#include "tests/kernels/device/device_matrix.h"

/* The numbers that a precision rounds operands to. */
struct number {
    float (*as)(float);
    double epsilon, min; /* relative error of a rounding; absolute error near 0 */
    double largest;      /* of numbers with a scale */
    /* A GPU adds products in float: error of a sum relative to its terms' sizes, and for the square root of
     * their number. */
    double sum, root;
    /* Of 8 bits a GPU cuts each term, and the sum so far, off at this part of the largest of them: seen on an
     * H200, and about what DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), 3.3.2, tells of an H800. */
    double cut;
};

extern const struct number e4m3, e5m2;                 /* of fp8: of forward passes, of gradients */
extern const struct number *const of_gemm[PRECISIONS]; /* what ops->gemm rounds to */
extern const char *const precision_names[PRECISIONS];

/* C = op(A)·op(B), the inner length being k. */
struct product {
    struct matrix a, b, c;
    char ta, tb;
    long k;
};

/* Random operands of sizes up to size_a and size_b; see random_matrix. */
struct product make_product(char ta, char tb, long m, long n, long k, long gap, long shift, double size_a,
                            double size_b);
void discard_product(struct product *x);

/* Calls ops->linear with a weight id, or ops->gemm, and brings C to the host. */
enum { GEMM = -1 }; /* in place of a weight id */
void call_product(const struct ops *ops, int weight_id, const struct product *x, float alpha, float beta);

/* Calls, from the C that lies on the host, and checks every element of C and the gaps beside it. `promised`:
 * whether to hold it to the numbers' epsilon, too. */
void call_checked(const struct ops *ops, int weight_id, struct product *x, float alpha, float beta,
                  bool promised);

/* A weight id that was not used yet. fp8 has scales for each, from the largest of HISTORY calls. */
enum { HISTORY = 16 };
int new_weight_id(void);
/* One whose scales are those of `other`, as a process has it that goes on from a checkpoint. */
int resumed_weight_id(int other);
/* Takes from a weight id what it has seen, as a run does with what was only measured. */
void forget_scales(int weight_id);

/* The backend in a precision; NULL on a GPU that lacks it. */
const struct ops *ops_of(enum precision precision);

#define EACH_PRECISION(ops)                                                                                  \
    for (enum precision precision = PRECISION_FP32; precision < PRECISIONS; precision++)                     \
        for (const struct ops *ops = ops_of(precision); ops; ops = NULL)

/* Set-up of a group of tests: takes the backend under test, which is the emulated device unless
 * GDN_TEST_BACKEND names one. */
int device_begin(void **state);

#endif
