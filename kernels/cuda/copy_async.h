/* Copies from the device's memory to shared memory that go on while the thread does (PTX ISA, "cp.async").
 *
 * Elsewhere than on a GPU they arrive when they are waited for, so that who reads too early is seen. */
#ifndef GDN_COPY_ASYNC_H
#define GDN_COPY_ASYNC_H

#include "kernels/cuda/cuda.h"

#ifdef __CUDACC__

/* BYTES, 4 or 16, and as well aligned; zeros where there is nothing. */
template <int BYTES> static __device__ inline void copy_async(void *to, const void *from, bool there) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to), bytes = there ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes)
                     : "memory");
}

/* Waits for the thread's own copies; a barrier then makes them known to all. */
static __device__ inline void copies_arrived(void) {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

#else

#include <stdlib.h>
#include <string.h>

enum { MAX_COPIES = 64, MAX_THREADS = 128 };

/* What a thread has on its way: it arrives when waited for and no earlier. */
static struct copies_under_way {
    int count;
    struct {
        void *to;
        const void *from;
        int bytes;
    } copy[MAX_COPIES];
} copies_of_thread[MAX_THREADS];

template <int BYTES> static inline void copy_async(void *to, const void *from, bool there) {
    struct copies_under_way *mine = &copies_of_thread[threadIdx.x];
    if (threadIdx.x >= MAX_THREADS || mine->count == MAX_COPIES || (uintptr_t)to % BYTES ||
        (uintptr_t)from % BYTES)
        abort();
    mine->copy[mine->count].to = to;
    mine->copy[mine->count].from = there ? from : NULL;
    mine->copy[mine->count++].bytes = BYTES;
}

static inline void copies_arrived(void) {
    struct copies_under_way *mine = &copies_of_thread[threadIdx.x];
    for (int i = 0; i < mine->count; i++)
        if (mine->copy[i].from)
            memcpy(mine->copy[i].to, mine->copy[i].from, (size_t)mine->copy[i].bytes);
        else
            memset(mine->copy[i].to, 0, (size_t)mine->copy[i].bytes);
    mine->count = 0;
}

#endif

#endif
