/* gdn report: losses over steps, over tokens and over time, of which the page shows one. The switch is a row
 * of radio buttons that the style sheet knows: the page runs nothing. */
#include "train/report/page.h"

#include <stdlib.h>

#include "kernels/base/status.h"

enum { LOSSES = 2 };
static const char *const losses[LOSSES] = {"training", "validation"};

/* What had been used up after each step, over steps. The time is that of the steps that count, alone: a run
 * that waited a day for its next start is not a slow one. */
static int used_by(const struct report_run *run, enum report_over over, struct series *out) {
    const struct series *s = &run->curve[over == OVER_TOKENS ? CURVE_TOKENS : CURVE_STEP_SECONDS];
    double sum = 0;
    for (long i = 0; i < s->count; i++) {
        sum += s->y[i];
        TRY(series_push(out, s->x[i], over == OVER_TOKENS ? s->y[i] : sum));
    }
    return GDN_OK;
}

/* The points of `s` over what the last step up to each had used. An evaluation's x is the steps done, a
 * training loss's the step itself. */
static int change_x(const struct series *s, bool evaluation, const struct series *used, struct series *out) {
    double so_far = 0;
    for (long i = 0, step = 0; i < s->count; i++) {
        double done = evaluation ? s->x[i] : s->x[i] + 1;
        for (; step < used->count && used->x[step] < done; step++) so_far = used->y[step];
        TRY(series_push(out, so_far, s->y[i]));
    }
    return GDN_OK;
}

/* The losses of one run over `over` into own[LOSSES]. */
static int losses_over(const struct report_run *run, enum report_over over, struct series *own) {
    static const enum report_curve curve[LOSSES] = {CURVE_LOSS, CURVE_VALIDATION};
    struct series used = {0};
    int status = used_by(run, over, &used);
    for (int k = 0; k < LOSSES && used.count && !status; k++)
        status = change_x(&run->curve[curve[k]], k == 1, &used, &own[k]);
    series_free(&used);
    return status;
}

struct views {
    struct series *own;       /* [OVERS][count][LOSSES]; not used for steps */
    struct report_line *line; /* [OVERS][count · LOSSES] */
    int lines[OVERS];
};

static int collect(const struct report *report, struct views *views) {
    size_t all = (size_t)OVERS * (size_t)report->count * LOSSES;
    views->own = calloc(all, sizeof *views->own);
    views->line = calloc(all, sizeof *views->line);
    if (!views->own || !views->line) return report_no_memory();
    for (int over = 0; over < OVERS; over++)
        for (int r = 0; r < report->count; r++) {
            const struct report_run *run = &report->run[r];
            struct series *own = &views->own[(over * report->count + r) * LOSSES];
            if (over != OVER_STEPS) TRY(losses_over(run, (enum report_over)over, own));
            for (int k = 0; k < LOSSES; k++) {
                const struct series *s =
                    over == OVER_STEPS ? &run->curve[k ? CURVE_VALIDATION : CURVE_LOSS] : &own[k];
                if (s->count)
                    views->line[over * report->count * LOSSES + views->lines[over]++] =
                        (struct report_line){s, r, k, k == 1};
            }
        }
    return GDN_OK;
}

static int draw(const struct report *report, const struct views *views) {
    static const char *const name[OVERS] = {"over steps", "over tokens", "over time"};
    struct report_curves look = {
        .title = "Loss", .name = losses, .kinds = LOSSES, .wide = true, .smooth = true};
    FILE *page = report->page;
    report_card(report, true, look.title,
                report_comparable(report)
                    ? NULL
                    : "Validation losses of these runs were measured differently and cannot be "
                      "compared: see the <a href=\"#summary\">summary</a>.");
    report_legend(report, &look, views->line, views->lines[OVER_STEPS]);
    fprintf(page, "<div class=\"views\">");
    for (int over = 0; over < OVERS; over++)
        if (views->lines[over])
            fprintf(page,
                    "<input type=\"radio\" name=\"loss\" id=\"loss%d\"%s><label for=\"loss%d\">%s</label>",
                    over, over == OVER_STEPS ? " checked" : "", over, name[over]);
    fprintf(page, "\n");
    int status = GDN_OK;
    for (int over = 0; over < OVERS && !status; over++) {
        if (!views->lines[over]) continue;
        look.over = (enum report_over)over;
        fprintf(page, "<div class=\"view\">");
        status = report_plot(report, &look, &views->line[over * report->count * LOSSES], views->lines[over]);
        fprintf(page, "</div>\n");
    }
    fprintf(page, "</div>\n");
    report_card_end(report);
    return status;
}

int report_loss(const struct report *report) {
    struct views views = {0};
    int status = collect(report, &views);
    if (!status && views.lines[OVER_STEPS]) status = draw(report, &views);
    for (int i = 0; views.own && i < OVERS * report->count * LOSSES; i++) series_free(&views.own[i]);
    free(views.own);
    free(views.line);
    return status;
}
