/* gdn report: how a run went on by the clock, with all that interrupted it, as a figure and a table. */
#include "train/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/report/html.h"
#include "train/report/style.h"

enum {
    MAX_POINTS = 1500,
    MARK_COLUMNS = FIGURE_WIDTH / 2, /* marks of a kind, which are wider than two pixels */
    MAX_ROWS = 300,                  /* of a table that has all events */
    FIRST_ROWS = 15,                 /* of each kind in one that has not */
    LAST_ROWS = 25,
    MAX_KINDS = 48
};

static const struct {
    const char *event;
    enum report_mark mark;
} kinds[] = {
    {"start", MARK_GOOD},
    {"resume", MARK_GOOD},
    {"finish", MARK_GOOD},
    {"signal", MARK_ASKED},
    {"stop", MARK_ASKED},
    {"skip", MARK_WARNING},
    {"spike", MARK_WARNING},
    {"alert", MARK_WARNING},
    {"slow_rank", MARK_WARNING},
    {"not_finite", MARK_BAD},
    {"checkpoint_failed", MARK_BAD},
    {"replica_mismatch", MARK_BAD},
    {"diverged", MARK_BAD},
    {"delta_store_failed", MARK_BAD},
};
static const char *const mark_text[MARKS] = {"other", "start, resume, finish", "asked to stop", "to look at",
                                             "fault"};

static enum report_mark mark_of(const struct report_event *event) {
    if (event->status >= 0)
        return event->status == GDN_OK ? MARK_GOOD : event->status == GDN_STOPPED ? MARK_ASKED : MARK_BAD;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(kinds[k].event, event->kind)) return kinds[k].mark;
    return MARK_PLAIN;
}

/* ---- the figure: steps done over the clock */

/* Draws of a long clock every so-many-th point, and those where it jumps. */
static int draw_clock(struct report_chart *chart, const struct report_run *run, int colour) {
    const struct series *clock = &run->clock;
    long every = clock->count / MAX_POINTS + 1;
    struct series drawn = {0};
    int status = GDN_OK;
    for (long i = 0; i < clock->count && !status; i++) {
        bool jump = i + 1 < clock->count && !(clock->y[i + 1] > clock->y[i]);
        bool landing = i > 0 && !(clock->y[i] > clock->y[i - 1]);
        if (i % every == 0 || jump || landing || i + 1 == clock->count)
            status = series_push(&drawn, clock->x[i] - run->first_time, clock->y[i]);
    }
    if (!status) chart_line(chart, drawn.x, drawn.y, drawn.count, colour, 0);
    series_free(&drawn);
    return status;
}

/* The step that a line stands at where the event has none: the last one before it. */
static double step_at(const struct report_run *run, const struct report_event *event) {
    if (isfinite(event->step)) return event->step;
    double step = 0;
    for (long i = 0; i < run->clock.count && run->clock.x[i] <= event->time; i++)
        if (isfinite(run->clock.y[i])) step = run->clock.y[i];
    return step;
}

/* Marks of a kind in the order of the file, in each column of the figure, `wall` seconds wide, one. */
static int collect_marks(const struct report_run *run, int mark, double wall, int columns,
                         struct series *points) {
    bool taken[MARK_COLUMNS] = {false};
    for (long i = 0; i < run->events; i++) {
        const struct report_event *event = &run->event[i];
        double at = event->time - run->first_time;
        if ((int)mark_of(event) != mark || !isfinite(at)) continue;
        int column = (int)(fmin(fmax(at / wall, 0), 1) * (columns - 1));
        if (taken[column]) continue;
        taken[column] = true;
        TRY(series_push(points, at, step_at(run, event)));
    }
    return GDN_OK;
}

static int draw_events(struct report_chart *chart, const struct report_run *run, double wall, int columns) {
    for (int mark = 0; mark < MARKS; mark++) {
        struct series points = {0};
        int status = collect_marks(run, mark, wall, columns, &points);
        if (!status) chart_marks(chart, points.x, points.y, points.count, -1 - mark, false);
        series_free(&points);
        TRY(status);
    }
    return GDN_OK;
}

static int draw(const struct report *report) {
    double wall = 0, steps = 0;
    bool used[MARKS] = {false};
    for (int r = 0; r < report->count; r++) {
        const struct report_run *run = &report->run[r];
        wall = fmax(wall, run->last_time - run->first_time);
        for (long i = 0; i < run->clock.count; i++) steps = fmax(steps, run->clock.y[i]);
        for (long i = 0; i < run->events; i++) used[mark_of(&run->event[i])] = true;
    }
    report_card(report, true, "Steps done over time, with everything that happened",
                report->count > 1 ? "from the first start of each run" : "from the first start");
    fprintf(report->page, "<ul class=\"legend\">");
    for (int mark = 0; mark < MARKS; mark++)
        if (used[mark])
            fprintf(report->page, "<li><i class=\"dot %s\" style=\"--c:%s\"></i>%s</li>",
                    report_mark_class[mark], report_mark_colour[mark], mark_text[mark]);
    fprintf(report->page, "</ul>\n");
    struct figure_axis x = axis_seconds(NULL, fmax(wall, 1)), y = axis_number("steps done", steps);
    y.min = 0;
    struct report_chart chart;
    int status = chart_open(&chart, FIGURE_WIDTH, FIGURE_HEIGHT, &x, &y);
    for (int r = 0; r < report->count && !status; r++) status = draw_clock(&chart, &report->run[r], r);
    for (int r = 0; r < report->count && !status; r++)
        status = draw_events(&chart, &report->run[r], fmax(wall, 1), 2 * MARK_COLUMNS / (report->count + 1));
    if (!status) status = chart_write(&chart, "Steps done over time", report->page);
    chart_close(&chart);
    report_card_end(report);
    return status;
}

/* ---- the table */

static void write_row(const struct report *report, const struct report_run *run,
                      const struct report_event *event) {
    FILE *page = report->page;
    char text[32];
    fprintf(page, "<tr><td class=\"t\">%s</td><td class=\"n\">%s</td><td class=\"n\">",
            moment_text(event->time, text), seconds_text(event->time - run->first_time, (char[32]){0}));
    if (isfinite(event->step))
        fprintf(page, "%.0f", event->step);
    else
        fprintf(page, "\xe2\x80\x93");
    fprintf(page, "</td><td><span class=\"tag %s\">", report_mark_class[mark_of(event)]);
    html_text(page, event->kind);
    fprintf(page, "</span></td><td class=\"w\">");
    html_text(page, event->text);
    fprintf(page, "</td></tr>\n");
}

/* Events of one kind, or of all kinds beyond the first MAX_KINDS − 1. */
struct kind {
    const struct report_event *first;
    long count, seen;
};

static struct kind *kind_of(struct kind *kind, int *count, const struct report_event *event) {
    for (int k = 0; k < *count && k < MAX_KINDS - 1; k++)
        if (!strcmp(kind[k].first->kind, event->kind)) return &kind[k];
    if (*count == MAX_KINDS) return &kind[MAX_KINDS - 1];
    kind[*count] = (struct kind){.first = event};
    return &kind[(*count)++];
}

/* How many of each kind, where there are more than a few. */
static void write_counts(const struct report *report, const struct kind *kind, int count) {
    FILE *page = report->page;
    fprintf(page, "<p>");
    for (int k = 0; k < count; k++) {
        fprintf(page, "<span class=\"tag %s\">%ld ", report_mark_class[mark_of(kind[k].first)],
                kind[k].count);
        html_text(page, k == MAX_KINDS - 1 ? "others" : kind[k].first->kind);
        fprintf(page, "</span> ");
    }
    fprintf(page, "</p>\n");
}

static void write_left_out(const struct report *report, long count) {
    if (count > 0)
        fprintf(report->page,
                "<tr><td colspan=\"5\" class=\"lacks\">%ld more event%s, which metrics.jsonl has</td></tr>\n",
                count, count == 1 ? "" : "s");
}

/* All events, or the first and last ones of each kind. */
static void write_rows(const struct report *report, const struct report_run *run, struct kind *kind,
                       int count) {
    long left_out = 0;
    for (long i = 0; i < run->events; i++) {
        struct kind *own = kind_of(kind, &count, &run->event[i]);
        long at = own->seen++;
        if (run->events > MAX_ROWS && at >= FIRST_ROWS && at < own->count - LAST_ROWS) {
            left_out++;
            continue;
        }
        write_left_out(report, left_out);
        left_out = 0;
        write_row(report, run, &run->event[i]);
    }
    write_left_out(report, left_out);
}

static void write_table(const struct report *report, int r) {
    const struct report_run *run = &report->run[r];
    FILE *page = report->page;
    struct kind kind[MAX_KINDS];
    int count = 0;
    for (long i = 0; i < run->events; i++) kind_of(kind, &count, &run->event[i])->count++;
    fprintf(page, "<div class=\"card wide\"><h3>");
    if (report->count > 1) report_name(report, r);
    fprintf(page, "%s</h3>\n", report->count > 1 ? "" : "Events");
    if (run->events >= 12) write_counts(report, kind, count);
    if (run->events > MAX_ROWS)
        fprintf(page, "<p class=\"note\">of each kind the first %d and the last %d</p>\n", FIRST_ROWS,
                LAST_ROWS);
    fprintf(page, "<div class=\"scroll\"><table class=\"full\"><thead><tr><th>time, UTC</th><th "
                  "class=\"n\">since the start</th>"
                  "<th class=\"n\">step</th><th>event</th><th>what it says</th></tr></thead>\n");
    write_rows(report, run, kind, count);
    fprintf(page, "</table></div></div>\n");
}

int report_timeline(const struct report *report) {
    bool *lacking = calloc((size_t)report->count, sizeof *lacking), timed = false;
    if (!lacking) return report_no_memory();
    for (int r = 0; r < report->count; r++) {
        lacking[r] = report->run[r].clock.count == 0;
        timed |= report->run[r].clock.count > 0;
    }
    report_heading(report, "events", "Events");
    fprintf(report->page, "<div class=\"grid\">\n");
    int status = timed ? draw(report) : GDN_OK;
    for (int r = 0; r < report->count && !status; r++)
        if (report->run[r].events > 0) write_table(report, r);
    fprintf(report->page, "</div>\n");
    report_lacks(report, lacking,
                 "no time line: the events carry no <code>time</code>, as older versions wrote them");
    free(lacking);
    return status;
}
