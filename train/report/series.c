#include "train/report/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

int report_no_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for the report");
}

void series_cut(struct series *series, double x) {
    while (series->count > 0 && series->x[series->count - 1] >= x) series->count--;
}

int series_push(struct series *series, double x, double y) {
    if (series->count == series->room) {
        long room = series->room ? 2 * series->room : 256;
        double *xs = realloc(series->x, (size_t)room * sizeof *xs);
        if (xs) series->x = xs;
        double *ys = realloc(series->y, (size_t)room * sizeof *ys);
        if (ys) series->y = ys;
        if (!xs || !ys) return report_no_memory();
        series->room = room;
    }
    series->x[series->count] = x, series->y[series->count] = y;
    series->count++;
    return GDN_OK;
}

int series_add(struct series *series, double x, double y) {
    series_cut(series, x);
    return isfinite(y) ? series_push(series, x, y) : GDN_OK;
}

void series_free(struct series *series) {
    free(series->x);
    free(series->y);
    *series = (struct series){0};
}

double series_sum(const struct series *series) {
    double sum = 0;
    for (long i = 0; i < series->count; i++) sum += series->y[i];
    return sum;
}

static int rising(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted numbers, at least one. */
static double quantile_of(const double *sorted, long count, double q) {
    double at = q * (double)(count - 1);
    long below = (long)at;
    if (below >= count - 1) return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

static double *sorted_copy(const double *y, long count) {
    double *copy = malloc((size_t)count * sizeof *copy);
    if (!copy) return NULL;
    memcpy(copy, y, (size_t)count * sizeof *copy);
    qsort(copy, (size_t)count, sizeof *copy, rising);
    return copy;
}

int series_quantile(const struct series *series, double q, double *out) {
    *out = NAN;
    if (series->count == 0) return GDN_OK;
    double *sorted = sorted_copy(series->y, series->count);
    if (!sorted) return report_no_memory();
    *out = quantile_of(sorted, series->count, q);
    free(sorted);
    return GDN_OK;
}

/* Sums of the first 0, 1, …, count values, less the first one, which keeps digits where all are large. */
static double *running_sums(const struct series *series) {
    double *sum = malloc((size_t)(series->count + 1) * sizeof *sum);
    if (!sum) return NULL;
    sum[0] = 0;
    for (long i = 0; i < series->count; i++) sum[i + 1] = sum[i] + (series->y[i] - series->y[0]);
    return sum;
}

/* A straight line: what the last points lie around. */
struct line {
    long centre; /* the point in the middle of those it was fitted to */
    double mean, slope;
};

/* The least-squares line through the last 2 · reach + 1 points. */
static struct line fit_end(const struct series *series, const double *sum, long reach) {
    long count = series->count, centre = count - 1 - reach, points = 2 * reach + 1;
    struct line line = {.centre = centre,
                        .mean = series->y[0] + (sum[count] - sum[count - points]) / (double)points};
    double products = 0, squares = 0;
    for (long d = -reach; d <= reach; d++) {
        products += (double)d * (series->y[centre + d] - line.mean);
        squares += (double)d * (double)d;
    }
    line.slope = squares > 0 ? products / squares : 0;
    return line;
}

/* At the beginning as many points on both sides as there are: a loss starts with a fall, which is real. At
 * the end the line through the last window, which as a mean ends in the middle of it: means of ever fewer
 * points would end in a single one, and whatever that one happens to be would look like the run's last
 * turn. */
static double smoothed(const struct series *series, const double *sum, const struct line *end, long i,
                       long reach) {
    if (i > end->centre) return end->mean + end->slope * (double)(i - end->centre);
    if (reach > i) reach = i;
    return series->y[0] + (sum[i + reach + 1] - sum[i - reach]) / (double)(2 * reach + 1);
}

int series_bins(const struct series *series, long max, long window, struct bins *out) {
    long count = series->count, room = count < max ? count : max;
    *out = (struct bins){.points = count <= max};
    if (count == 0) return GDN_OK;
    double *sum = running_sums(series);
    out->bin = malloc((size_t)room * sizeof *out->bin);
    if (!sum || !out->bin) {
        free(sum);
        bins_free(out);
        return report_no_memory();
    }
    const long reach = window / 2 < (count - 1) / 2 ? window / 2 : (count - 1) / 2;
    const struct line end = fit_end(series, sum, reach);
    double first = series->x[0], width = (series->x[count - 1] - first) / (double)max;
    long place = -1, points = 0;
    for (long i = 0; i < count; i++) {
        long here = out->points ? i : width > 0 ? (long)((series->x[i] - first) / width) : 0;
        if (here >= max) here = max - 1;
        double y = series->y[i], mean = smoothed(series, sum, &end, i, reach);
        if (here != place) {
            place = here, points = 0;
            out->bin[out->count++] = (struct bin){.low = y, .high = y};
        }
        struct bin *bin = &out->bin[out->count - 1];
        points++;
        bin->x += (series->x[i] - bin->x) / (double)points;
        bin->y += (mean - bin->y) / (double)points;
        bin->low = fmin(bin->low, y), bin->high = fmax(bin->high, y);
    }
    free(sum);
    return GDN_OK;
}

void bins_free(struct bins *bins) {
    free(bins->bin);
    *bins = (struct bins){0};
}

int series_spread(const struct series *series, long max, long min, const double *q, int count,
                  struct series *out) {
    long stretches = series->count / min;
    if (stretches > max) stretches = max;
    if (stretches < 1) stretches = 1;
    for (int k = 0; k < count; k++) out[k] = (struct series){0};
    for (long s = 0; s < stretches && series->count; s++) {
        long from = series->count * s / stretches, to = series->count * (s + 1) / stretches;
        double *sorted = sorted_copy(series->y + from, to - from);
        if (!sorted) return report_no_memory();
        double middle = (series->x[from] + series->x[to - 1]) / 2;
        int status = GDN_OK;
        for (int k = 0; k < count && !status; k++)
            status = series_push(&out[k], middle, quantile_of(sorted, to - from, q[k]));
        free(sorted);
        TRY(status);
    }
    return GDN_OK;
}
