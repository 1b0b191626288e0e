/* The module's entry: opens the GPU, and makes a table of operations for each precision that it has. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/parts.h"

static struct ops tables[PRECISIONS];
static bool filled[PRECISIONS];

static void fill(struct ops *ops, enum precision precision) {
    ops->name = cuda_name;
    ops->precision = precision;
    ops->device = &cuda_device;
    cuda_vectors(ops);
    cuda_sums(ops);
    cuda_columns(ops);
    cuda_bf16(ops);
    cuda_sources(ops);
    cuda_embed(ops);
    cuda_norm(ops);
    cuda_rope(ops);
    cuda_swiglu(ops);
    cuda_loss(ops);
    cuda_delta_vectors(ops);
    cuda_delta_rows(ops);
    cuda_delta_gated(ops);
    cuda_delta_gates(ops);
    cuda_delta_bottleneck(ops);
    cuda_delta_entropy(ops);
    cuda_delta_mixing(ops);
    cuda_depth_attention(ops);
    cuda_streams(ops);
    cuda_attention(ops, precision);
    cuda_gemm(ops, precision);
}

/* What the GPU must be; the oldest that the backend is built for is sm_80. */
static const struct {
    const char *name;
    int arch;
} needs[PRECISIONS] = {{"fp32", 80}, {"bf16", 80}, {"fp16", 80}, {"fp8", 89}};

static const struct ops *ops_of(enum precision precision) {
    if (cuda_architecture() < needs[precision].arch) {
        cuda_fail("%s needs a GPU of sm_%d or newer, this is %s", needs[precision].name,
                  needs[precision].arch, cuda_device.describe());
        return NULL;
    }
    if (!filled[precision]) fill(&tables[precision], precision);
    filled[precision] = true;
    return &tables[precision];
}

extern "C" __attribute__((visibility("default"))) const struct accelerator *
gdn_accelerator(gdn_fail_function *fail, int local);

const struct accelerator *gdn_accelerator(gdn_fail_function *fail, int local) {
    static const struct accelerator accelerator = {&cuda_device, ops_of};
    static bool opened;
    opened = opened || cuda_open(fail, local);
    return opened ? &accelerator : NULL;
}
