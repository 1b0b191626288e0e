/* A step as a time line: a row for each pipeline rank, a box for each pass, sum and update. */
#include "train/plan/plan.h"
#include "train/plan/text.h"
#include "train/plot/plot.h"

#include "kernels/base/status.h"

#include <math.h>

enum {
    WIDTH = 1400,
    ROW = 26, /* pixels of a rank */
    MARGIN = 110,
    NUMBERED = 17, /* pixels of a box with a number in it, at least */
};
#define LEAST 0.25 /* pixels of a box: shorter pieces of one kind that follow each other are drawn as one */

/* What boxes show. */
enum band { BAND_FORWARD, BAND_BACKWARD, BAND_WEIGHTS, BAND_SUMS, BAND_UPDATE, BANDS };
static const struct {
    char letter; /* of kinds of actions (dist/schedule) */
    const char *title, *colour;
} bands[BANDS] = {
    [BAND_FORWARD] = {'0', "forward pass", "#8fbce6"},
    [BAND_BACKWARD] = {'a', "backward pass", "#f2b272"},
    [BAND_WEIGHTS] = {'A', "gradients of weights", "#e6d37a"},
    [BAND_SUMS] = {'=', "waiting for sums", "#b9a3d6"},
    [BAND_UPDATE] = {'+', "update", "#9fcf9f"},
};

static int band_of(const struct action *a) {
    for (int b = 0; b < BANDS; b++)
        if (bands[b].letter == act_kinds[a->act].letter) return b;
    return -1;
}

/* Boxes of a band as gnuplot's data: when it begins and ends, and its rank. */
static void write_boxes(const struct plan *plan, int band, double second, FILE *out) {
    fprintf(out, "$b%d << END\n", band);
    fprintf(out, "NaN NaN NaN\n"); /* so that none is empty */
    for (int r = 0; r < plan->step.ranks; r++) {
        const struct actions *list = &plan->pipeline.schedule.rank[r];
        double begin = NAN, end = NAN;
        for (int i = 0; i <= list->count; i++) {
            const struct action_time *time = i < list->count ? &plan->step.action[r][i] : NULL;
            if (time && (band_of(&list->action[i]) != band || time->end <= time->start)) continue;
            bool joins = time && time->start <= end && (end - begin) * second < LEAST;
            if (!joins && begin < end) fprintf(out, "%.9g %.9g %d\n", begin, end, r);
            if (time && !joins) begin = time->start;
            if (time) end = time->end;
        }
    }
    fprintf(out, "END\n");
}

/* Of passes with room for it their micro-batch: where, and the number. Returns how many. */
static int write_numbers(const struct plan *plan, double second, FILE *out) {
    int count = 0;
    fprintf(out, "$numbers << END\n");
    for (int r = 0; r < plan->step.ranks; r++) {
        const struct actions *list = &plan->pipeline.schedule.rank[r];
        for (int i = 0; i < list->count; i++) {
            const struct action_time *time = &plan->step.action[r][i];
            if (act_kinds[list->action[i].act].role != ROLE_PASS) continue;
            if ((time->end - time->start) * second < NUMBERED) continue;
            fprintf(out, "%.9g %d %d\n", (time->start + time->end) / 2, r, list->action[i].micro_batch);
            count++;
        }
    }
    fprintf(out, "END\n");
    return count;
}

/* The times are drawn in the unit that suits the whole step. */
static void write_script(const struct plan *plan, FILE *out) {
    const double seconds = plan->step.seconds;
    const char *unit = seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s";
    const double factor = seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1, second = (WIDTH - 90) / seconds;
    char length[32];
    fprintf(out, "set title 'a step of %ld ranks: %s, efficiency %.1f%%'\n", plan->ranks,
            plan_seconds(seconds, length), 100 * plan->ideal / seconds);
    fprintf(out,
            "set xlabel '%s'\nset ylabel 'pipeline rank'\nset xrange [0:%.9g]\nset yrange [%d.5:-0.5]\n"
            "set ytics 0,%d\nset tics scale 0.4\nset key below\n",
            unit, seconds * factor, plan->step.ranks - 1, plan->step.ranks / 40 + 1);
    for (int b = 0; b < BANDS; b++) write_boxes(plan, b, second, out);
    const int numbers = write_numbers(plan, second, out);
    for (int b = 0; b < BANDS; b++)
        fprintf(out,
                "%s$b%d using (0):3:($1*%g):($2*%g):($3-0.4):($3+0.4) with boxxyerror fs solid %s fc rgb "
                "'%s' title '%s'",
                b ? ", " : "plot ", b, factor, factor, b <= BAND_WEIGHTS ? "border rgb 'white'" : "noborder",
                bands[b].colour, bands[b].title);
    if (numbers) fprintf(out, ", $numbers using ($1*%g):2:3 with labels font ',9' notitle", factor);
    fputc('\n', out);
}

int plan_svg(const struct plan *plan, const char *path) {
    struct plot plot;
    int rows = plan->step.ranks < 80 ? plan->step.ranks : 80; /* more are drawn thinner */
    int status = plot_open(&plot, PLOT_SVG, WIDTH, MARGIN + ROW * (rows < 4 ? 4 : rows));
    if (!status) {
        write_script(plan, plot.script);
        status = plot_draw(&plot, path);
    }
    plot_close(&plot);
    return status;
}
