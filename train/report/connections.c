/* gdn report: how many connections are used, and their share of a step. */
#include "train/report/page.h"

#include "kernels/base/status.h"
#include "train/report/rows.h"

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
    return report_rows(report, rows, sizeof rows / sizeof *rows);
}
