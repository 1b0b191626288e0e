/* Cards with figures of curves, over steps, tokens or time. */
#ifndef GDN_REPORT_LINES_H
#define GDN_REPORT_LINES_H

#include "train/report/card.h"

/* One curve of a figure. */
struct report_line {
    const struct series *series;
    int run, kind; /* kind: an index into the figure's names */
    bool raw;      /* single points, marked, neither smoothed nor shaded */
};

/* What curves are drawn over. */
enum report_over { OVER_STEPS, OVER_TOKENS, OVER_TIME, OVERS };

enum report_axis { AXIS_NUMBER, AXIS_SECONDS, AXIS_BYTES, AXIS_PERCENT, AXIS_COUNT };

struct report_curves {
    const char *title, *note; /* note: NULL for none */
    const char *label;        /* of the y axis */
    const char *const *name;  /* [kinds] what the kinds of curves are; NULL for one kind */
    int kinds;
    enum report_axis axis;
    enum report_over over;
    bool log, zero, wide;
    bool smooth; /* shows the points pale behind their mean */
};

/* The parts of a card with a figure: what is what, and the figure of `count` curves. */
void report_legend(const struct report *report, const struct report_curves *look,
                   const struct report_line *line, int count);
int report_plot(const struct report *report, const struct report_curves *look, const struct report_line *line,
                int count);

/* A card with a figure of `count` curves, empty ones left out. */
int report_draw(const struct report *report, const struct report_curves *look, const struct report_line *line,
                int count);

#endif
