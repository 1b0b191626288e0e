/* gdn report: how training went: losses, gradient norm, learning rate. */
#include "train/report/page.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/report/rows.h"

static const char *const losses[] = {"training", "validation"};

/* What is left of a series from x on. */
static struct series beyond(const struct series *s, double x) {
    long first = 0;
    while (first < s->count && s->x[first] < x) first++;
    return (struct series){.x = s->x + first, .y = s->y + first, .count = s->count - first};
}

/* Losses of the later half of the steps, which the first ones would press flat. */
static int draw_later(const struct report *report) {
    static const struct report_curves look = {
        .title = "Loss, later half", .name = losses, .kinds = 2, .smooth = true};
    struct series(*later)[2] = calloc((size_t)report->count, sizeof *later);
    struct report_line *line = calloc((size_t)report->count * 2, sizeof *line);
    double last = 0;
    for (int r = 0; r < report->count; r++) last = fmax(last, report->run[r].done);
    int count = 0;
    for (int r = 0; later && line && r < report->count; r++)
        for (int k = 0; k < 2; k++) {
            later[r][k] = beyond(&report->run[r].curve[k ? CURVE_VALIDATION : CURVE_LOSS], last / 2);
            if (later[r][k].count) line[count++] = (struct report_line){&later[r][k], r, k, k == 1};
        }
    int status = later && line ? GDN_OK : report_no_memory();
    if (count && !status) status = report_draw(report, &look, line, count);
    free(later);
    free(line);
    return status;
}

/* The noise scale: both estimates averaged over the last measurements, some twenty, before they are divided.
 */
static int noise_scale(const struct report_run *run, struct series *out) {
    const struct series *variance = &run->curve[CURVE_VARIANCE], *gradient = &run->curve[CURVE_GRADIENT];
    const double keep = 0.9;
    double above = 0, below = 0;
    for (long i = 0; i < variance->count && i < gradient->count; i++) {
        above = keep * above + (1 - keep) * variance->y[i];
        below = keep * below + (1 - keep) * gradient->y[i];
        if (below > 0) TRY(series_add(out, variance->x[i], above / below));
    }
    return GDN_OK;
}

static int draw_noise(const struct report *report) {
    static const struct report_curves look = {
        .title = "Gradient noise scale, in sequences",
        .note = "Batches well below it: twice the batch takes almost half the steps. Well above: it hardly saves any.",
        .kinds = 1,
        .log = true};
    struct series *scale = calloc((size_t)report->count, sizeof *scale);
    struct report_line *line = calloc((size_t)report->count, sizeof *line);
    int count = 0, status = scale && line ? GDN_OK : report_no_memory();
    for (int r = 0; !status && r < report->count; r++) {
        status = noise_scale(&report->run[r], &scale[r]);
        if (scale[r].count) line[count++] = (struct report_line){.series = &scale[r], .run = r};
    }
    if (count && !status) status = report_draw(report, &look, line, count);
    for (int r = 0; scale && r < report->count; r++) series_free(&scale[r]);
    free(scale);
    free(line);
    return status;
}

int report_training(const struct report *report) {
    static const struct figure_row loss = {
        {.kinds = 2}, {CURVE_LOSS, CURVE_VALIDATION}, {false, true}, NO_STEPS};
    static const struct figure_row validation = {
        {.kinds = 1},
        {CURVE_VALIDATION},
        {true},
        "no validation loss: set <code>train.eval_interval</code>, and <code>data.validation</code> or "
        "<code>data.validation_fraction</code>"};
    static const struct figure_row norm = {
        {.title = "Gradient norm, before clipping", .kinds = 1, .log = true, .smooth = true},
        {CURVE_GRAD_NORM},
        {false},
        NO_STEPS};
    static const struct figure_row rate = {
        {.title = "Learning rate", .kinds = 1, .zero = true, .wide = true}, {CURVE_LR}, {false}, NO_STEPS};
    report_heading(report, "training", "Training");
    fprintf(report->page, "<div class=\"grid\">\n");
    int status = report_loss(report);
    if (!status) status = draw_later(report);
    if (!status) status = report_row(report, &norm);
    if (!status) status = draw_noise(report);
    if (!status) status = report_sets(report);
    if (!status) status = report_row(report, &rate);
    fprintf(report->page, "</div>\n");
    if (!status) status = report_row_lacks(report, &loss);
    return status ? status : report_row_lacks(report, &validation);
}
