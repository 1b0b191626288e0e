/* Initial weights (model.md, 7). */
#include "model/params/params.h"
#include "kernels/base/random.h"

#include <math.h>
#include <string.h>

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), e = strlen(end);
    return n >= e && !strcmp(name + n - e, end);
}

/* How a tensor starts: the same number everywhere, or a normal distribution of this width (model.md, 7). */
static double initial_constant(const struct model_config *model, const struct row *row, double *width) {
    const char *name = row->name;
    *width = 0;
    if (ends_with(name, "norm.weight")) return 1;
    if (ends_with(name, ".bias")) return 0;
    if (ends_with(name, ".mix")) return model->delta.kind == KIND_BOTTLENECK ? 1 : 0;
    if (ends_with(name, ".scale")) return sqrt(model->hidden_size);
    if (ends_with(name, ".output_proj.weight")) return 0;
    *width = 0.02;
    if (ends_with(name, ".o_proj.weight") || ends_with(name, ".down_proj.weight"))
        *width /= sqrt(2.0 * model->num_layers);
    return 0;
}

void params_init(const struct model_config *model, const struct row *row, uint64_t seed, real *weight) {
    double width, constant = initial_constant(model, row, &width);
    uint64_t what = random_name(row->name);
    for (long i = 0; i < row->local[0]; i++)
        for (long j = 0; j < row->local[1]; j++) {
            /* In the order on disk, whatever memory's is. */
            uint64_t element = (uint64_t)((row->start[0] + i) * row->shape[1] + row->start[1] + j);
            double w = width ? width * random_normal(seed, what, element) : constant;
            long at = row->transposed ? j * row->local[0] + i : i * row->local[1] + j;
            weight[at] = (real)(float)w; /* float32 also in a double build: the same model */
        }
}
