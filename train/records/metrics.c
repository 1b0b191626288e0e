#include "train/records/metrics.h"

#include "kernels/base/status.h"
#include "kernels/base/utf8.h"
#include "kernels/base/write_whole.h"
#include "train/config/number.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Length of the file up to and with its last newline, −1 on a read error. */
static off_t end_of_lines(int file, off_t size) {
    char block[4096];
    while (size > 0) {
        off_t from = size > (off_t)sizeof block ? size - (off_t)sizeof block : 0;
        ssize_t n = pread(file, block, (size_t)(size - from), from);
        if (n != size - from) return -1;
        for (ssize_t i = n; i-- > 0;)
            if (block[i] == '\n') return from + i + 1;
        size = from;
    }
    return 0;
}

int metrics_open(const char *directory, struct metrics *metrics) {
    *metrics = (struct metrics){.file = -1};
    snprintf(metrics->path, sizeof metrics->path, "%s/metrics.jsonl", directory);
    int file = open(metrics->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return gdn_fail(GDN_INPUT, "%s: cannot open for writing: %s", metrics->path, strerror(errno));
    struct stat info;
    off_t end = fstat(file, &info) ? -1 : end_of_lines(file, info.st_size);
    tallies_clear(&metrics->tallies);
    if (end < 0 || tallies_file(&metrics->tallies, file, end, metrics->line, sizeof metrics->line) ||
        (end < info.st_size && ftruncate(file, end))) {
        int reason = errno;
        close(file);
        return gdn_fail(GDN_INPUT, "%s: cannot read back its lines: %s", metrics->path, strerror(reason));
    }
    metrics->file = file;
    return 0;
}

void metrics_close(struct metrics *metrics) {
    if (metrics->file >= 0) close(metrics->file);
    metrics->file = -1;
}

static void add(struct metrics *metrics, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends to the line. One that has no room left is marked by `used` reaching the end, which metrics_end
 * refuses. */
static void add(struct metrics *metrics, const char *format, ...) {
    int room = (int)sizeof metrics->line - metrics->used;
    va_list list;
    va_start(list, format);
    int n = vsnprintf(metrics->line + metrics->used, (size_t)room, format, list);
    va_end(list);
    metrics->used += n < room ? n : room - 1;
}

/* Bytes that are no UTF-8, which names of files may have, become U+FFFD. */
static void add_quoted(struct metrics *metrics, const char *text) {
    const char *end = text + strlen(text);
    add(metrics, "\"");
    for (size_t width; text < end; text += width ? width : 1) {
        unsigned char c = (unsigned char)*text;
        width = utf8_bytes(text, (size_t)(end - text));
        if (!width)
            add(metrics, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            add(metrics, "\\%c", c);
        else if (c < 0x20)
            add(metrics, "\\u%04x", c);
        else
            add(metrics, "%.*s", (int)width, text);
    }
    add(metrics, "\"");
}

static void add_key(struct metrics *metrics, const char *key) {
    bool first = metrics->used > 0 && metrics->line[metrics->used - 1] == '{';
    add(metrics, "%s\"%s\":", first ? "" : ",", key);
}

void metrics_begin(struct metrics *metrics, const char *event) {
    metrics->used = 0;
    add(metrics, "{\"event\":\"%s\"", event);
}

void metrics_object(struct metrics *metrics, const char *key) {
    add_key(metrics, key);
    add(metrics, "{");
}

void metrics_object_end(struct metrics *metrics) {
    add(metrics, "}");
}

void metrics_integer(struct metrics *metrics, const char *key, int64_t value) {
    add_key(metrics, key);
    add(metrics, "%lld", (long long)value);
}

void metrics_boolean(struct metrics *metrics, const char *key, bool value) {
    add_key(metrics, key);
    add(metrics, "%s", value ? "true" : "false");
}

static void add_number(struct metrics *metrics, double value) {
    char text[NUMBER_TEXT] = "null";
    if (isfinite(value)) number_write(value, text);
    add(metrics, "%s", text);
}

void metrics_number(struct metrics *metrics, const char *key, double value) {
    add_key(metrics, key);
    add_number(metrics, value);
}

void metrics_text(struct metrics *metrics, const char *key, const char *value) {
    add_key(metrics, key);
    add_quoted(metrics, value);
}

int metrics_end(struct metrics *metrics) {
    if (metrics->file < 0 || metrics->status) return metrics->status;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    add(metrics, ",\"time\":%lld.%03ld}\n", (long long)now.tv_sec, now.tv_nsec / 1000000);
    if (metrics->line[metrics->used - 1] != '\n')
        return metrics->status = gdn_fail(GDN_INTERNAL, "%s: a line would be longer than %zu bytes",
                                          metrics->path, sizeof metrics->line);
    const int reason = write_whole_or_none(metrics->file, metrics->line, (size_t)metrics->used);
    if (reason)
        return metrics->status =
                   gdn_fail(GDN_INTERNAL, "%s: cannot write: %s", metrics->path, strerror(reason));
    tallies_line(&metrics->tallies, metrics->line, (size_t)metrics->used);
    return 0;
}

void metrics_integers(struct metrics *metrics, const char *key, const int *values, int count) {
    add_key(metrics, key);
    for (int i = 0; i < count; i++) add(metrics, i ? ",%d" : "[%d", values[i]);
    add(metrics, count ? "]" : "[]");
}

void metrics_numbers(struct metrics *metrics, const char *key, const double *values, int count) {
    add_key(metrics, key);
    for (int i = 0; i < count; i++) {
        add(metrics, i ? "," : "[");
        add_number(metrics, values[i]);
    }
    add(metrics, count ? "]" : "[]");
}

/* A value for each axis of the mesh, as an object: `seconds` or `bytes`, the other being NULL. */
static void add_axes(struct metrics *metrics, const char *key, const double *seconds, const int64_t *bytes) {
    metrics_object(metrics, key);
    for (int a = 0; a < axes_count(); a++)
        if (seconds)
            metrics_number(metrics, axis_rows[a].name, seconds[a]);
        else
            metrics_integer(metrics, axis_rows[a].name, bytes[a]);
    metrics_object_end(metrics);
}

int metrics_step(struct metrics *metrics, const struct step_report *report) {
    metrics_begin(metrics, "step");
    metrics_integer(metrics, "step", report->step);
    metrics_number(metrics, "loss", report->loss);
    metrics_number(metrics, "ce", report->ce);
    metrics_number(metrics, "sparsity", report->sparsity);
    metrics_number(metrics, "entropy", report->entropy);
    if (report->z_loss != 0) metrics_number(metrics, "z_loss", report->z_loss);
    if (report->l1 != 0) metrics_number(metrics, "l1", report->l1);
    if (report->num_exits) metrics_numbers(metrics, "exits", report->exits, report->num_exits);
    metrics_number(metrics, "grad_norm", report->grad_norm);
    metrics_number(metrics, "lr", report->lr);
    metrics_integer(metrics, "active_distances", report->active_distances);
    metrics_integer(metrics, "active_edges", report->active_edges);
    metrics_integer(metrics, "tokens", report->tokens);
    if (report->masked) metrics_integer(metrics, "counted", report->counted);
    metrics_number(metrics, "tokens_per_second", report->tokens_per_second);
    metrics_number(metrics, "step_seconds", report->step_seconds);
    add_axes(metrics, "communication_seconds", report->communication_seconds, NULL);
    add_axes(metrics, "communication_bytes", NULL, report->communication_bytes);
    metrics_number(metrics, "model_flops_utilization", NAN); /* no machine's peak is known to this version */
    return metrics_end(metrics);
}
