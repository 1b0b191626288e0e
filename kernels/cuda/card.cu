/* Which card this process takes, what it is, and what is missing where there is none. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>

static cudaDeviceProp card;
static int driver, runtime; /* versions of CUDA: 1000·major + 10·minor; 0: no driver */

static const char *visible(void) {
    static char words[200];
    const char *asked = getenv("CUDA_VISIBLE_DEVICES");
    if (!asked) return "and CUDA_VISIBLE_DEVICES is not set";
    snprintf(words, sizeof words, "as CUDA_VISIBLE_DEVICES is '%.100s'", asked);
    return words;
}

/* How many cards there are; 0 with a failure. */
static int cards(void) {
    int count = 0;
    /* Streams that share one of a card's queues wait for each other; by default there are 8 queues. */
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
        cuda_fail("no card is visible, %s", visible());
    else
        cuda_fail("the cards cannot be counted: %s", cudaGetErrorString(error));
    return 0;
}

bool card_take(int local) {
    int count = cards();
    return count > 0 && !cuda_failed(cudaSetDevice(local % count), "taking a card") &&
           !cuda_failed(cudaGetDeviceProperties(&card, local % count), "asking for the card's properties");
}

int cuda_architecture(void) {
    return 10 * card.major + card.minor;
}

int card_number(void) {
    return (card.pciDomainID << 16 | card.pciBusID << 8 | card.pciDeviceID) & 0x7fffffff;
}

/* The kernel module's version, or what CUDA the driver serves. */
static void describe_driver(char *words, size_t size) {
    char version[64];
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    if (file && fscanf(file, "%63s", version) == 1)
        snprintf(words, size, "driver %s", version);
    else
        snprintf(words, size, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    if (file) fclose(file);
}

const char *card_describe(void) {
    static char words[400];
    char version[80];
    describe_driver(version, sizeof version);
    snprintf(words, sizeof words, "%s, %.1f GiB, sm_%d, %s", card.name,
             (double)card.totalGlobalMem / (1 << 30), cuda_architecture(), version);
    return words;
}
