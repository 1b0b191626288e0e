#include "train/check/report.h"

#include <stdarg.h>
#include <string.h>

static struct check_row *add(struct check_report *report, const char *name) {
    struct check_row *row = &report->row[report->rows];
    if (report->rows < CHECK_ROWS - 1) report->rows++;
    *row = (struct check_row){.unfit = false};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

void check_fit(struct check_report *report, const char *name, const char *format, ...) {
    struct check_row *row = add(report, name);
    va_list list;
    va_start(list, format);
    vsnprintf(row->text, sizeof row->text, format, list);
    va_end(list);
}

void check_outcome(struct check_report *report, const char *name, int status, const char *text) {
    if (!status && !text) return;
    struct check_row *row = add(report, name);
    row->unfit = status != 0;
    snprintf(row->text, sizeof row->text, "%s", status ? gdn_failure() : text);
    if (status) gdn_failure_clear();
}

void check_print(const struct check_report *report, FILE *out) {
    if (!out) return;
    for (int i = 0; i < report->rows; i++)
        fprintf(out, "%-14s%s%s\n", report->row[i].name, report->row[i].unfit ? "UNFIT: " : "",
                report->row[i].text);
    fflush(out);
}

int check_verdict(const struct check_report *report) {
    char text[3072];
    int unfit = 0;
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < report->rows; i++) {
        const struct check_row *row = &report->row[i];
        if (!row->unfit) continue;
        unfit++;
        int n = snprintf(text + at, sizeof text - at, "\n  %s: %s", row->name, row->text);
        if (n > 0) at = at + (size_t)n < sizeof text ? at + (size_t)n : sizeof text - 1;
    }
    if (!unfit) return 0;
    return gdn_fail(GDN_INPUT, "this environment is unfit for the run in %d of %d respects:%s", unfit,
                    report->rows, text);
}
