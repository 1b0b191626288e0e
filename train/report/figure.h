/* Figures of gdn report: drawn by gnuplot, put into the page as SVG. No text of users comes into them: what a
 * curve is of says the legend beside the figure, which is HTML. Colours of curves and of texts are those of
 * the page's style (report/style.c), which knows light and dark. */
#ifndef GDN_REPORT_FIGURE_H
#define GDN_REPORT_FIGURE_H

#include <stdbool.h>
#include <stdio.h>

#include "train/plot/plot.h"
#include "train/report/series.h"

enum { FIGURE_WIDTH = 1120, FIGURE_HALF = 540, FIGURE_HEIGHT = 260, FIGURE_COLOURS = 8 };
#define CHART_WIDTH 1.7 /* of lines, where nothing else was said */

/* What axes show. Values are multiplied by `scale` and `unit` is put behind the numbers. */
struct figure_axis {
    const char *label; /* NULL: none */
    double scale;
    const char *unit; /* "k" */
    double min, max;  /* before scaling; NAN: as the values have it */
    bool log;         /* with min and max, which are then above 0 */
};

/* An axis whose values go up to `max`: with thousands, millions; bytes with KiB, MiB; seconds with ms. */
struct figure_axis axis_number(const char *label, double max);
struct figure_axis axis_bytes(const char *label, double max);
struct figure_axis axis_seconds(const char *label, double max);
struct figure_axis axis_percent(const char *label);

/* Makes the axis logarithmic for values from `min` to `max`, both above 0, with room around them. */
void axis_make_log(struct figure_axis *axis, double min, double max);

struct report_chart {
    struct plot plot;
    struct figure_axis x, y;
    FILE *curves; /* of the plot command, after all data */
    char *curves_text;
    size_t curves_size;
    double width; /* of lines from here on, in pixels; marks grow with it */
    int blocks;   /* of data */
    long drawn;   /* points */
};

/* Begins a figure of so many pixels. Whatever happens then, chart_close must follow. GDN_INTERNAL. */
int chart_open(struct report_chart *chart, int width, int height, const struct figure_axis *x,
               const struct figure_axis *y);

/* Bins as a line, dashed in one of several ways (0: solid); `shade`: with what they hold besides, pale. What
 * a logarithmic axis cannot show is left out. */
void chart_bins(struct report_chart *chart, const struct bins *bins, int colour, int dash, bool shade);

/* Points joined by a line. A value that is not finite interrupts it. */
void chart_line(struct report_chart *chart, const double *x, const double *y, long count, int colour,
                int dash);

/* Marks at points; `hollow`: rings. A colour below 0 is one of `report_mark` (report/style.h). */
void chart_marks(struct report_chart *chart, const double *x, const double *y, long count, int colour,
                 bool hollow);

/* Draws it and writes the SVG to `page`, called `text` for those who cannot see it; a line of words where
 * nothing was to be drawn. GDN_INPUT as plot_draw. */
int chart_write(struct report_chart *chart, const char *text, FILE *page);
void chart_close(struct report_chart *chart);

/* Puts gnuplot's SVG into the page: its frame, titles and definitions, which all figures share, are left
 * out. */
void figure_embed(const char *svg, const char *text, FILE *page);

#endif
