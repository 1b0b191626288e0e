/* gdn report: what checkpoints took and how large they are. */
#include "train/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/report/html.h"

static double seconds_of(const struct report_checkpoint *c) {
    return c->seconds;
}
static double stall_of(const struct report_checkpoint *c) {
    return c->stall;
}
static double bytes_of(const struct report_checkpoint *c) {
    return c->bytes;
}

typedef double (*value_of)(const struct report_checkpoint *);

/* The values of all checkpoints, those of a step done again too, in the file's order. */
static int collect(const struct report_run *run, value_of value, struct series *out) {
    *out = (struct series){0};
    for (long i = 0; i < run->checkpoints; i++)
        if (isfinite(value(&run->checkpoint[i])))
            TRY(series_push(out, run->checkpoint[i].step, value(&run->checkpoint[i])));
    return GDN_OK;
}

static int failures(const struct report_run *run) {
    int failed = 0;
    for (long i = 0; i < run->events; i++) failed += !strcmp(run->event[i].kind, "checkpoint_failed");
    return failed;
}

/* ---- figures */

static int add_marks(const struct report *report, struct report_chart *chart, value_of value, int kind,
                     bool hollow) {
    for (int r = 0; r < report->count; r++) {
        struct series points;
        int status = collect(&report->run[r], value, &points);
        if (!status)
            chart_marks(chart, points.x, points.y, points.count, report->count == 1 ? kind : r, hollow);
        series_free(&points);
        TRY(status);
    }
    return GDN_OK;
}

static void find_max(const struct report *report, value_of value, double *step, double *max) {
    *step = *max = 0;
    for (int r = 0; r < report->count; r++)
        for (long i = 0; i < report->run[r].checkpoints; i++) {
            const struct report_checkpoint *c = &report->run[r].checkpoint[i];
            *step = fmax(*step, c->step), *max = fmax(*max, value(c));
        }
}

/* The least duration or stall above 0. */
static double min_of(const struct report *report) {
    double min = INFINITY;
    for (int r = 0; r < report->count; r++)
        for (long i = 0; i < report->run[r].checkpoints; i++) {
            const struct report_checkpoint *c = &report->run[r].checkpoint[i];
            if (c->seconds > 0) min = fmin(min, c->seconds);
            if (c->stall > 0) min = fmin(min, c->stall);
        }
    return min;
}

static int draw_times(const struct report *report) {
    double step, max, stall;
    find_max(report, seconds_of, &step, &max);
    find_max(report, stall_of, &step, &stall);
    max = fmax(max, stall);
    struct figure_axis x = axis_number("step", step), y = axis_seconds(NULL, max);
    if (max > 0) axis_make_log(&y, min_of(report), max);
    report_card(report, false, "Duration and stall",
                "duration: until it was verified on disk; stall: how long training stood still");
    const char *colour = report->count > 1 ? "" : " c";
    fprintf(report->page,
            "<ul class=\"legend\"><li><i class=\"dot%s%s\"></i>duration</li><li><i "
            "class=\"ring%s%s\"></i>stall</li></ul>\n",
            colour, *colour ? "0" : "", colour, *colour ? "1" : "");
    struct report_chart chart;
    int status = chart_open(&chart, FIGURE_HALF, FIGURE_HEIGHT, &x, &y);
    if (!status) status = add_marks(report, &chart, seconds_of, 0, false);
    if (!status) status = add_marks(report, &chart, stall_of, 1, true);
    if (!status) status = chart_write(&chart, "Duration and stall of checkpoints", report->page);
    chart_close(&chart);
    report_card_end(report);
    return status;
}

static int draw_sizes(const struct report *report) {
    double step, max;
    find_max(report, bytes_of, &step, &max);
    if (max <= 0) return GDN_OK;
    struct figure_axis x = axis_number("step", step), y = axis_bytes(NULL, max);
    y.min = 0, y.max = 1.1 * max;
    report_card(report, false, "Size", "of each checkpoint's elements");
    struct report_chart chart;
    int status = chart_open(&chart, FIGURE_HALF, FIGURE_HEIGHT, &x, &y);
    if (!status) status = add_marks(report, &chart, bytes_of, 0, false);
    if (!status) status = chart_write(&chart, "Size of checkpoints", report->page);
    chart_close(&chart);
    report_card_end(report);
    return status;
}

/* ---- the table */

static int write_figures(const struct report_run *run, value_of value, bool sum, FILE *page) {
    struct series points;
    double middle = NAN, max = NAN;
    char number[32];
    int status = collect(run, value, &points);
    if (!status) status = series_quantile(&points, 0.5, &middle);
    if (!status) status = series_quantile(&points, 1, &max);
    fprintf(page, "<td class=\"n\">%s</td>", seconds_text(middle, number));
    fprintf(page, "<td class=\"n\">%s</td>", seconds_text(max, number));
    if (sum)
        fprintf(page, "<td class=\"n\">%s</td>",
                seconds_text(points.count ? series_sum(&points) : NAN, number));
    series_free(&points);
    return status;
}

/* How many were written beside training, and how many while it waited. */
static void write_ways(const struct report_run *run, FILE *page) {
    long beside = 0, waiting = 0;
    for (long i = 0; i < run->checkpoints; i++) {
        beside += run->checkpoint[i].asynchronous > 0;
        waiting += run->checkpoint[i].asynchronous == 0;
    }
    fprintf(page, "<td>");
    if (beside) fprintf(page, "%ld beside training%s", beside, waiting ? ", " : "");
    if (waiting) fprintf(page, "%ld with training waiting", waiting);
    fprintf(page, "%s</td>", beside || waiting ? "" : "\xe2\x80\x93");
}

static int write_row(const struct report *report, int r) {
    const struct report_run *run = &report->run[r];
    FILE *page = report->page;
    char number[32];
    const struct report_checkpoint *last = run->checkpoints ? &run->checkpoint[run->checkpoints - 1] : NULL;
    int failed = failures(run);
    fprintf(page, "<tr>");
    if (report->count > 1) {
        fprintf(page, "<td>");
        report_name(report, r);
        fprintf(page, "</td>");
    }
    fprintf(page, "<td class=\"n\">%ld</td><td class=\"n\">%s%d%s</td>", run->checkpoints,
            failed ? "<span class=\"tag bad\">" : "", failed, failed ? "</span>" : "");
    int status = write_figures(run, seconds_of, false, page);
    if (!status) status = write_figures(run, stall_of, true, page);
    fprintf(page, "<td class=\"n\">%s</td>", bytes_text(last ? last->bytes : NAN, number));
    write_ways(run, page);
    fprintf(page, "</tr>\n");
    return status;
}

int report_checkpoints(const struct report *report) {
    FILE *page = report->page;
    bool *lacking = calloc((size_t)report->count, sizeof *lacking);
    if (!lacking) return report_no_memory();
    int have = 0, status = GDN_OK;
    for (int r = 0; r < report->count; r++) {
        bool some = report->run[r].checkpoints > 0 || failures(&report->run[r]) > 0;
        lacking[r] = !some, have += some;
    }
    report_heading(report, "checkpoints", "Checkpoints");
    if (have) {
        fprintf(
            page,
            "<div class=\"grid\">\n<div class=\"card wide scroll\"><table class=\"full\"><thead><tr>%s"
            "<th class=\"n\">written</th><th class=\"n\">failed</th><th class=\"n\">duration, median</th>"
            "<th class=\"n\">longest</th><th class=\"n\">stall, median</th><th class=\"n\">longest stall</th>"
            "<th class=\"n\">stalls together</th><th class=\"n\">last size</th><th>way</th></tr></thead>\n",
            report->count > 1 ? "<th>run</th>" : "");
        for (int r = 0; r < report->count && !status; r++)
            if (!lacking[r]) status = write_row(report, r);
        fprintf(page, "</table></div>\n");
        if (!status) status = draw_times(report);
        if (!status) status = draw_sizes(report);
        fprintf(page, "</div>\n");
    }
    report_lacks(report, lacking,
                 "no checkpoint was written: set <code>checkpoint.interval</code> or "
                 "<code>checkpoint.interval_minutes</code>");
    free(lacking);
    return status;
}
