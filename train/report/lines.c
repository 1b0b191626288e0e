#include "train/report/lines.h"

#include <math.h>

#include "kernels/base/status.h"
#include "train/report/html.h"

/* Bins of a curve; many runs share what a page may hold. */
static long bins_for(const struct report *report) {
    long max = 2400 / (report->count + 2);
    return max > 800 ? 800 : max < 100 ? 100 : max;
}

static void find_max(const struct report_line *line, int count, double *x, double *y) {
    *x = *y = 0;
    for (int l = 0; l < count; l++)
        for (long i = 0; i < line[l].series->count; i++)
            *x = fmax(*x, line[l].series->x[i]), *y = fmax(*y, line[l].series->y[i]);
}

/* Where to cut off a few points far above all others, which would press these flat; `top` where there are
 * none. */
static int find_limit(const struct report_line *line, int count, double top, double *limit) {
    double low = INFINITY, high = -INFINITY;
    for (int l = 0; l < count; l++) {
        const struct series *s = line[l].series;
        if (s->count == 0) continue;
        double middle, max;
        TRY(series_quantile(s, 0.5, &middle));
        TRY(series_quantile(s, line[l].raw ? 1 : 0.997, &max));
        low = fmin(low, middle), high = fmax(high, max);
    }
    *limit = high + 1.5 * (high - low);
    if (!(top > *limit && high > low)) *limit = top;
    return GDN_OK;
}

/* A logarithmic axis needs its limits: those of all values above 0. */
static void make_log(struct figure_axis *axis, const struct report_line *line, int count) {
    double min = INFINITY, max = 0;
    for (int l = 0; l < count; l++)
        for (long i = 0; i < line[l].series->count; i++)
            if (line[l].series->y[i] > 0) {
                min = fmin(min, line[l].series->y[i]);
                max = fmax(max, line[l].series->y[i]);
            }
    if (max > 0) axis_make_log(axis, min, max);
}

static struct figure_axis axis_of(const struct report_curves *look, double max) {
    struct figure_axis axis;
    switch (look->axis) {
    case AXIS_SECONDS:
        axis = axis_seconds(look->label, max);
        break;
    case AXIS_BYTES:
        axis = axis_bytes(look->label, max);
        break;
    case AXIS_PERCENT:
        axis = axis_percent(look->label);
        break;
    default:
        axis = axis_number(look->label, max);
    }
    if (look->zero) axis.min = 0;
    if (look->axis == AXIS_COUNT) axis.min = 0, axis.max = max + 1;
    return axis;
}

static struct figure_axis x_axis_of(const struct report_curves *look, double max) {
    if (look->over == OVER_TIME) return axis_seconds("time spent in steps", max);
    return axis_number(look->over == OVER_TOKENS ? "tokens" : "step", max);
}

/* Kinds by colour in a page of one run, by dashes where colours are runs. */
void report_legend(const struct report *report, const struct report_curves *look,
                   const struct report_line *line, int count) {
    if (!look->name) return;
    fprintf(report->page, "<ul class=\"legend\">");
    for (int k = 0; k < look->kinds; k++) {
        bool used = false;
        for (int l = 0; l < count; l++) used |= line[l].kind == k && line[l].series->count > 0;
        if (!used) continue;
        if (report->count == 1)
            fprintf(report->page, "<li><i class=\"c%d\"></i>%s</li>", k, look->name[k]);
        else
            fprintf(report->page, "<li><i class=\"d%d\"></i>%s</li>", k, look->name[k]);
    }
    fprintf(report->page, "</ul>\n");
}

/* Curves are drawn in their order, each narrower than those before it, so that ones which coincide show as
 * stripes. */
static double width_of(const struct report *report, const struct report_curves *look,
                       const struct report_line *line) {
    int level = report->count == 1 ? line->kind : line->run;
    int above = (report->count == 1 ? look->kinds : report->count) - 1;
    double stripe = fmin(report->count == 1 ? 1 : 2.2, 4.4 / above);
    return above > 0 ? 1.4 + stripe * (above - level) : CHART_WIDTH;
}

static int add_line(const struct report *report, const struct report_curves *look,
                    const struct report_line *line, struct report_chart *chart) {
    const struct series *s = line->series;
    int colour = report->count == 1 ? line->kind : line->run, dash = report->count == 1 ? 0 : line->kind;
    bool smooth = look->smooth && !line->raw && s->count >= 30;
    struct bins bins;
    chart->width = width_of(report, look, line);
    TRY(series_bins(s, bins_for(report), smooth ? s->count / 50 + 1 : 1, &bins));
    chart_bins(chart, &bins, colour, dash, (smooth || (look->smooth && !bins.points)) && report->count <= 2);
    if (line->raw && s->count <= 40) chart_marks(chart, s->x, s->y, s->count, colour, false);
    bins_free(&bins);
    return GDN_OK;
}

int report_plot(const struct report *report, const struct report_curves *look, const struct report_line *line,
                int count) {
    double x, y, limit;
    find_max(line, count, &x, &y);
    limit = y;
    if (look->smooth && !look->log) TRY(find_limit(line, count, y, &limit));
    struct figure_axis across = x_axis_of(look, x), values = axis_of(look, limit);
    if (limit < y) values.max = limit;
    if (look->log) make_log(&values, line, count);
    long above = 0;
    for (int l = 0; l < count && limit < y; l++)
        for (long i = 0; i < line[l].series->count; i++) above += line[l].series->y[i] > limit;
    struct report_chart chart;
    int status = chart_open(&chart, look->wide ? FIGURE_WIDTH : FIGURE_HALF,
                            !look->wide    ? FIGURE_HEIGHT
                            : look->smooth ? FIGURE_HEIGHT + 60
                                           : FIGURE_HEIGHT - 50,
                            &across, &values);
    for (int l = 0; l < count && !status; l++) status = add_line(report, look, &line[l], &chart);
    if (!status) status = chart_write(&chart, look->title, report->page);
    chart_close(&chart);
    char number[32];
    if (above > 0)
        fprintf(report->page, "<p class=\"note\">%ld point%s above %s, the greatest at %s, %s cut off.</p>\n",
                above, above == 1 ? "" : "s", number_text(limit, number), number_text(y, (char[32]){0}),
                above == 1 ? "is" : "are");
    return status;
}

int report_draw(const struct report *report, const struct report_curves *look, const struct report_line *line,
                int count) {
    report_card(report, look->wide, look->title, look->note);
    report_legend(report, look, line, count);
    int status = report_plot(report, look, line, count);
    report_card_end(report);
    return status;
}
