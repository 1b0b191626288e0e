#include "train/report/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/report/html.h"
#include "train/report/style.h"

/* ---- axes */

static struct figure_axis axis(const char *label, double scale, const char *unit) {
    return (struct figure_axis){label, scale, unit, NAN, NAN, false};
}

struct figure_axis axis_number(const char *label, double max) {
    if (max >= 1e10) return axis(label, 1e-9, "G");
    if (max >= 1e7) return axis(label, 1e-6, "M");
    if (max >= 1e4) return axis(label, 1e-3, "k");
    return axis(label, 1, "");
}

struct figure_axis axis_bytes(const char *label, double max) {
    if (max >= 1 << 30) return axis(label, 1.0 / (1 << 30), " GiB");
    if (max >= 1 << 20) return axis(label, 1.0 / (1 << 20), " MiB");
    return axis(label, 1.0 / (1 << 10), " KiB");
}

struct figure_axis axis_seconds(const char *label, double max) {
    if (max >= 3 * 86400) return axis(label, 1 / 86400.0, " d");
    if (max >= 2 * 3600) return axis(label, 1 / 3600.0, " h");
    if (max >= 300) return axis(label, 1 / 60.0, " min");
    if (max < 1) return axis(label, 1e3, " ms");
    return axis(label, 1, " s");
}

struct figure_axis axis_percent(const char *label) {
    return axis(label, 100, "%%"); /* one sign: gnuplot formats with this */
}

void axis_make_log(struct figure_axis *axis, double min, double max) {
    double room = fmax(1.3, sqrt(10 * min / max)); /* a decade at least, so that there are some tics */
    axis->log = true, axis->min = min / room, axis->max = max * room;
}

/* 0.1, 0.2, 0.5, 1, … within the axis; over many decades 0.1, 1, 10, … alone. */
static void write_log_tics(FILE *out, char name, const struct figure_axis *axis) {
    double min = axis->min * axis->scale, max = axis->max * axis->scale;
    bool few = max / min > 2000;
    const char *comma = "";
    fprintf(out, "set %ctics (", name);
    for (int decade = (int)floor(log10(min)); decade <= (int)ceil(log10(max)); decade++)
        for (int digit = 1; digit <= 5; digit = digit == 1 ? 2 : digit == 2 ? 5 : 10) {
            double at = digit * pow(10, decade);
            if (at < min || at > max || (few && digit > 1)) continue;
            fprintf(out, "%s%.9g", comma, at);
            comma = ", ";
        }
    fprintf(out, ")\n");
}

static void write_axis(FILE *out, char name, const struct figure_axis *axis) {
    fprintf(out, "set format %c '%%g%s'\n", name, axis->unit);
    if (axis->label)
        fprintf(out, "set %clabel '%s' offset %s textcolor rgb '#777777'\n", name, axis->label,
                name == 'x' ? "0,0.4" : "0.5,0");
    if (axis->log) {
        fprintf(out, "set logscale %c\n", name);
        write_log_tics(out, name, axis);
    }
    if (isnan(axis->min) && isnan(axis->max)) return;
    fprintf(out, "set %crange [", name);
    if (!isnan(axis->min)) fprintf(out, "%.9g", axis->min * axis->scale);
    fprintf(out, ":");
    if (!isnan(axis->max)) fprintf(out, "%.9g", axis->max * axis->scale);
    fprintf(out, "]\n");
}

/* ---- charts */

int chart_open(struct report_chart *chart, int width, int height, const struct figure_axis *x,
               const struct figure_axis *y) {
    *chart = (struct report_chart){.x = *x, .y = *y, .width = CHART_WIDTH};
    TRY(plot_open(&chart->plot, PLOT_INLINE, width, height));
    chart->curves = open_memstream(&chart->curves_text, &chart->curves_size);
    if (!chart->curves) return gdn_fail(GDN_INTERNAL, "out of memory for a figure");
    FILE *out = chart->plot.script;
    fprintf(out,
            "unset key\nset border 1 lc rgb '#888888'\nset tics nomirror scale 0.5 textcolor rgb '#777777'\n"
            "set ytics scale 0\nset grid ytics lt 1 lw 0.7 lc rgb '#cccccc'\n"
            "set autoscale xfix\nset tmargin 0.8\nset rmargin 2\nset bmargin 2.6\n");
    write_axis(out, 'x', x);
    write_axis(out, 'y', y);
    return GDN_OK;
}

static const char *colour_of(int colour) {
    return colour < 0 ? report_mark_colour[-1 - colour] : report_colour[colour % FIGURE_COLOURS];
}

static void begin_data(struct report_chart *chart) {
    fprintf(chart->plot.script, "$d%d << END\n", chart->blocks);
}

/* Ends the data; what is written to the stream then says how they are drawn. */
static FILE *end_data(struct report_chart *chart) {
    fprintf(chart->plot.script, "END\n");
    fprintf(chart->curves, "%s$d%d ", chart->blocks ? ", " : "plot ", chart->blocks);
    chart->blocks++;
    return chart->curves;
}

/* Whether the axes can show it. */
static bool shown_at(const struct report_chart *chart, double x, double y) {
    return isfinite(x) && isfinite(y) && (!chart->x.log || x > 0) && (!chart->y.log || y > 0);
}

static void write_dash(FILE *out, int dash) {
    static const char *const pattern[] = {"1", "2", "3", "4"}; /* gnuplot's: solid, dashed, dotted, both */
    fprintf(out, " dashtype %s", pattern[dash % 4]);
}

/* The points themselves, pale: a band where bins hold several. */
static void write_shade(struct report_chart *chart, const struct bins *bins, int colour) {
    begin_data(chart);
    for (long i = 0; i < bins->count; i++) {
        const struct bin *bin = &bins->bin[i];
        if (shown_at(chart, bin->x, bin->low))
            fprintf(chart->plot.script, "%.7g %.6g %.6g\n", bin->x * chart->x.scale,
                    bin->low * chart->y.scale, bin->high * chart->y.scale);
    }
    FILE *out = end_data(chart);
    if (bins->points)
        fprintf(out, "using 1:2 with lines lw 0.8 lc rgb '#b0%s'", colour_of(colour) + 1);
    else
        fprintf(out, "using 1:2:3 with filledcurves fc rgb '%s' fs transparent solid 0.22 noborder",
                colour_of(colour));
}

void chart_bins(struct report_chart *chart, const struct bins *bins, int colour, int dash, bool shade) {
    long fit = 0;
    for (long i = 0; i < bins->count; i++) fit += shown_at(chart, bins->bin[i].x, bins->bin[i].low);
    if (fit == 0) return;
    if (shade) write_shade(chart, bins, colour);
    double *x = malloc((size_t)bins->count * sizeof *x), *y = malloc((size_t)bins->count * sizeof *y);
    for (long i = 0; x && y && i < bins->count; i++) x[i] = bins->bin[i].x, y[i] = bins->bin[i].y;
    if (x && y) chart_line(chart, x, y, bins->count, colour, dash);
    free(x);
    free(y);
}

void chart_line(struct report_chart *chart, const double *x, const double *y, long count, int colour,
                int dash) {
    long drawn = 0;
    bool gap = false;
    for (long i = 0; i < count; i++) drawn += shown_at(chart, x[i], y[i]);
    if (drawn == 0) return;
    chart->drawn += drawn;
    begin_data(chart);
    for (long i = 0; i < count; i++) {
        if (shown_at(chart, x[i], y[i])) {
            fprintf(chart->plot.script, "%.7g %.6g\n", x[i] * chart->x.scale, y[i] * chart->y.scale);
            gap = true;
        } else if (gap) {
            fprintf(chart->plot.script, "\n");
            gap = false;
        }
    }
    FILE *out = end_data(chart);
    if (drawn == 1) {
        fprintf(out, "using 1:2 with points pt 7 ps 0.6 lc rgb '%s'", colour_of(colour));
        return;
    }
    fprintf(out, "using 1:2 with lines lw %.3g lc rgb '#%s%s'", chart->width,
            chart->width > CHART_WIDTH ? "38" : "00", colour_of(colour) + 1);
    write_dash(out, dash);
}

void chart_marks(struct report_chart *chart, const double *x, const double *y, long count, int colour,
                 bool hollow) {
    long drawn = 0;
    for (long i = 0; i < count; i++) drawn += shown_at(chart, x[i], y[i]);
    if (drawn == 0) return;
    chart->drawn += drawn;
    begin_data(chart);
    for (long i = 0; i < count; i++)
        if (shown_at(chart, x[i], y[i]))
            fprintf(chart->plot.script, "%.7g %.6g\n", x[i] * chart->x.scale, y[i] * chart->y.scale);
    FILE *out = end_data(chart);
    fprintf(out, "using 1:2 with points pt %d ps %.3g lc rgb '%s'", hollow ? 6 : 7,
            (drawn > 300  ? 0.25
             : drawn > 60 ? 0.4
                          : 0.65) *
                (1 + (chart->width - CHART_WIDTH) / 4),
            colour_of(colour));
}

int chart_write(struct report_chart *chart, const char *text, FILE *page) {
    if (chart->drawn == 0) {
        fprintf(page, "<p class=\"lacks\">There is nothing that this figure could show.</p>\n");
        return GDN_OK;
    }
    if (fflush(chart->curves)) return gdn_fail(GDN_INTERNAL, "out of memory for a figure");
    fprintf(chart->plot.script, "%s\n", chart->curves_text);
    char *svg;
    size_t size;
    TRY(plot_text(&chart->plot, text, &svg, &size));
    figure_embed(svg, text, page);
    free(svg);
    return GDN_OK;
}

void chart_close(struct report_chart *chart) {
    plot_close(&chart->plot);
    if (chart->curves) fclose(chart->curves);
    free(chart->curves_text);
    chart->curves = NULL, chart->curves_text = NULL;
}

/* ---- into the page */

/* Where `end` ends, from `from` on; the text's end where it does not occur. */
static const char *behind(const char *from, const char *end) {
    const char *found = strstr(from, end);
    return found ? found + strlen(end) : from + strlen(from);
}

void figure_embed(const char *svg, const char *text, FILE *page) {
    /* Elements that are left out, from where they begin to where they end. */
    static const struct {
        const char *begin, *end;
    } drop[] = {{"<title>", "</title>"}, {"<desc>", "</desc>"}, {"<defs>", "</defs>"}, {"id=\"", "\""}};
    const char *at = strstr(svg, "viewBox=\"");
    if (!at) return;
    const char *box = at, *box_end = behind(at + strlen("viewBox=\""), "\"");
    fprintf(page, "<svg %.*s role=\"img\" aria-label=\"", (int)(box_end - box), box);
    html_text(page, text);
    fprintf(page, "\">");
    at = behind(box_end, ">");
    while (*at) {
        const char *next = at + strlen(at), *after = next;
        for (size_t i = 0; i < sizeof drop / sizeof *drop; i++) {
            const char *found = strstr(at, drop[i].begin);
            if (found && found < next)
                next = found, after = behind(found + strlen(drop[i].begin), drop[i].end);
        }
        fwrite(at, 1, (size_t)(next - at), page);
        at = after;
    }
}
