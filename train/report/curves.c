/* gdn report: curves, and the sections that consist of them. */
#include "train/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/report/html.h"

/* Bins of a curve; many runs share what a page may hold. */
static long bins_for(const struct report *report) {
    long most = 2400 / (report->count + 2);
    return most > 800 ? 800 : most < 100 ? 100 : most;
}

static void greatest(const struct report_line *line, int count, double *x, double *y) {
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
        double middle, most;
        TRY(series_quantile(s, 0.5, &middle));
        TRY(series_quantile(s, line[l].raw ? 1 : 0.997, &most));
        low = fmin(low, middle), high = fmax(high, most);
    }
    *limit = high + 1.5 * (high - low);
    if (!(top > *limit && high > low)) *limit = top;
    return GDN_OK;
}

/* A logarithmic axis needs its limits: those of all values above 0. */
static void make_log(struct figure_axis *axis, const struct report_line *line, int count) {
    double least = INFINITY, most = 0;
    for (int l = 0; l < count; l++)
        for (long i = 0; i < line[l].series->count; i++)
            if (line[l].series->y[i] > 0) {
                least = fmin(least, line[l].series->y[i]);
                most = fmax(most, line[l].series->y[i]);
            }
    if (most > 0) axis_make_log(axis, least, most);
}

static struct figure_axis axis_of(const struct report_curves *look, double most) {
    struct figure_axis axis;
    switch (look->axis) {
    case AXIS_SECONDS:
        axis = axis_seconds(look->label, most);
        break;
    case AXIS_BYTES:
        axis = axis_bytes(look->label, most);
        break;
    case AXIS_PERCENT:
        axis = axis_percent(look->label);
        break;
    default:
        axis = axis_number(look->label, most);
    }
    if (look->zero) axis.least = 0;
    if (look->axis == AXIS_COUNT) axis.least = 0, axis.most = most + 1;
    return axis;
}

static struct figure_axis x_axis_of(const struct report_curves *look, double most) {
    if (look->over == OVER_TIME) return axis_seconds("time spent in steps", most);
    return axis_number(look->over == OVER_TOKENS ? "tokens" : "step", most);
}

/* What is what: kinds by colour in a page of one run, by dashes where colours are runs. */
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
    greatest(line, count, &x, &y);
    limit = y;
    if (look->smooth && !look->log) TRY(find_limit(line, count, y, &limit));
    struct figure_axis across = x_axis_of(look, x), values = axis_of(look, limit);
    if (limit < y) values.most = limit;
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
                above, above == 1 ? "" : "s", words_number(limit, number), words_number(y, (char[32]){0}),
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

/* ---- figures of what is read as it stands */

enum { MOST_KINDS = 3 };

struct figure_row {
    struct report_curves look;
    enum report_curve curve[MOST_KINDS];
    bool raw[MOST_KINDS];
    const char *lacks; /* what to say of runs without any of them */
};

static bool has_row(const struct report_run *run, const struct figure_row *row) {
    for (int k = 0; k < row->look.kinds; k++)
        if (run->curve[row->curve[k]].count > 0) return true;
    return false;
}

/* The figure of those runs that have it. */
static int draw_row(const struct report *report, const struct figure_row *row) {
    struct report_line *line = calloc((size_t)report->count * MOST_KINDS, sizeof *line);
    if (!line) return report_no_memory();
    int count = 0;
    for (int r = 0; r < report->count; r++)
        for (int k = 0; k < row->look.kinds; k++) {
            const struct series *s = &report->run[r].curve[row->curve[k]];
            if (s->count) line[count++] = (struct report_line){s, r, k, row->raw[k]};
        }
    int status = count ? report_draw(report, &row->look, line, count) : GDN_OK;
    free(line);
    return status;
}

static int tell_lacking(const struct report *report, const struct figure_row *row) {
    bool *lacking = calloc((size_t)report->count, sizeof *lacking);
    if (!lacking) return report_no_memory();
    for (int r = 0; r < report->count; r++) lacking[r] = !has_row(&report->run[r], row);
    report_lacks(report, lacking, row->lacks);
    free(lacking);
    return GDN_OK;
}

/* Figures, behind them the lines about what is missing. */
static int draw_rows(const struct report *report, const struct figure_row *row, int count) {
    fprintf(report->page, "<div class=\"grid\">\n");
    int status = GDN_OK;
    for (int i = 0; i < count && !status; i++) status = draw_row(report, &row[i]);
    fprintf(report->page, "</div>\n");
    for (int i = 0; i < count && !status; i++) status = tell_lacking(report, &row[i]);
    return status;
}

#define NO_STEPS "no training step has been told yet"
#define NO_MONITOR                                                                                           \
    "no <code>monitor</code> event yet: one comes after every <code>monitor.interval</code> steps (0: "      \
    "never)"

static const char *const losses[] = {"training", "validation"};

/* What is left of a series from x on. */
static struct series beyond(const struct series *s, double x) {
    long first = 0;
    while (first < s->count && s->x[first] < x) first++;
    return (struct series){.x = s->x + first, .y = s->y + first, .count = s->count - first};
}

/* Losses of the later half of the steps, which the first ones would press flat. */
static int draw_later(const struct report *report) {
    static const struct report_curves look = {
        .title = "Loss, later half", .name = losses, .kinds = 2, .smooth = true};
    struct series(*later)[2] = calloc((size_t)report->count, sizeof *later);
    struct report_line *line = calloc((size_t)report->count * 2, sizeof *line);
    double last = 0;
    for (int r = 0; r < report->count; r++) last = fmax(last, report->run[r].done);
    int count = 0;
    for (int r = 0; later && line && r < report->count; r++)
        for (int k = 0; k < 2; k++) {
            later[r][k] = beyond(&report->run[r].curve[k ? CURVE_VALIDATION : CURVE_LOSS], last / 2);
            if (later[r][k].count) line[count++] = (struct report_line){&later[r][k], r, k, k == 1};
        }
    int status = later && line ? GDN_OK : report_no_memory();
    if (count && !status) status = report_draw(report, &look, line, count);
    free(later);
    free(line);
    return status;
}

int report_training(const struct report *report) {
    static const struct figure_row loss = {
        {.kinds = 2}, {CURVE_LOSS, CURVE_VALIDATION}, {false, true}, NO_STEPS};
    static const struct figure_row validation = {
        {.kinds = 1},
        {CURVE_VALIDATION},
        {true},
        "no validation loss: set <code>train.eval_interval</code>, and <code>data.validation</code> or "
        "<code>data.validation_fraction</code>"};
    static const struct figure_row norm = {
        {.title = "Gradient norm, before clipping", .kinds = 1, .log = true, .smooth = true},
        {CURVE_GRAD_NORM},
        {false},
        NO_STEPS};
    static const struct figure_row rate = {
        {.title = "Learning rate", .kinds = 1, .zero = true, .wide = true}, {CURVE_LR}, {false}, NO_STEPS};
    report_heading(report, "training", "Training");
    fprintf(report->page, "<div class=\"grid\">\n");
    int status = report_loss(report);
    if (!status) status = draw_later(report);
    if (!status) status = draw_row(report, &norm);
    if (!status) status = report_sets(report);
    if (!status) status = draw_row(report, &rate);
    fprintf(report->page, "</div>\n");
    if (!status) status = tell_lacking(report, &loss);
    return status ? status : tell_lacking(report, &validation);
}

/* ---- speed */

enum { QUANTILES = 3 };
static const double quantile[QUANTILES] = {0.5, 0.95, 0.99};
static const char *const quantiles[QUANTILES] = {"median", "95%", "99%"};

static int draw_spread(const struct report *report, struct series (*spread)[QUANTILES],
                       struct report_line *line) {
    static const struct report_curves look = {.title = "Seconds of a step",
                                              .note = "quantiles over stretches of at least 20 steps",
                                              .name = quantiles,
                                              .kinds = QUANTILES,
                                              .axis = AXIS_SECONDS,
                                              .zero = true};
    int count = 0;
    for (int r = 0; r < report->count; r++) {
        TRY(series_spread(&report->run[r].curve[CURVE_STEP_SECONDS], report->count == 1 ? 80 : 40, 20,
                          quantile, QUANTILES, spread[r]));
        for (int k = 0; k < QUANTILES; k++)
            if (spread[r][k].count) line[count++] = (struct report_line){&spread[r][k], r, k, false};
    }
    return count ? report_draw(report, &look, line, count) : GDN_OK;
}

static int step_times(const struct report *report) {
    struct series(*spread)[QUANTILES] = calloc((size_t)report->count, sizeof *spread);
    struct report_line *line = calloc((size_t)report->count * QUANTILES, sizeof *line);
    int status = spread && line ? draw_spread(report, spread, line) : report_no_memory();
    for (int r = 0; spread && r < report->count; r++)
        for (int k = 0; k < QUANTILES; k++) series_free(&spread[r][k]);
    free(spread);
    free(line);
    return status;
}

int report_speed(const struct report *report) {
    static const struct figure_row throughput = {
        {.title = "Tokens a second", .kinds = 1, .zero = true, .smooth = true},
        {CURVE_THROUGHPUT},
        {false},
        NO_STEPS};
    static const struct figure_row goodput = {
        {.title = "Goodput",
         .note = "part of the time since the start that went into steps that count",
         .kinds = 1,
         .axis = AXIS_PERCENT,
         .zero = true,
         .wide = true},
        {CURVE_GOODPUT},
        {false},
        "goodput over time: " NO_MONITOR};
    report_heading(report, "speed", "Speed");
    fprintf(report->page, "<div class=\"grid\">\n");
    int status = draw_row(report, &throughput);
    if (!status) status = step_times(report);
    if (!status) status = draw_row(report, &goodput);
    fprintf(report->page, "</div>\n");
    return status ? status : tell_lacking(report, &goodput);
}

/* ---- connections */

static const char *const uses[] = {"active", "effective"};

int report_connections(const struct report *report) {
    static const struct figure_row rows[] = {
        {{.title = "Connections in use", .name = uses, .kinds = 2, .axis = AXIS_COUNT},
         {CURVE_ACTIVE, CURVE_EFFECTIVE},
         {false, false},
         "connections in use: " NO_MONITOR},
        {{.title = "Share of a step spent in connections", .kinds = 1, .axis = AXIS_PERCENT, .zero = true},
         {CURVE_CONNECTION_SHARE},
         {false},
         "the share of a step that is spent in connections was not measured"},
    };
    report_heading(report, "connections", "Delta connections");
    int plain = 0;
    for (int r = 0; r < report->count; r++) plain += report_plain_model(&report->run[r]);
    if (plain == report->count) {
        fprintf(report->page, "<p class=\"lacks\">%s without delta connections.</p>\n",
                report->count == 1 ? "A model" : "All models are");
        return GDN_OK;
    }
    return draw_rows(report, rows, sizeof rows / sizeof *rows);
}

int report_memory_curves(const struct report *report) {
    static const char *const places[] = {"resident on the host", "on the device"};
    struct figure_row row = {
        {.title = "Memory in use", .name = places, .kinds = 2, .axis = AXIS_BYTES, .zero = true},
        {CURVE_RESIDENT, CURVE_DEVICE},
        {false, false},
        "memory over time: " NO_MONITOR};
    row.look.wide = report->count > 2; /* as the card before it */
    TRY(draw_row(report, &row));
    fprintf(report->page, "</div>\n");
    return tell_lacking(report, &row);
}
