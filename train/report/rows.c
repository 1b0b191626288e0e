#include "train/report/rows.h"

#include <stdlib.h>

#include "kernels/base/status.h"

static bool has_row(const struct report_run *run, const struct figure_row *row) {
    for (int k = 0; k < row->look.kinds; k++)
        if (run->curve[row->curve[k]].count > 0) return true;
    return false;
}

int report_row(const struct report *report, const struct figure_row *row) {
    struct report_line *line = calloc((size_t)report->count * MAX_KINDS, sizeof *line);
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

int report_row_lacks(const struct report *report, const struct figure_row *row) {
    bool *lacking = calloc((size_t)report->count, sizeof *lacking);
    if (!lacking) return report_no_memory();
    for (int r = 0; r < report->count; r++) lacking[r] = !has_row(&report->run[r], row);
    report_lacks(report, lacking, row->lacks);
    free(lacking);
    return GDN_OK;
}

int report_rows(const struct report *report, const struct figure_row *row, int count) {
    fprintf(report->page, "<div class=\"grid\">\n");
    int status = GDN_OK;
    for (int i = 0; i < count && !status; i++) status = report_row(report, &row[i]);
    fprintf(report->page, "</div>\n");
    for (int i = 0; i < count && !status; i++) status = report_row_lacks(report, &row[i]);
    return status;
}
