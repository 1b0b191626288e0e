/* Copies, and memory that is given back: both have to do with the work that is queued. */
#include "emulated.h"

#include <stdlib.h>

cudaError_t cudaFree(void *memory) {
    if (!memory) return cudaSuccess;
    cudaDeviceSynchronize();
    return memory_give(memory);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
    *memory = malloc(bytes);
    if (!*memory) return returned(cudaErrorMemoryAllocation);
    memset(*memory, 0xff, bytes);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory) {
    cudaDeviceSynchronize();
    free(memory);
    return returned(faulted());
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
    return emulated_enqueue(stream, "a copy", [=] { memcpy(to, from, bytes); });
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    return emulated_enqueue(stream, "a clear", [=] { memory_set(memory, value, bytes); });
}
