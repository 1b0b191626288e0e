/* Which delta connections a run that prunes (train.prune) has in use, over its steps: of each the spans of steps in
 * which it is, and a figure with a row for each. A part of the page of gdn report, and a figure of gdn deltas plot. */
#ifndef GDN_REPORT_LIVE_H
#define GDN_REPORT_LIVE_H

#include "dist/layout/edge.h"
#include "train/plot/plot.h"
#include "train/report/read.h"

struct live_span {
    int edge;
    double from, to; /* steps: the first in which it is in use, and the first in which it is no more */
};

struct live {
    struct edges edges;     /* of the model's configuration */
    struct live_span *span; /* [spans] by edge, then step */
    long spans;
    int left; /* connections in use in the last step */
    double steps;
};

/* Whether the run's configuration is known, and prunes. */
bool live_has(const struct report_run *run);

/* Of a run for which live_has. Not collective. Free with live_free, whatever this returns. GDN_INTERNAL without
 * memory. */
int live_of(const struct report_run *run, struct live *out);
void live_free(struct live *live);

/* Begins the figure and writes it, for plot_draw or plot_text, below `title`, NULL for none. plot_close follows,
 * whatever this returns. GDN_INTERNAL. */
int live_plot(const struct live *live, enum plot_format format, const char *title, struct plot *plot);

#endif
