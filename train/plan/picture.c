/* A step as a picture, a line for each pipeline rank. Where a step has more micro-batches than a line can
 * show, its beginning and its end are drawn, and what lies between is left out. */
#include "train/plan/plan.h"
#include "train/plan/text.h"

#include <math.h>
#include <string.h>

enum {
    PICTURE = 90,   /* columns */
    EACH = 4,       /* columns of a micro-batch on a chunk, at least */
    BEGINNING = 52, /* columns of the beginning, where something is left out */
    GAP = 2,
    AFTER = 12, /* columns behind the last backward pass, at most */
};

/* What is drawn: `columns` of `column` seconds each from `begin` on. */
struct view {
    double begin, column;
    int columns;
};

static char letter(const struct action *a) {
    const struct act_kind *kind = &act_kinds[a->act];
    return kind->role == ROLE_PASS ? (char)(kind->letter + a->micro_batch % 10) : kind->letter;
}

/* For each column, what the rank does for the longest part of it. */
static void draw(const struct plan *plan, int rank, struct view view, char *line) {
    const struct actions *list = &plan->pipeline.schedule.rank[rank];
    int from = 0;
    for (int c = 0; c < view.columns; c++) {
        double begin = view.begin + c * view.column, end = begin + view.column, spent[128] = {0}, busy = 0;
        while (from < list->count && plan->step.action[rank][from].end <= begin) from++;
        for (int i = from; i < list->count && plan->step.action[rank][i].start < end; i++) {
            const struct action_time *time = &plan->step.action[rank][i];
            double part = fmin(end, time->end) - fmax(begin, time->start);
            if (part <= 0) continue;
            spent[(int)letter(&list->action[i])] += part;
            busy += part;
        }
        spent['.'] += view.column - busy;
        line[c] = '.';
        for (int l = 0; l < 128; l++)
            if (spent[l] > spent[(int)line[c]]) line[c] = (char)l;
    }
}

/* When the last pass of any rank is done. */
static double end_of_passes(const struct plan *plan) {
    double last = 0;
    for (int r = 0; r < plan->step.ranks; r++) {
        const struct actions *list = &plan->pipeline.schedule.rank[r];
        for (int i = 0; i < list->count; i++)
            if (act_kinds[list->action[i].act].role == ROLE_PASS)
                last = fmax(last, plan->step.action[r][i].end);
    }
    return last;
}

static void print_left_out(const struct plan *plan, struct view first, struct view second, FILE *out) {
    char from[32], to[32], end[32];
    double gap = first.begin + first.columns * first.column,
           shown = second.begin + second.columns * second.column;
    fprintf(out, "        left out in the gap: %s to %s, most of %d micro-batches", plan_seconds(gap, from),
            plan_seconds(second.begin, to), plan->micro_batches);
    if (shown < plan->step.seconds * (1 - 1e-9))
        fprintf(out, "; and from %s on, sums and updates", plan_seconds(shown, end));
    fputc('\n', out);
}

void plan_print_picture(const struct plan *plan, FILE *out) {
    double passes = end_of_passes(plan), seconds = plan->step.seconds;
    struct view first = {0, seconds / PICTURE, PICTURE}, second = {0};
    double column = passes / ((double)plan->micro_batches * EACH * mesh_chunks(&plan->config->mesh));
    bool elide = column * PICTURE < passes;
    if (elide) {
        double end = fmin(seconds, passes + AFTER * column);
        first = (struct view){0, column, BEGINNING};
        second = (struct view){end - (PICTURE - BEGINNING - GAP) * column, column, PICTURE - BEGINNING - GAP};
    }
    for (int r = 0; r < plan->step.ranks; r++) {
        char line[PICTURE + 1];
        memset(line, '.', PICTURE);
        line[PICTURE] = 0;
        draw(plan, r, first, line);
        draw(plan, r, second, line + PICTURE - second.columns);
        if (elide) memset(line + BEGINNING, ' ', GAP);
        fprintf(out, "%6d |%s|\n", r, line);
    }
    fprintf(out,
            "        0-9 forward pass of a micro-batch (its last digit), a-j its backward pass, = sums,\n"
            "        + update, . waiting%s\n",
            plan->config->mesh.schedule != SCHEDULE_1F1B
                ? "; A-J gradients of weights that the pass has left"
                : "");
    if (elide) print_left_out(plan, first, second, out);
}
