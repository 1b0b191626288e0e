/* Which GPU this process takes, what it is, and what is missing where there is none. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>

static cudaDeviceProp gpu;
static int driver, runtime; /* versions of CUDA: 1000·major + 10·minor; 0: no driver */

static const char *visible(void) {
    static char text[200];
    const char *asked = getenv("CUDA_VISIBLE_DEVICES");
    if (!asked) return "and CUDA_VISIBLE_DEVICES is not set";
    snprintf(text, sizeof text, "as CUDA_VISIBLE_DEVICES is '%.100s'", asked);
    return text;
}

/* How many GPUs there are; 0 with a failure. */
static int gpus(void) {
    int count = 0;
    /* Streams that share one of a GPU's queues wait for each other; by default there are 8 queues. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (error == cudaSuccess && count > 0) return count;
    if (error == cudaErrorInsufficientDriver && driver == 0)
        cuda_fail("this machine has no NVIDIA driver (libcuda.so.1 cannot be loaded)");
    else if (error == cudaErrorInsufficientDriver)
        cuda_fail("the NVIDIA driver is too old: it serves CUDA up to %d.%d, and this is built with %d.%d",
                  driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    else if (error == cudaSuccess || error == cudaErrorNoDevice)
        cuda_fail("no GPU is visible, %s", visible());
    else
        cuda_fail("the GPUs cannot be counted: %s", cudaGetErrorString(error));
    return 0;
}

bool gpu_take(int local) {
    int count = gpus();
    return count > 0 && !cuda_failed(cudaSetDevice(local % count), "taking a GPU") &&
           !cuda_failed(cudaGetDeviceProperties(&gpu, local % count), "asking for the GPU's properties");
}

int cuda_architecture(void) {
    return 10 * gpu.major + gpu.minor;
}

int gpu_number(void) {
    return (gpu.pciDomainID << 16 | gpu.pciBusID << 8 | gpu.pciDeviceID) & 0x7fffffff;
}

/* The kernel module's version, or what CUDA the driver serves. */
static void describe_driver(char *text, size_t size) {
    char version[64];
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    if (file && fscanf(file, "%63s", version) == 1)
        snprintf(text, size, "driver %s", version);
    else
        snprintf(text, size, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    if (file) fclose(file);
}

const char *gpu_describe(void) {
    static char text[400];
    char version[80];
    describe_driver(version, sizeof version);
    snprintf(text, sizeof text, "%s, %.1f GiB, sm_%d, %s", gpu.name, (double)gpu.totalGlobalMem / (1 << 30),
             cuda_architecture(), version);
    return text;
}
