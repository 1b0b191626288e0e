/* Curves: a panel for each layer, a colour for each distance, the same axes in all panels. */
#include "train/deltas/figure.h"

#include "kernels/base/status.h"
#include "train/deltas/each.h"

#include <inttypes.h>
#include <math.h>

enum {
    MIN_WIDTH = 640, /* for titles */
    PANEL_WIDTH = 270,
    PANEL_HEIGHT = 190,
    LEFT = 95,
    TOP = 60,
    RIGHT = 150,
    BOTTOM = 50,
    GAP_X = 62,
    GAP_Y = 60
};

struct drawing {
    const struct figure *figure;
    const struct delta_set *set;
    FILE *out;
    int panels, columns, rows, width, height;
    struct figure_point min, max; /* over all panels */
    bool log_y;
    int curves; /* written so far */
};

/* The layer of panel i: the first, the last, and others evenly between them. */
static int layer_of(const struct drawing *d, int i) {
    return d->panels < 2 ? d->set->layer[0] : d->set->layer[i * (d->set->layers - 1) / (d->panels - 1)];
}

/* Points of one curve, in the order in which they are drawn. */
static int each_point(struct drawing *d, int layer, int distance,
                      void (*take)(struct drawing *, const struct figure_point *)) {
    const struct delta_record *newest = delta_set_newest(d->set, layer, distance);
    int taken = 0;
    for (int i = 0; i < d->set->count; i++) {
        const struct delta_record *r = &d->set->record[i];
        bool other = r->layer != layer || r->distance != distance || (d->figure->newest && r != newest);
        long from = d->figure->newest ? 1 : 0, to = d->figure->newest ? r->factors.rank : 0;
        for (long k = from; k <= to && !other; k++) {
            struct figure_point point;
            if (!d->figure->point(r, k, &point)) continue;
            if (!d->figure->band) point.low = point.high = point.y;
            take(d, &point);
            taken++;
        }
    }
    return taken;
}

static void widen(struct drawing *d, const struct figure_point *p) {
    d->min.x = fmin(d->min.x, p->x), d->max.x = fmax(d->max.x, p->x);
    d->min.y = fmin(d->min.y, p->low), d->max.y = fmax(d->max.y, p->high);
}

static void write_point(struct drawing *d, const struct figure_point *p) {
    fprintf(d->out, "%.9g %.9g %.9g %.9g\n", p->x, p->y, p->low, p->high);
}

static void find_ranges(struct drawing *d) {
    d->min = (struct figure_point){.x = INFINITY, .y = INFINITY};
    d->max = (struct figure_point){.x = -INFINITY, .y = -INFINITY};
    for (int i = 0; i < d->panels; i++)
        for (int j = 0; j < d->set->distances; j++) each_point(d, layer_of(d, i), d->set->distance[j], widen);
    if (d->min.x > d->max.x) d->min = (struct figure_point){0}, d->max = (struct figure_point){1, 1, 1, 1};
}

/* Tics at round steps, not more than fit: 0, 20k, 40k, … */
static void write_step_tics(FILE *out, double min, double max) {
    enum { TICS = 6 };
    int64_t step = 1, unit, first;
    for (int i = 0; (max - min) / (double)step > TICS; i++) step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    unit = step % 1000000 == 0 ? 1000000 : step % 1000 == 0 ? 1000 : 1;
    first = ((int64_t)min + step - 1) / step * step;
    fprintf(out, "set xtics (");
    for (int64_t x = first; (double)x <= max; x += step)
        fprintf(out, "%s'%" PRId64 "%s' %" PRId64, x == first ? "" : ", ", x / unit,
                x == 0 || unit == 1 ? ""
                : unit == 1000      ? "k"
                                    : "M",
                x);
    fprintf(out, ")\n");
}

static void write_x_range(const struct drawing *d) {
    double min = d->min.x, max = d->max.x;
    if (d->figure->log_x)
        fprintf(d->out, "set logscale x 2\nset xrange [%.9g:%.9g]\n", min / 1.15, fmax(max, 2) * 1.15);
    else if (min == max)
        fprintf(d->out, "set xrange [%.9g:%.9g]\nset xtics (%.9g)\n", min - 1, max + 1, min);
    else
        fprintf(d->out, "set xrange [%.9g:%.9g]\n", min - 0.03 * (max - min), max + 0.03 * (max - min));
    if (!d->figure->newest && min < max) write_step_tics(d->out, min, max);
}

/* 1, 2, 5, 10, …: powers of ten alone would be one or two. */
static void write_few_decades(FILE *out, double min, double max) {
    const char *separator = "";
    fprintf(out, "set ytics (");
    for (double unit = pow(10, floor(log10(min))); unit <= max; unit *= 10)
        for (int i = 0; i < 3; i++) {
            double y = unit * (i == 0 ? 1 : i == 1 ? 2 : 5);
            if (y < min || y > max) continue;
            fprintf(out, "%s'%g' %g", separator, y, y);
            separator = ", ";
        }
    fprintf(out, ")\n");
}

static void write_y_range(struct drawing *d) {
    double min = d->min.y, max = d->max.y;
    /* In less than a decade a line of round numbers is easier to read. */
    d->log_y = d->figure->log_y && min > 0 && max > 10 * min;
    if (d->log_y) {
        fprintf(d->out, "set logscale y\nset yrange [%.9g:%.9g]\n", min / 1.3, max * 1.3);
        fprintf(d->out, max > 1e4 * min ? "set format y '1e%%T'\n" : "set format y '%%g'\n");
        if (max < 200 * min) write_few_decades(d->out, min / 1.3, max * 1.3);
    } else if (d->figure->unit) {
        fprintf(d->out, "set yrange [0:1.04]\n");
    } else if (d->figure->band) {
        double pad = max > min ? 0.05 * (max - min) : 0.05;
        fprintf(d->out, "set yrange [%.9g:%.9g]\n", min - pad, max + pad);
    } else {
        fprintf(d->out, "set yrange [0:%.9g]\n", max > 0 ? 1.08 * max : 1);
    }
}

/* Okabe & Ito's colours, which colour-blind people tell apart, without yellow, which is faint on white; the
 * marks differ too. */
static void write_styles(FILE *out, int count) {
    static const char *const colour[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                         "#E69F00", "#56B4E9", "#000000"};
    static const int mark[] = {7, 5, 9, 13, 11, 6, 4, 8};
    enum { COLOURS = sizeof colour / sizeof *colour, MARKS = sizeof mark / sizeof *mark };
    for (int j = 0; j < count; j++)
        fprintf(out, "set style line %d lc rgb '%s' lw 1.6 dt %d pt %d ps 0.55\n", j + 1, colour[j % COLOURS],
                1 + j / COLOURS % 5, mark[j % MARKS]);
}

static void write_margins(const struct drawing *d, int column, int row) {
    double left = LEFT + column * (PANEL_WIDTH + GAP_X), top = TOP + row * (PANEL_HEIGHT + GAP_Y);
    fprintf(d->out,
            "set lmargin at screen %.6f\nset rmargin at screen %.6f\n"
            "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
            left / d->width, (left + PANEL_WIDTH) / d->width, 1 - top / d->height,
            1 - (top + PANEL_HEIGHT) / d->height);
}

static void write_curve(const struct drawing *d, const char *separator, int data, int style, int points) {
    if (d->figure->band && d->set->steps > 1)
        fprintf(d->out,
                "%s$d%d using 1:3:4 with filledcurves ls %d fs transparent solid 0.16 noborder notitle",
                separator, data, style);
    else if (d->figure->band)
        fprintf(d->out, "%s$d%d using 1:2:3:4 with yerrorbars ls %d notitle", separator, data, style);
    if (d->figure->band) separator = ", ";
    /* Marks on some points only, where there are many. */
    fprintf(d->out, "%s$d%d using 1:2 with linespoints ls %d pi %d notitle", separator, data, style,
            points > 12 ? points / 8 : 1);
}

static void write_panel(struct drawing *d, int i) {
    int layer = layer_of(d, i), data[64], style[64], points[64], curves = 0;
    for (int j = 0; j < d->set->distances && curves < 64; j++) {
        fprintf(d->out, "$d%d << END\n", d->curves);
        int count = each_point(d, layer, d->set->distance[j], write_point);
        fprintf(d->out, "END\n");
        if (!count) continue;
        data[curves] = d->curves++, style[curves] = j + 1, points[curves++] = count;
    }
    int column = i % d->columns, row = i / d->columns;
    write_margins(d, column, row);
    fprintf(d->out, "set title 'layer %d' offset 0,-0.6\n", layer);
    if (i + d->columns >= d->panels)
        fprintf(d->out, "set xlabel '%s' offset 0,0.4\n", d->figure->x);
    else
        fprintf(d->out, "unset xlabel\n");
    if (column == 0)
        fprintf(d->out, "set ylabel '%s'\n", d->figure->y);
    else
        fprintf(d->out, "unset ylabel\n");
    fprintf(d->out, "plot ");
    for (int c = 0; c < curves; c++) write_curve(d, c ? ", " : "", data[c], style[c], points[c]);
    fprintf(d->out, "%s\n", curves ? "" : "NaN notitle");
}

/* A panel with nothing but the key, in the strip at the right. */
static void write_legend(const struct drawing *d) {
    fprintf(
        d->out,
        "unset title\nunset xlabel\nunset ylabel\nunset border\nunset tics\nunset grid\nunset logscale\n"
        "set xrange [0:1]\nset yrange [0:1]\nset key at screen %.6f,%.6f left top Left reverse samplen 2.5\n"
        "plot ",
        (double)(LEFT + d->columns * (PANEL_WIDTH + GAP_X) - GAP_X + 20) / d->width,
        1 - (TOP - 8.0) / d->height);
    for (int j = 0; j < d->set->distances; j++)
        fprintf(d->out, "%sNaN with linespoints ls %d title 'distance %d'", j ? ", " : "", j + 1,
                d->set->distance[j]);
    fprintf(d->out, "\n");
}

static void write_title(const struct drawing *d) {
    char title[1024], step[64] = "";
    if (d->figure->newest) snprintf(step, sizeof step, ", step %" PRId64, d->set->newest);
    int used = snprintf(title, sizeof title, "%s: %s%s", d->set->title, d->figure->title, step);
    if (d->panels < d->set->layers)
        snprintf(title + used, sizeof title - (size_t)used, " (%d of %d layers)", d->panels, d->set->layers);
    fprintf(d->out, "set multiplot\nset label 1 ");
    plot_quote(d->out, title);
    fprintf(d->out, " at screen %.6f,%.6f left font ',14'\n", (double)LEFT / d->width, 1 - 20.0 / d->height);
}

static void write_figure(struct drawing *d) {
    fprintf(d->out, "set grid lc rgb '#dddddd' lt 1 lw 0.5\nset border 3\nset tics nomirror\nunset key\n");
    write_styles(d->out, d->set->distances);
    find_ranges(d);
    write_x_range(d);
    write_y_range(d);
    write_title(d);
    for (int i = 0; i < d->panels; i++) {
        write_panel(d, i);
        fprintf(d->out, "unset label 1\n");
    }
    write_legend(d);
    fprintf(d->out, "unset multiplot\n");
}

int delta_figure_draw(const struct figure *figure, const struct delta_set *set, enum plot_format format,
                      const char *path) {
    struct drawing d = {.figure = figure, .set = set};
    d.panels = set->layers < FIGURE_PANELS ? set->layers : FIGURE_PANELS;
    d.columns = d.panels <= 3 ? d.panels : d.panels == 4 ? 2 : d.panels <= 9 ? 3 : 4;
    d.rows = (d.panels + d.columns - 1) / d.columns;
    d.width = LEFT + d.columns * (PANEL_WIDTH + GAP_X) - GAP_X + RIGHT;
    if (d.width < MIN_WIDTH) d.width = MIN_WIDTH;
    d.height = TOP + d.rows * (PANEL_HEIGHT + GAP_Y) - GAP_Y + BOTTOM;
    struct plot plot;
    int status = plot_open(&plot, format, d.width, d.height);
    if (!status) {
        d.out = plot.script;
        write_figure(&d);
        status = plot_draw(&plot, path);
    }
    plot_close(&plot);
    return status;
}
