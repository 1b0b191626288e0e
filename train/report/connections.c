/* gdn report: how many connections are used, and their share of a step; which ones, of runs that prune. */
#include "train/report/page.h"

#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/report/live.h"
#include "train/report/rows.h"

static const char *const uses[] = {"active", "effective"};

static int draw_live(const struct report *report, const struct live *live) {
    static const char text[] = "Connections in use, one by one";
    struct plot plot;
    char *svg = NULL;
    size_t size;
    int status = live_plot(live, PLOT_INLINE, NULL, &plot);
    if (!status) status = plot_text(&plot, text, &svg, &size);
    if (!status) figure_embed(svg, text, report->page);
    free(svg);
    plot_close(&plot);
    return status;
}

/* A card for each run that prunes. */
static int write_live(const struct report *report, int r) {
    struct live live;
    if (!live_has(&report->run[r])) return GDN_OK;
    int status = live_of(&report->run[r], &live);
    if (!status) {
        fprintf(report->page, "<figure class=\"card chart wide\" style=\"margin-top:16px\"><h3>");
        if (report->count > 1) report_name(report, r);
        fprintf(report->page, "%s%d of %d connections in use after %.0f steps; a bar is when one is</h3>\n",
                report->count > 1 ? ": " : "", live.left, live.edges.measured, live.steps);
        status = draw_live(report, &live);
        report_card_end(report);
    }
    live_free(&live);
    return status;
}

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
    TRY(report_rows(report, rows, sizeof rows / sizeof *rows));
    for (int r = 0; r < report->count; r++) TRY(write_live(report, r));
    return GDN_OK;
}
