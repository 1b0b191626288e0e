#include "train/report/page.h"

#include <stdlib.h>
#include <time.h>

#include "kernels/base/status.h"
#include "train/report/html.h"
#include "train/report/style.h"

static void write_head(const struct report *report) {
    FILE *page = report->page;
    /* Nothing may be loaded or run from anywhere: a page that is passed on stays what it is. */
    fprintf(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                  "'unsafe-inline'; img-src data:\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    html_text(page, report->run[0].name);
    if (report->count > 1) fprintf(page, " and %d more", report->count - 1);
    fprintf(page, " – gdn report</title>\n<style>%s</style>\n</head>\n<body>\n%s<main>\n", report_style,
            report_shapes);
}

/* From when to when, which is all there is to say before the figures. */
static void write_period(const struct report *report) {
    char from[32], to[32];
    double first = report->run[0].first_time, last = report->run[0].last_time;
    for (int r = 1; r < report->count; r++) {
        const struct report_run *run = &report->run[r];
        if (!(run->first_time >= first)) first = run->first_time;
        if (!(run->last_time <= last)) last = run->last_time;
    }
    if (first == first && last == last)
        fprintf(report->page, "<p class=\"sub\">%s to %s UTC</p>\n", moment_text(first, from),
                moment_text(last, to));
}

static void write_title(const struct report *report) {
    FILE *page = report->page;
    fprintf(page, "<h1>");
    if (report->count == 1)
        html_text(page, report->run[0].name);
    else
        fprintf(page, "%d runs side by side", report->count);
    fprintf(page, "</h1>\n");
    write_period(report);
    fprintf(page,
            "<nav>"
            "<a href=\"#summary\">Summary</a><a href=\"#training\">Training</a><a href=\"#speed\">Speed</a>"
            "<a href=\"#memory\">Memory</a><a href=\"#connections\">Connections</a>"
            "<a href=\"#checkpoints\">Checkpoints</a><a href=\"#events\">Events</a>"
            "<a href=\"#settings\">Configuration</a></nav>\n");
    if (report->count == 1) return;
    fprintf(page, "<ul class=\"legend key\">");
    for (int r = 0; r < report->count; r++) {
        fprintf(page, "<li>");
        report_name(report, r);
        fprintf(page, "</li>");
    }
    fprintf(page, "</ul>\n<p class=\"note\">Where curves coincide, the wider one is that of the run named "
                  "first.</p>\n");
}

static void write_foot(const struct report *report) {
    char now[32];
    fprintf(report->page, "<footer>Made by gdn report (commit ");
    html_text(report->page, report->commit);
    fprintf(report->page, "), %s UTC</footer>\n</main>\n</body>\n</html>\n",
            moment_text((double)time(NULL), now));
}

int report_page(const struct report *report) {
    static int (*const section[])(const struct report *) = {
        report_summary, report_training,    report_speed,    report_memory,   report_connections,
        report_gates,   report_checkpoints, report_timeline, report_settings,
    };
    write_head(report);
    write_title(report);
    for (size_t s = 0; s < sizeof section / sizeof *section; s++) TRY(section[s](report));
    write_foot(report);
    return GDN_OK;
}
