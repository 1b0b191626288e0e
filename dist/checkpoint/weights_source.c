/* Where weights come from, tensor by tensor. */
#include "data/hdf5/h5.h"
#include "dist/checkpoint/weights.h"

#include <stdlib.h>

/* Lines of a tensor that are a block, at least one. */
static long block_lines(const struct row *row, long size) {
    long lines = H5_BLOCK_BYTES / (row->shape[1] * (long)sizeof(real));
    if (lines < 1) lines = 1;
    return lines < size ? lines : size;
}

int weight_source_each(const struct weight_source *source, const struct row *row, long from, long size,
                       weight_lines *take, void *context) {
    long step = block_lines(row, size), end = from + size;
    real *lines = malloc((size_t)(step * row->shape[1]) * sizeof *lines);
    int status = lines ? GDN_OK : gdn_fail(GDN_INTERNAL, "out of memory for tensor %s", row->name);
    for (long first = from; first < end && !status; first += step) {
        long n = end - first < step ? end - first : step;
        status = source->read(source->context, row, first, n, lines);
        if (!status) status = take(context, row, first, n, lines);
    }
    free(lines);
    return status;
}

int weight_source_need(const struct weight_source *source, const struct row *row) {
    if (source->has(source->context, row)) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s has no tensor for %s, which the model needs", source->name, row->name);
}
