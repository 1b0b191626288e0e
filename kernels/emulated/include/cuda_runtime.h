/* The emulated device: a stand-in for the part of CUDA that kernels/cuda uses, so that its sources can be
 * compiled by the host's C++ compiler and tested on machines without a GPU.
 *
 * It is for tests alone and is called "emulated" wherever a user can see it. It shows whether the kernels
 * compute the right numbers and whether they keep CUDA's rules, some of them more strictly than a GPU would:
 * see emulated.h for what is checked. It says nothing about speed, and it does not see data races within a
 * warp or between blocks.
 *
 * This header has the host's side, emulated_kernel.h what kernels see; names and meanings are CUDA's. */
#ifndef GDN_EMULATED_CUDA_RUNTIME_H
#define GDN_EMULATED_CUDA_RUNTIME_H

#include <functional>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "emulated_kernel.h"

#define CUDART_VERSION 13000

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorStreamCaptureIsolation = 905,
    cudaErrorCapturedEvent = 907,
};

typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;
typedef struct emulated_graph *cudaGraph_t, *cudaGraphExec_t;

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin;
    int major, minor, multiProcessorCount, maxThreadsPerBlock, warpSize;
    int pciDomainID, pciBusID, pciDeviceID; /* the process: each has a GPU of its own */
};

enum {
    cudaStreamNonBlocking = 1,
    cudaEventDisableTiming = 2,
    cudaHostAllocDefault = 0,
    cudaMemAttachGlobal = 1
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

const char *cudaGetErrorString(cudaError_t error); /* of a fault in a kernel: what happened, in words */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaDeviceSynchronize(void);

cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned flags = cudaMemAttachGlobal);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);

struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

/* ------------------------------------------------------------------ the emulator's own */

/* Queues a launch: `kernel` is called once for each thread. `function` is the kernel's address. */
cudaError_t emulated_launch(const cudaLaunchConfig_t *config, const void *function,
                            std::function<void()> kernel);
cudaError_t emulated_attribute(const void *function, cudaFuncAttribute attribute, int value);
/* Names the next launch, for messages. */
void emulated_name(const char *name);

/* Queues work of a library's stand-in; `name` is for messages. */
cudaError_t emulated_enqueue(cudaStream_t stream, const char *name, std::function<void()> work);
/* The same of work that waits for another process until `ready` says so; other streams go on meanwhile. */
cudaError_t emulated_enqueue_when(cudaStream_t stream, const char *name, std::function<bool()> ready,
                                  std::function<void()> work);
/* Does whatever can be done without waiting for another process. */
void emulated_rest(void);

template <typename... Parameters, typename... Arguments>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                             Arguments... arguments) {
    static_assert((sizeof(Parameters) + ... + 0) <= 4096, "a kernel takes up to 4 KiB of parameters");
    return emulated_launch(config, (const void *)kernel, [=] { kernel(arguments...); });
}

template <typename... Parameters>
static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                               int value) {
    return emulated_attribute((const void *)kernel, attribute, value);
}

#endif
