/* gdn report: the figures that one asks for first, as tiles of one run or a table of several. */
#include "train/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/report/html.h"
#include "train/report/text.h"

enum field {
    STATE,
    STEPS,
    LOSS,
    VALIDATION,
    THROUGHPUT,
    WALL,
    GOODPUT,
    RESTARTS,
    PARAMETERS,
    MESH,
    DEVICE,
    PRECISION,
    FIELDS
};

static const struct {
    const char *label;
    bool is_text; /* rather than a number */
} fields[FIELDS] = {
    [STATE] = {"State", true},
    [STEPS] = {"Steps", false},
    [LOSS] = {"Final loss", false},
    [VALIDATION] = {"Best validation loss", false},
    [THROUGHPUT] = {"Tokens a second, median", false},
    [WALL] = {"Wall time", false},
    [GOODPUT] = {"Goodput", false},
    [RESTARTS] = {"Restarts", false},
    [PARAMETERS] = {"Parameters", false},
    [MESH] = {"Mesh", true},
    [DEVICE] = {"Device", true},
    [PRECISION] = {"Precision", true},
};

/* A figure and what there is to say about it; texts of users are in it, unescaped. */
struct value {
    char text[128], note[256];
};

/* As much of a text as a note has room for, up to a whole character. */
static void note_text(const char *text, struct value *out) {
    size_t max = sizeof out->note - 4, length = strlen(text);
    if (length <= max) {
        memcpy(out->note, text, length + 1);
        return;
    }
    while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80) max--;
    snprintf(out->note, sizeof out->note, "%.*s\xe2\x80\xa6", (int)max, text);
}

/* Of a run that has told its end: its status, with why it was asked to stop, or what failed. */
static void tell_end(const struct report_event *end, const struct report_event *asked, struct value *out) {
    snprintf(out->text, sizeof out->text, "%s", report_end_text(end->status));
    if (end->status == GDN_OK) return;
    note_text(end->status == GDN_STOPPED && asked ? asked->text : end->text, out);
}

/* How the run ended, as far as it has told; older versions have no event `end`. */
static void tell_state(const struct report_run *run, struct value *out) {
    const struct report_event *end = NULL, *last = NULL, *asked = NULL;
    for (long i = 0; i < run->events; i++) {
        const struct report_event *event = &run->event[i];
        bool ask = !strcmp(event->kind, "stop") || !strcmp(event->kind, "signal");
        if (!strcmp(event->kind, "start") || !strcmp(event->kind, "resume"))
            end = last = asked = NULL;
        else if (ask || !strcmp(event->kind, "finish") || !strcmp(event->kind, "diverged"))
            last = event;
        if (ask) asked = event;
        if (event->status >= 0) end = event;
    }
    if (end) {
        tell_end(end, asked, out);
    } else if (!last) {
        snprintf(out->text, sizeof out->text, "%s", run->started ? "no end told" : "not started");
        if (run->started) note_text("still running, or ended at once", out);
    } else if (last == asked) {
        snprintf(out->text, sizeof out->text, "stopped");
        note_text(asked->text, out);
    } else {
        snprintf(out->text, sizeof out->text, "%s",
                 strcmp(last->kind, "finish") ? last->kind : "finished"); /* or diverged */
    }
}

static void tell_losses(const struct report_run *run, struct value *out) {
    char number[32];
    const struct series *loss = &run->curve[CURVE_LOSS], *validation = &run->curve[CURVE_VALIDATION];
    double last = loss->count ? loss->y[loss->count - 1] : NAN;
    snprintf(out[LOSS].text, sizeof out->text, "%s", number_text(last, number));
    if (loss->count >= 20) {
        long some = loss->count / 20 < 100 ? loss->count / 20 : 100;
        double sum = 0;
        for (long i = loss->count - some; i < loss->count; i++) sum += loss->y[i];
        if (some > 1)
            snprintf(out[LOSS].note, sizeof out->note, "mean of the last %ld: %s", some,
                     number_text(sum / (double)some, number));
    }
    long best = -1;
    for (long i = 0; i < validation->count; i++)
        if (best < 0 || validation->y[i] < validation->y[best]) best = i;
    snprintf(out[VALIDATION].text, sizeof out->text, "%s",
             number_text(best < 0 ? NAN : validation->y[best], number));
    if (best >= 0) snprintf(out[VALIDATION].note, sizeof out->note, "after step %.0f", validation->x[best]);
}

static int tell_speed(const struct report_run *run, struct value *out) {
    char number[32];
    double median;
    TRY(series_quantile(&run->curve[CURVE_THROUGHPUT], 0.5, &median));
    snprintf(out[THROUGHPUT].text, sizeof out->text, "%s", count_text(median, number));
    if (isfinite(run->tokens))
        snprintf(out[THROUGHPUT].note, sizeof out->note, "%s tokens in all", count_text(run->tokens, number));
    double wall = run->last_time - run->first_time, goodput = report_goodput(run);
    snprintf(out[WALL].text, sizeof out->text, "%s", isfinite(wall) ? seconds_text(wall, number) : "unknown");
    snprintf(out[WALL].note, sizeof out->note, "%s",
             isfinite(wall) ? "from the first start to the last event" : "its events carry no time");
    snprintf(out[GOODPUT].text, sizeof out->text, "%s",
             isfinite(goodput) ? percent_text(goodput, number) : "unknown");
    if (isfinite(goodput))
        snprintf(out[GOODPUT].note, sizeof out->note, "%s of steps that count",
                 seconds_text(series_sum(&run->useful), number));
    return GDN_OK;
}

/* The ranks of each axis that the run tells of. */
static void tell_axes(const struct report_run *run, struct value *out) {
    char text[sizeof out->text], note[sizeof out->note];
    size_t t = 0, n = 0;
    for (int a = 0; a < axes_count(); a++) {
        if (!(run->axis[a] > (axis_rows[a].pieces ? 1 : 0))) continue; /* axes_shown */
        t += (size_t)snprintf(text + t, sizeof text - t, "%s%.0f", t ? " \xc3\x97 " : "", run->axis[a]);
        n += (size_t)snprintf(note + n, sizeof note - n, "%s%s", n ? ", " : "", axis_rows[a].name);
        if (t >= sizeof text || n >= sizeof note) return; /* a damaged file's numbers may be of any length */
    }
    if (!t) return;
    snprintf(note + n, sizeof note - n, ": %.0f ranks", run->ranks);
    memcpy(out->text, text, sizeof text);
    memcpy(out->note, note, sizeof note);
}

static void tell_setting(const struct report_run *run, struct value *out) {
    char number[32];
    snprintf(out[PARAMETERS].text, sizeof out->text, "%s", count_text(run->parameters, number));
    snprintf(out[MESH].text, sizeof out->text, "\xe2\x80\x93");
    if (run->ranks > 0)
        snprintf(out[MESH].text, sizeof out->text, "%.0f rank%s", run->ranks, run->ranks == 1 ? "" : "s");
    if (run->ranks > 1) tell_axes(run, &out[MESH]);
    snprintf(out[DEVICE].text, sizeof out->text, "%.120s", run->device ? run->device : "\xe2\x80\x93");
    snprintf(out[PRECISION].text, sizeof out->text, "%.120s",
             run->precision ? run->precision : "\xe2\x80\x93");
}

static int tell(const struct report_run *run, struct value out[FIELDS]) {
    char number[32];
    memset(out, 0, FIELDS * sizeof *out);
    tell_state(run, &out[STATE]);
    snprintf(out[STEPS].text, sizeof out->text, "%.0f", run->done);
    if (run->steps > 0)
        snprintf(out[STEPS].note, sizeof out->note, "of %.0f, %s", run->steps,
                 percent_text(run->done / run->steps, number));
    snprintf(out[RESTARTS].text, sizeof out->text, "%d", run->restarts);
    tell_setting(run, out);
    tell_losses(run, out);
    return tell_speed(run, out);
}

static int write_tiles(const struct report *report) {
    struct value value[FIELDS];
    TRY(tell(&report->run[0], value));
    fprintf(report->page, "<div class=\"tiles\">\n");
    for (int f = 0; f < FIELDS; f++) {
        fprintf(report->page, "<div class=\"tile%s\"><span>%s</span><b>", fields[f].is_text ? " words" : "",
                fields[f].label);
        html_text(report->page, value[f].text);
        fprintf(report->page, "</b><span>");
        html_text(report->page, value[f].note);
        fprintf(report->page, "</span></div>\n");
    }
    fprintf(report->page, "</div>\n<p class=\"note\" style=\"margin-top:10px\">Run directory <code>");
    html_text(report->page, report->run[0].path);
    fprintf(report->page, "</code></p>\n");
    return GDN_OK;
}

static int write_table(const struct report *report) {
    FILE *page = report->page;
    struct value(*value)[FIELDS] = malloc((size_t)report->count * sizeof *value);
    if (!value) return report_no_memory();
    int status = GDN_OK;
    for (int r = 0; r < report->count && !status; r++) status = tell(&report->run[r], value[r]);
    fprintf(page, "<div class=\"card scroll tall\"><table class=\"full\"><thead><tr><th></th>");
    for (int r = 0; r < report->count; r++) {
        fprintf(page, "<th>");
        report_name(report, r);
        fprintf(page, "</th>");
    }
    fprintf(page, "</tr></thead>\n");
    for (int f = 0; f < FIELDS && !status; f++) {
        bool uneven = f == VALIDATION && !report_comparable(report);
        fprintf(page, "<tr><th>%s%s</th>", fields[f].label, uneven ? " (not comparable)" : "");
        for (int r = 0; r < report->count; r++) {
            fprintf(page, "<td class=\"w\">");
            html_text(page, value[r][f].text);
            fprintf(page, "<div class=\"note\">");
            html_text(page, value[r][f].note);
            fprintf(page, "</div></td>");
        }
        fprintf(page, "</tr>\n");
    }
    fprintf(page, "<tr><th>Run directory</th>");
    for (int r = 0; r < report->count; r++) {
        fprintf(page, "<td class=\"w\"><code>");
        html_text(page, report->run[r].path);
        fprintf(page, "</code></td>");
    }
    fprintf(page, "</tr></table></div>\n");
    report_tell_comparable(report);
    free(value);
    return status;
}

int report_summary(const struct report *report) {
    report_heading(report, "summary", "Summary");
    return report->count == 1 ? write_tiles(report) : write_table(report);
}
