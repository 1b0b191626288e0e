#include "tests/train/deltas/made_up.h"

#include "kernels/base/random.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_DISTANCES = 16 };

static real *numbers(long count, const char *what, uint64_t place) {
    real *x = malloc((size_t)count * sizeof *x);
    for (long i = 0; x && i < count; i++) x[i] = (real)random_normal(place, random_name(what), (uint64_t)i);
    return x;
}

struct delta_record made_up_record(int64_t step, int layer, int distance, const struct made_up *shape) {
    uint64_t place = (uint64_t)step * 10007 + (uint64_t)layer * 101 + (uint64_t)distance;
    double u = random_uniform(place, random_name("record"), 0);
    struct delta_record r = {.step = step,
                             .layer = layer,
                             .distance = distance,
                             .source = layer - distance,
                             .batch = shape->batch,
                             .length = shape->length,
                             .gate_mean = 0.3 + 0.2 * u,
                             .gate_deviation = 0.05 + 0.1 * u,
                             .gate_least = 0.01 * u,
                             .gate_most = 1 - 0.01 * u};
    long T = shape->batch * shape->length;
    struct factors *f = &r.factors;
    *f = (struct factors){.T = T, .D = shape->hidden, .rank = shape->rank, .error = 0.1 * u};
    f->u = numbers(T * f->rank, "U", place);
    f->vt = numbers(f->rank * f->D, "Vt", place);
    f->sigma = numbers(f->rank, "sigma", place);
    double squares = 0;
    for (long i = 0; f->sigma && i < f->rank; i++) {
        f->sigma[i] = (real)((1 + 3 * u) * pow(0.3 + 0.5 * u, (double)i));
        squares += (double)f->sigma[i] * (double)f->sigma[i];
    }
    f->norm = sqrt(squares / (1 - f->error * f->error));
    for (int i = 0; i < DELTA_BINS; i++) r.gate_histogram[i] = (int64_t)(place % 7 + 1) * i;
    return r;
}

bool made_up_file(const char *directory, int64_t step, int layer, int distances, const struct made_up *shape,
                  char path[4096]) {
    struct delta_record record[MAX_DISTANCES] = {0};
    void *image = NULL;
    size_t bytes;
    for (int d = 0; d < distances; d++) record[d] = made_up_record(step, layer, d + 1, shape);
    bool written = !delta_file_image(record, distances, &image, &bytes) &&
                   !delta_file_write(directory, step, layer, image, bytes, path);
    for (int d = 0; d < distances; d++) delta_record_free(&record[d]);
    free(image);
    return written;
}
