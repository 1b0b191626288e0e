/* Initial weights (model.md, 7). */
#include "kernels/base/random.h"
#include "model/table/params.h"

void params_init(const struct row *row, uint64_t seed, real *weight) {
    double width = row->start_width;
    uint64_t what = random_name(row->name);
    for (long i = 0; i < row->local[0]; i++)
        for (long j = 0; j < row->local[1]; j++) {
            /* In the order on disk, whatever memory's is. */
            uint64_t element = (uint64_t)((row->start[0] + i) * row->shape[1] + row->start[1] + j);
            double w = width ? width * random_normal(seed, what, element) : row->start_value;
            long at = row->transposed ? j * row->local[0] + i : i * row->local[1] + j;
            weight[at] = (real)(float)w; /* float32 also in a double build: the same model */
        }
}

void params_init_all(const struct table *table, uint64_t seed, real *weight) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < table->rows; i++) params_init(&table->row[i], seed, weight + table->row[i].offset);
}
