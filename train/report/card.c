#include "train/report/card.h"

#include "train/report/html.h"

void report_heading(const struct report *report, const char *id, const char *title) {
    fprintf(report->page, "<h2 id=\"%s\">%s</h2>\n", id, title);
}

void report_card(const struct report *report, bool wide, const char *title, const char *note) {
    fprintf(report->page, "<figure class=\"card chart%s\"><h3>%s</h3>\n", wide ? " wide" : "", title);
    if (note) fprintf(report->page, "<p class=\"note\">%s</p>\n", note);
}

void report_card_end(const struct report *report) {
    fprintf(report->page, "</figure>\n");
}

void report_name(const struct report *report, int run) {
    fprintf(report->page, "<span class=\"swatch c%d\"></span>", run % FIGURE_COLOURS);
    html_text(report->page, report->run[run].name);
}

void report_lacks(const struct report *report, const bool *lacking, const char *text) {
    int lack = 0;
    for (int r = 0; r < report->count; r++) lack += lacking[r];
    if (lack == 0) return;
    fprintf(report->page, "<p class=\"lacks\">");
    if (report->count > 1 && lack == report->count) fprintf(report->page, "In all runs: ");
    for (int r = 0, said = 0; r < report->count && lack < report->count; r++) {
        if (!lacking[r]) continue;
        fprintf(report->page, said++ ? ", " : "In ");
        html_text(report->page, report->run[r].name);
        if (said == lack) fprintf(report->page, ": ");
    }
    fprintf(report->page, "%s.</p>\n", text);
}

bool report_plain_model(const struct report_run *run) {
    return run->configured && !delta_connects(&run->config.model.delta);
}
