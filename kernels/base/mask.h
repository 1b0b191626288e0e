/* Masks of dropout: whether an element is kept is a function of its place alone, so that nothing is stored
 * and a mesh, the size of micro-batches, recomputation and a restart change nothing. Numbers by place
 * (random.h) are costly for each element of each activation, so a row has one of them as its key, and an
 * element's 32 bits are the key and its column mixed: two multiplications. The file is for the GPU too. */
#ifndef GDN_MASK_H
#define GDN_MASK_H

#include <stdint.h>

#include "kernels/base/random.h"

/* Where and how much is dropped of a matrix, whose rows and columns are numbered over all ranks. */
struct mask {
    uint64_t site;   /* the key of the place in one step */
    uint64_t head;   /* of several matrices of a site, the first one at hand */
    uint64_t row;    /* the first row at hand */
    uint64_t column; /* the first column */
    double p;        /* the part that is dropped, in [0, 1): what is kept is multiplied by 1/(1 − p) */
};

/* The same of the matrix `head` from `row` on. */
static inline struct mask mask_at(const struct mask *mask, long head, long row) {
    struct mask at = *mask;
    at.head += (uint64_t)head, at.row += (uint64_t)row;
    return at;
}

/* The same of some rows and columns of it. */
static inline struct mask mask_part(const struct mask *mask, long row, long column) {
    struct mask part = *mask;
    part.row += (uint64_t)row, part.column += (uint64_t)column;
    return part;
}

/* The key of a row. */
static RANDOM_EVERYWHERE inline uint64_t mask_row(uint64_t site, uint64_t head, uint64_t row) {
    uint32_t o[4];
    random_philox(site, head, row, o);
    return (uint64_t)o[1] << 32 | o[0];
}

/* The 32 bits of a column of a row: a bijection of 32-bit numbers with little bias (C. Wellons, "Prospecting
 * for hash functions", 2018), with the row's key in front of either multiplication. */
static RANDOM_EVERYWHERE inline uint32_t mask_bits(uint64_t row_key, uint32_t column) {
    uint32_t x = column ^ (uint32_t)row_key;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x ^= (uint32_t)(row_key >> 32);
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/* Bits below the limit are dropped: p to within 2⁻³². */
static RANDOM_EVERYWHERE inline uint32_t mask_limit(double p) {
    return (uint32_t)(p * 4294967296.0);
}

#endif
