/* Where cautious weight decay waits (Chen et al. 2025; model.md, 6), on every backend. C and CUDA. */
#ifndef GDN_DECAY_H
#define GDN_DECAY_H

#include <stdbool.h>

#include "kernels/base/real.h"

#ifdef __CUDACC__
#define DECAY_FUNCTION __host__ __device__ static inline
#else
#define DECAY_FUNCTION static inline
#endif

/* Whether an update, which is subtracted, takes a weight away from zero, so that decay would pull it back. By
 * signs, since a product of small numbers may vanish; without jumps, for vector units. */
DECAY_FUNCTION bool decay_opposed(real update, real weight) {
    return ((update > 0) & (weight < 0)) | ((update < 0) & (weight > 0));
}

#undef DECAY_FUNCTION
#endif
