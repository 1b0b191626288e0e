/* The emulated device's properties, and errors: the first fault stays, as CUDA's do. */
#include "emulated.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static cudaError_t first_fault, last;
static char words[512];

void fault(cudaError_t error, const char *format, ...) {
    if (first_fault) return;
    first_fault = error;
    int used = snprintf(words, sizeof words, "%s: ", running ? running : "the host");
    va_list list;
    va_start(list, format);
    vsnprintf(words + used, sizeof words - (size_t)used, format, list);
    va_end(list);
}

cudaError_t faulted(void) {
    return first_fault;
}

cudaError_t returned(cudaError_t error) {
    if (error) last = error;
    return error;
}

const char *cudaGetErrorString(cudaError_t error) {
    if (error && error == first_fault) return words;
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    }
    return "unknown error";
}

cudaError_t cudaPeekAtLastError(void) {
    return first_fault ? first_fault : last;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = cudaPeekAtLastError();
    last = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return returned(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
    size_t free;
    *p = {};
    snprintf(p->name, sizeof p->name, "emulated device");
    p->major = 9;
    p->multiProcessorCount = 4;
    p->maxThreadsPerBlock = BLOCK_MOST;
    p->warpSize = WARP_SIZE;
    p->pciDomainID = getpid() >> 16, p->pciBusID = getpid() >> 8 & 255, p->pciDeviceID = getpid() & 255;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = 227 << 10;
    return cudaMemGetInfo(&free, &p->totalGlobalMem);
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
