#include "train/bench/nominal.h"

#include <stddef.h>
#include <string.h>

/* From NVIDIA's data sheets "H100 Tensor Core GPU" (2023, three forms), "H200 Tensor Core GPU" (2024) and
 * "A100 Tensor Core GPU" (2022). Those give sums with structured sparsity for 16 and 8 bits: here halved.
 * fp32 is of the ordinary units, since tf32 is off. Names are the driver's, whole, so that a part of a GPU
 * (MIG) is no match. */
static const struct {
    const char *name;
    double tflops[PRECISIONS], copy; /* TFLOP/s, TB/s */
} gpus[] = {
    {"NVIDIA H200", {67, 989.5, 989.5, 1979}, 4.8},
    {"NVIDIA H200 NVL", {60, 835.5, 835.5, 1670.5}, 4.8},
    {"NVIDIA H100 80GB HBM3", {67, 989.5, 989.5, 1979}, 3.35},
    {"NVIDIA H100 NVL", {60, 835.5, 835.5, 1670.5}, 3.9},
    {"NVIDIA H100 PCIe", {51, 756.5, 756.5, 1513}, 2.0},
    {"NVIDIA A100-SXM4-80GB", {19.5, 312, 312, 0}, 2.039},
    {"NVIDIA A100 80GB PCIe", {19.5, 312, 312, 0}, 1.935},
    {"NVIDIA A100-SXM4-40GB", {19.5, 312, 312, 0}, 1.555},
    {"NVIDIA A100-PCIE-40GB", {19.5, 312, 312, 0}, 1.555},
};
enum { GPUS = sizeof gpus / sizeof *gpus };

/* Its row in `gpus`; GPUS: none. */
static int find(const char *description) {
    size_t length = strcspn(description, ",");
    int i = 0;
    while (i < GPUS && (strlen(gpus[i].name) != length || memcmp(gpus[i].name, description, length) != 0))
        i++;
    return i;
}

double nominal_flops(const char *description, enum precision precision) {
    int i = find(description);
    return i < GPUS ? 1e12 * gpus[i].tflops[precision] : 0;
}

double nominal_copy(const char *description) {
    int i = find(description);
    return i < GPUS ? 1e12 * gpus[i].copy : 0;
}
