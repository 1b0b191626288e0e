/* gdn report: throughput, step times, goodput. */
#include "train/report/page.h"

#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/report/rows.h"

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
    int status = report_row(report, &throughput);
    if (!status) status = step_times(report);
    if (!status) status = report_row(report, &goodput);
    fprintf(report->page, "</div>\n");
    return status ? status : report_row_lacks(report, &goodput);
}
