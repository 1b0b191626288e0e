/* gdn report: whether runs' validation losses were measured alike. */
#include "train/report/page.h"

#include <string.h>

/* True where any key differs between runs that have a validation loss and a configuration. */
static bool find(const struct report *report, bool differs[MEASURE_KEYS]) {
    const struct report_run *first = NULL;
    bool any = false;
    memset(differs, 0, MEASURE_KEYS * sizeof *differs);
    for (int r = 0; r < report->count; r++) {
        const struct report_run *run = &report->run[r];
        if (!run->configured || run->curve[CURVE_VALIDATION].count == 0) continue;
        if (first) config_measured(&first->config, &run->config, differs);
        if (!first) first = run;
    }
    for (int k = 0; k < MEASURE_KEYS; k++) any |= differs[k];
    return any;
}

bool report_comparable(const struct report *report) {
    bool differs[MEASURE_KEYS];
    return !find(report, differs);
}

void report_tell_comparable(const struct report *report) {
    bool differs[MEASURE_KEYS];
    if (!find(report, differs)) return;
    fprintf(report->page,
            "<p class=\"caution\">Validation losses of these runs cannot be compared, and which is "
            "least says nothing: they were measured differently (");
    const char *comma = "";
    for (int k = 0; k < MEASURE_KEYS; k++) {
        if (!differs[k]) continue;
        fprintf(report->page, "%s<code>%s</code>", comma, measure_key[k]);
        comma = ", ";
    }
    fprintf(report->page,
            "). <code>gdn eval --data FILE</code> measures checkpoints on the same data.</p>\n");
}
