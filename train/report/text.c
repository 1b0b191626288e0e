#include "train/report/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/report/html.h"

double report_number(const json_t *line, const char *key) {
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *report_string(const json_t *line, const char *key) {
    return json_string_value(json_object_get(line, key));
}

/* "grad norm" for grad_norm. */
static void write_key(FILE *out, const char *key) {
    for (; *key; key++) fputc(*key == '_' ? ' ' : *key, out);
}

static void write_value(FILE *out, const json_t *value) {
    if (json_is_string(value)) {
        fputs(json_string_value(value), out);
    } else if (json_is_number(value)) {
        double x = json_number_value(value);
        fprintf(out, fabs(x) < 1e15 && x == floor(x) ? "%.0f" : "%.6g", x);
    } else if (json_is_boolean(value)) {
        fputs(json_is_true(value) ? "yes" : "no", out);
    } else if (json_is_null(value)) {
        fputs("unknown", out);
    } else {
        char *text = json_dumps(value, JSON_REAL_PRECISION(6));
        fputs(text ? text : "?", out);
        free(text);
    }
}

/* Every key and its value, but what the table has columns for; of a reason the value alone. */
static void write_all(FILE *out, const json_t *line) {
    const char *key, *comma = "";
    json_t *value;
    json_object_foreach((json_t *)line, key, value) {
        if (!strcmp(key, "event") || !strcmp(key, "step") || !strcmp(key, "time")) continue;
        fputs(comma, out);
        if (strcmp(key, "reason")) {
            write_key(out, key);
            fputc(' ', out);
        }
        write_value(out, value);
        comma = ", ";
    }
}

static void write_start(FILE *out, const json_t *line) {
    double ranks = report_number(line, "ranks"), skipped = report_number(line, "skipped_checkpoints");
    const char *device = report_string(line, "device");
    if (ranks > 0) fprintf(out, "%.0f rank%s", ranks, ranks == 1 ? "" : "s");
    if (device) fprintf(out, "%s%s", ranks > 0 ? ", " : "", device);
    if (skipped > 0) fprintf(out, "; %.0f damaged checkpoint%s left out", skipped, skipped == 1 ? "" : "s");
}

static void write_spike(FILE *out, const json_t *line) {
    const char *what = report_string(line, "what"), *action = report_string(line, "action");
    double value = report_number(line, "value"), mean = report_number(line, "mean"),
           z = report_number(line, "z"), to = report_number(line, "to_step");
    write_key(out, what ? what : "?");
    if (isfinite(value)) fprintf(out, " %.5g", value);
    if (isfinite(z)) fprintf(out, ", %.3g deviations from the mean", z);
    if (isfinite(z) && isfinite(mean)) fprintf(out, " %.5g", mean);
    if (action) fprintf(out, ": %s", action);
    if (isfinite(to) && action && !strcmp(action, "rewind")) fprintf(out, " to step %.0f", to);
}

const char *report_end_text(int status) {
    static const char *const message[] = {
        [GDN_OK] = "finished",     [GDN_INTERNAL] = "failed",   [GDN_INPUT] = "bad input",
        [GDN_STOPPED] = "stopped", [GDN_UNSAVED] = "not saved", [GDN_DIVERGED] = "diverged",
    };
    return status >= 0 && status <= GDN_DIVERGED ? message[status] : "failed";
}

static void write_end(FILE *out, const json_t *line) {
    double status = report_number(line, "status");
    const char *reason = report_string(line, "reason");
    fprintf(out, "status %.0f", status);
    if (status >= 0 && status < 256) fprintf(out, ", %s", report_end_text((int)status));
    if (reason && *reason) fprintf(out, ": %s", reason);
}

static void write_text(FILE *out, const char *kind, const json_t *line) {
    const char *message = report_string(line, "words");
    double seconds = report_number(line, "seconds");
    char text[32];
    if (message) {
        fputs(message, out);
    } else if (!strcmp(kind, "start") || !strcmp(kind, "resume")) {
        write_start(out, line);
    } else if (!strcmp(kind, "spike")) {
        write_spike(out, line);
    } else if (!strcmp(kind, "finish") && isfinite(seconds)) {
        fprintf(out, "%s since this start", seconds_text(seconds, text));
    } else if (!strcmp(kind, "end") && isfinite(report_number(line, "status"))) {
        write_end(out, line);
    } else {
        write_all(out, line);
    }
}

char *report_text(const char *kind, const json_t *line) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    write_text(out, kind, line);
    return fclose(out) ? (free(text), NULL) : text;
}
