/* A quantity over the steps of a run, for gdn report: points as they are read, where a later one supersedes
 * the earlier from its step on, and what is drawn of them, which is short however long the run was. */
#ifndef GDN_REPORT_SERIES_H
#define GDN_REPORT_SERIES_H

#include <stdbool.h>

/* GDN_INTERNAL, with the words of every part of gdn report that finds no memory. */
int report_no_memory(void);

/* Points by rising x, all finite. */
struct series {
    double *x, *y; /* [count] */
    long count, room;
};

/* Drops what is at x and beyond it, then adds the point; one with y not finite only drops. GDN_INTERNAL
 * without memory. */
int series_add(struct series *series, double x, double y);

/* Adds the point behind all others, whatever x is. GDN_INTERNAL without memory. */
int series_push(struct series *series, double x, double y);

/* Drops the points at x and beyond. */
void series_cut(struct series *series, double x);
void series_free(struct series *series);

double series_sum(const struct series *series); /* of y */

/* The q-th quantile of y, 0 <= q <= 1, by linear interpolation; NAN without points. GDN_INTERNAL without
 * memory. */
int series_quantile(const struct series *series, double q, double *out);

/* What is drawn: bins of equal width in x, or each point for itself where there are not more than bins. */
struct bin {
    double x, y;      /* of the smoothed points, the mean */
    double low, high; /* least and greatest of the points themselves */
};
struct bins {
    struct bin *bin; /* [count] */
    long count;
    bool points; /* each is one point: low = high = the point itself */
};

/* At most `max` bins of the points, smoothed by the mean over `window` points around each (1: not at all;
 * fewer at the beginning, alike on both sides; at the end by the straight line through the last `window`).
 * `out` is owned by the caller: bins_free. GDN_INTERNAL without memory. */
int series_bins(const struct series *series, long max, long window, struct bins *out);
void bins_free(struct bins *bins);

/* Quantiles `q` [count] of y over at most `max` stretches of equally many points, each of at least `min`:
 * one series each in `out` [count], at the middle of its stretch. GDN_INTERNAL without memory; `out` is owned
 * by the caller in any case. */
int series_spread(const struct series *series, long max, long min, const double *q, int count,
                  struct series *out);

#endif
