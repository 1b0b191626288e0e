/* Dropout of attention's probabilities by masks (kernels/base/mask.h), in tiles. A kernel is a template of
 * what it drops, so that one that keeps all has no instruction, register or byte of shared memory of it. Rows
 * of a mask are queries: their keys are computed once for a tile, by a thread each, and lie in shared memory.
 */
#ifndef GDN_CUDA_ATTENTION_DROP_H
#define GDN_CUDA_ATTENTION_DROP_H

#include "kernels/base/mask.h"
#include "kernels/cuda/attention_tile.h"

struct keep_all {
    enum { SOME = 0 };
};

struct drop_some {
    enum { SOME = 1 };
    uint64_t site, head, row; /* of the first head and sequence */
    uint32_t column, limit;
    float over; /* 1/(1 − p), the factor of what is kept */
};

/* Of a mask whose rows and columns are positions. */
static inline struct drop_some drops_of(const struct mask *mask, const struct heads *s) {
    struct drop_some drops;
    drops.site = mask->site, drops.head = mask->head, drops.row = mask->row + (uint64_t)(s->key + s->ahead);
    drops.column = (uint32_t)(mask->column + (uint64_t)s->key), drops.limit = mask_limit(mask->p);
    drops.over = (float)(1 / (1 - mask->p));
    return drops;
}

/* Calls run with what a mask drops; NULL: nothing. */
template <class Run> static inline void with_drops(const struct mask *mask, const struct heads *s, Run run) {
    if (mask)
        run(drops_of(mask, s));
    else
        run(keep_all());
}

/* The masks' keys of a tile's queries. */
template <class drops, int QUERIES> struct row_keys { uint64_t key[QUERIES]; };
template <int QUERIES> struct row_keys<struct keep_all, QUERIES> {};

/* A whole block computes those of head h of sequence b from `query` on. */
template <class drops, int QUERIES>
static __device__ inline void load_keys(row_keys<drops, QUERIES> *to, const drops *d, const struct heads *s,
                                        long b, long h, long query) {
    if constexpr (drops::SOME)
        for (int i = (int)threadIdx.x; i < QUERIES; i += ATTENTION_THREADS)
            to->key[i] = mask_row(d->site, d->head + (uint64_t)h, d->row + (uint64_t)(b * s->S + query + i));
}

/* Is a query's probability of key number `key` of its sequence kept? */
static __device__ inline bool is_kept(const struct drop_some *d, uint64_t row_key, long key) {
    return mask_bits(row_key, d->column + (uint32_t)key) >= d->limit;
}

#endif
