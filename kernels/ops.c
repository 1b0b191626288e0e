#include "kernels/ops.h"

const char *const precision_word[PRECISIONS] = {"fp32", "bf16", "fp16", "fp8"};
