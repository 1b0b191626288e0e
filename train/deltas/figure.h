/* The figures of gdn deltas plot. */
#ifndef GDN_DELTA_FIGURE_H
#define GDN_DELTA_FIGURE_H

#include "train/deltas/set.h"
#include "train/plot/plot.h"

/* Panels of one figure: a layer each, at most FIGURE_PANELS of them, evenly chosen; curves of all
 * distances. */
enum { FIGURE_PANELS = 12 };

/* One point of a curve: `low` and `high` bound a band around y, or are y. */
struct figure_point {
    double x, y, low, high;
};

struct figure {
    const char *name;  /* of its file */
    const char *title; /* what y is */
    const char *x, *y; /* labels of the axes */
    bool newest;       /* a curve is of one record of the newest step; else it has a point for each step */
    bool band;
    bool log_x, log_y; /* log_y: where the greatest y is far above the least too */
    bool unit;         /* y is from 0 to 1 */
    /* newest: point k of a record's curve, counted from 1 to its rank; else the record's own point, k = 0.
     * False: nothing is drawn there. */
    bool (*point)(const struct delta_record *record, long k, struct figure_point *out);
};

extern const struct figure delta_figures[];
extern const int delta_figure_count;

/* Draws curves into `path`, or maps of layers and distances at the newest step. */
int delta_figure_draw(const struct figure *figure, const struct delta_set *set, enum plot_format format,
                      const char *path);
int delta_maps_draw(const struct delta_set *set, enum plot_format format, const char *path);

#endif
