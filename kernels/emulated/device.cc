/* The emulated device's properties. */
#include "emulated.h"

#include <stdio.h>
#include <unistd.h>

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
    p->maxThreadsPerBlock = BLOCK_MAX;
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
