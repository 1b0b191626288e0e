#include "train/deltas/gates.h"

#include <math.h>

/* The last bin has its upper end too; rounding may put a gate a little outside [0, 1]. */
static int bin_of(double gate) {
    double place = gate * DELTA_BINS;
    return place < 1 ? 0 : place < DELTA_BINS ? (int)place : DELTA_BINS - 1;
}

/* All but the deviations; `mean` is the sum. */
static void add_row(struct gates *g, const real *gate, long width) {
    double sum = 0, min = g->min, max = g->max;
    for (long i = 0; i < width; i++) {
        double x = gate[i];
        if (!isfinite(x)) {
            g->strange++;
            continue;
        }
        sum += x;
        min = x < min ? x : min;
        max = x > max ? x : max;
        g->bin[bin_of(x)]++;
    }
    g->mean += sum, g->min = min, g->max = max;
}

static double squares_of_row(const real *gate, long width, double mean) {
    double sum = 0;
    for (long i = 0; i < width; i++)
        if (isfinite(gate[i])) sum += (gate[i] - mean) * (gate[i] - mean);
    return sum;
}

void gates_measure(const real *gate, long T, long width, long ld, struct gates *out) {
    *out = (struct gates){0};
    if (!gate) return;
    out->min = INFINITY, out->max = -INFINITY;
    for (long t = 0; t < T; t++) add_row(out, gate + t * ld, width);
    out->count = (double)(T * width) - out->strange;
    if (!out->count) {
        *out = (struct gates){.strange = out->strange};
        return;
    }
    out->mean /= out->count;
    for (long t = 0; t < T; t++) out->squares += squares_of_row(gate + t * ld, width, out->mean);
}

static void join(struct gates *all, const struct gates *part) {
    all->strange += part->strange;
    if (!part->count) return;
    double count = all->count + part->count, apart = part->mean - all->mean;
    all->squares += part->squares + apart * apart * all->count * part->count / count;
    all->mean += apart * part->count / count;
    all->min = all->count ? fmin(all->min, part->min) : part->min;
    all->max = all->count ? fmax(all->max, part->max) : part->max;
    for (int i = 0; i < DELTA_BINS; i++) all->bin[i] += part->bin[i];
    all->count = count;
}

void gates_join(const struct gates *part, int count, struct gates *out) {
    *out = (struct gates){0};
    for (int i = 0; i < count; i++) join(out, &part[i]);
}

void gates_record(const struct gates *gates, struct delta_record *record) {
    record->gate_mean = gates->mean;
    record->gate_deviation = gates->count ? sqrt(gates->squares / gates->count) : 0;
    record->gate_least = gates->min;
    record->gate_most = gates->max;
    for (int i = 0; i < DELTA_BINS; i++) record->gate_histogram[i] = (int64_t)gates->bin[i];
}
