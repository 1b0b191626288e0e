/* What the CUDA backend's files share: launches, scratch memory, failures, sums over warps and blocks.
 *
 * They are compiled twice: by nvcc, and by the host's C++ compiler against kernels/emulated, which runs them
 * on machines without a GPU. So kernels keep to what emulated/include offers. Sums have a fixed order that
 * depends on shapes alone. */
#ifndef GDN_CUDA_H
#define GDN_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

extern "C" {
#include "kernels/accelerator.h"
#include "kernels/ops.h"
}

enum { WARP = 32 };
enum { CUDA_WEIGHT_IDS = 4096 }; /* weights that have scales of their own: device.h, weight_ids */
static const size_t WORKSPACE_BYTES = (size_t)64 << 20;

/* ------------------------------------------------------------------ the host's side: context.cu */

/* Operations are queued on this stream: whoever asks for it may queue something. */
cudaStream_t cuda_stream(void);
/* How often it was asked for. While that stays, nothing was queued that could change what operations read;
 * nor did the host, which touches the device's memory after a wait for this stream alone. */
uint64_t cuda_queued(void);
/* And communication here. */
cudaStream_t cuda_talk(void);
/* Called again and again while the host waits for the device, which may wait for other processes. NULL:
 * nobody asks. */
extern void (*cuda_watch)(void);
/* Called once what was recorded has been queued again. NULL: nobody asks. */
extern void (*cuda_repeated)(void);
/* Whether operations are recorded now. */
bool cuda_recording(void);
/* After a failure: no recording is repeated any more, nor is one that is under way finished. */
void cuda_drop_recordings(void);
/* nccl.cu: device communicators to other processes' GPUs, or NULL. */
const struct device_comm_ops *cuda_device_comm(void);

/* Scratch memory on the device for one call of an operation, up to WORKSPACE_BYTES, 256-byte aligned. All
 * calls are given the same: what one leaves there lasts until the next is queued. */
void *workspace(size_t bytes);

/* Where `error` is one, records the first failure with what was being done; returns whether it is. */
bool cuda_failed(cudaError_t error, const char *what);

int cuda_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool cuda_has_failed(void);

/* Zeroed device memory; NULL where there is none left. */
void *cuda_reserve(size_t bytes);

extern const char *const cuda_name; /* "cuda" or "emulated" */

/* For device.cu, which opens the GPU: how failures are recorded; and once it is chosen, streams and scratch
 * memory. */
void cuda_begin(gdn_fail_function *fail);
bool cuda_make_streams(void);

static __host__ __device__ inline long ceil_div(long a, long b) {
    return (a + b - 1) / b;
}

template <typename... Parameters, typename... Arguments>
static inline void cuda_launch(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                               size_t shared, Arguments... arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = cuda_stream();
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
#ifdef GDN_EMULATED
    emulated_name(name);
#endif
    cuda_failed(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), name);
}

/* Queues kernel<<<grid, block, shared_bytes>>>(arguments); with an empty grid nothing. A kernel's name that
 * holds commas is put in parentheses. */
#define LAUNCH(kernel, grid, block, shared_bytes, ...)                                                       \
    cuda_launch(#kernel, kernel, grid, block, shared_bytes, __VA_ARGS__)

/* In a kernel: whether a lane may leave out what others of its warp do, since nothing comes of it. It saves a
 * GPU, whose lanes go together, nothing; the emulated device's go one after the other. */
#ifdef GDN_EMULATED
#define IDLE(lane_has_nothing_to_do) (lane_has_nothing_to_do)
#else
#define IDLE(lane_has_nothing_to_do) false
#endif

/* In a kernel: `type *name`, the dynamic shared memory that launch_tiles (attention.h) asked for. */
#ifdef GDN_EMULATED
#define DYNAMIC_SHARED(type, name) type *name = (type *)emulated_dynamic_shared()
#else
#define DYNAMIC_SHARED(type, name)                                                                           \
    extern __shared__ __align__(16) unsigned char dynamic_shared[];                                          \
    type *name = reinterpret_cast<type *>(dynamic_shared)
#endif

/* ------------------------------------------------------------------ sums and maxima, in kernels */

/* Over a warp, all of whose threads take part; each receives the result. */
template <typename T> static __device__ inline T warp_sum(T x) {
    for (int flip = WARP / 2; flip > 0; flip /= 2) x += __shfl_xor_sync(0xffffffffu, x, flip);
    return x;
}

template <typename T> static __device__ inline T warp_max(T x) {
    for (int flip = WARP / 2; flip > 0; flip /= 2) x = max(x, __shfl_xor_sync(0xffffffffu, x, flip));
    return x;
}

/* Leaves each warp's x where all can read it: part [warps]. Blocks have one dimension, of whole warps. */
template <typename T> static __device__ inline void share_by_warp(T x, T *part) {
    __syncthreads(); /* an earlier call's have been read */
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = x;
    __syncthreads();
}

/* Over a block of one dimension, of whole warps, all of whose threads take part; each receives the result. */
template <typename T> static __device__ inline T block_sum(T x) {
    __shared__ T part[WARP];
    share_by_warp(warp_sum(x), part);
    unsigned lane = threadIdx.x % WARP;
    return warp_sum(lane < blockDim.x / WARP ? part[lane] : T(0));
}

template <typename T> static __device__ inline T block_max(T x) {
    __shared__ T part[WARP];
    share_by_warp(warp_max(x), part);
    unsigned lane = threadIdx.x % WARP;
    return warp_max(lane < blockDim.x / WARP ? part[lane] : part[0]);
}

void *cuda_scales(size_t *bytes); /* device.h, scales; scale.cu */

/* ----------------------------------------------------- graphs of context.cu for device.cu: see device.h */

void cuda_record(void);
void *cuda_recorded(void);
void cuda_repeat(void *recording);
void cuda_discard(void *recording);

/* ------------------------------------------------------------------ device.cu for module.cu */

extern const struct device cuda_device;

/* Opens the GPU of this process; false with a failure that says what is missing. */
bool cuda_open(gdn_fail_function *fail, int local);

/* ------------------------------------------------------------------ gpu.cu */

/* Takes one of the GPUs for this process; false with a failure that says what is missing. */
bool gpu_take(int local);
int cuda_architecture(void); /* 90 for sm_90 */
int gpu_number(void);        /* its place on the machine's buses: the same for all processes that use it */
const char *gpu_describe(void);

#endif
