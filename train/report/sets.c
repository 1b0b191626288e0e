/* gdn report: the losses of validation sets by their names, where runs have several. In a page of one run a
 * figure has several sets, each in a colour; in one of several runs colours are runs, so that each set has a
 * figure. */
#include "train/report/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

static int draw_sets(const struct report *report, const struct report_run *run) {
    int status = GDN_OK;
    for (long first = 0; first < run->sets && !status; first += FIGURE_COLOURS) {
        const char *name[FIGURE_COLOURS];
        struct report_line line[FIGURE_COLOURS];
        int count = 0;
        for (long s = first; s < run->sets && count < FIGURE_COLOURS; s++, count++) {
            name[count] = run->set[s].name;
            line[count] = (struct report_line){&run->set[s].loss, 0, count, true};
        }
        const struct report_curves look = {
            .title = "Validation loss, each set", .name = name, .kinds = count, .smooth = true};
        status = report_draw(report, &look, line, count);
    }
    return status;
}

static const struct series *loss_of(const struct report_run *run, const char *name) {
    for (long s = 0; s < run->sets; s++)
        if (!strcmp(run->set[s].name, name)) return &run->set[s].loss;
    return NULL;
}

/* The figure of one set, of all runs that have it. */
static int compare_runs(const struct report *report, const char *name) {
    char title[128];
    snprintf(title, sizeof title, "Validation loss: %s", name);
    const struct report_curves look = {.title = title, .kinds = 1, .smooth = true};
    struct report_line *line = calloc((size_t)report->count, sizeof *line);
    int count = 0;
    if (!line) return report_no_memory();
    for (int r = 0; r < report->count; r++) {
        const struct series *loss = loss_of(&report->run[r], name);
        if (loss && loss->count) line[count++] = (struct report_line){loss, r, 0, true};
    }
    int status = count ? report_draw(report, &look, line, count) : GDN_OK;
    free(line);
    return status;
}

/* Whether a run before run `r` has a set of that name. */
static bool seen(const struct report *report, int r, const char *name) {
    while (r-- > 0)
        if (loss_of(&report->run[r], name)) return true;
    return false;
}

int report_sets(const struct report *report) {
    bool several = false;
    for (int r = 0; r < report->count; r++) several |= report->run[r].sets > 1;
    if (!several) return GDN_OK; /* the curve of validation says it all */
    if (report->count == 1) return draw_sets(report, &report->run[0]);
    for (int r = 0; r < report->count; r++)
        for (long s = 0; s < report->run[r].sets; s++) {
            const char *name = report->run[r].set[s].name;
            if (!seen(report, r, name)) TRY(compare_runs(report, name));
        }
    return GDN_OK;
}
