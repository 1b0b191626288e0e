#include "train/records/prometheus.h"

#include "kernels/base/status.h"
#include "kernels/base/utf8.h"
#include "kernels/base/write_whole.h"
#include "train/config/number.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* run="…" with backslashes, quotes and newlines escaped, as the format wants it, and U+FFFD for what is no
 * UTF-8. */
static bool write_label(const char *value, char *out, size_t size) {
    size_t used = (size_t)snprintf(out, size, "run=\"");
    const char *end = value + strlen(value);
    while (value < end && used + 6 < size) { /* with room for a character of four bytes and the end */
        const size_t width = utf8_bytes(value, (size_t)(end - value));
        if (strchr("\\\"\n", *value)) out[used++] = '\\';
        const char *written = *value == '\n' ? "n" : width ? value : "\xef\xbf\xbd";
        for (size_t i = 0; i < (width ? width : 3); i++) out[used++] = written[i];
        value += width ? width : 1;
    }
    out[used++] = '"';
    out[used] = 0;
    return !*value;
}

/* Bytes of text: names, help and types of metrics, and of each sample without its run. */
enum { HEADS = 16384, SAMPLE = 128 };

/* Whether the paths have room. */
static bool set_paths(struct prometheus *out, const char *directory) {
    *out = (struct prometheus){0};
    int length = snprintf(out->path, sizeof out->path, "%s/metrics.prom", directory);
    snprintf(out->beside, sizeof out->beside, "%s.new", out->path);
    return length < (int)sizeof out->path;
}

int prometheus_open(struct prometheus *out, const char *directory, int samples) {
    bool fits = set_paths(out, directory);
    char *whole = realpath(directory, NULL);
    fits = fits && write_label(whole ? whole : directory, out->run, sizeof out->run);
    free(whole);
    if (!fits) return gdn_fail(GDN_INTERNAL, "the path of %s/metrics.prom is too long", directory);
    out->size = HEADS + (size_t)samples * (SAMPLE + strlen(out->run));
    out->text = malloc(out->size);
    return out->text ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the text of %s", out->path);
}

void prometheus_free(struct prometheus *prometheus) {
    free(prometheus->text);
    prometheus->text = NULL;
}

void prometheus_begin(struct prometheus *prometheus) {
    prometheus->used = 0;
    prometheus->name = NULL;
}

static void add(struct prometheus *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct prometheus *p, const char *format, ...) {
    if (p->used >= p->size) return;
    va_list list;
    va_start(list, format);
    int n = vsnprintf(p->text + p->used, p->size - p->used, format, list);
    va_end(list);
    p->used += (size_t)n;
}

void prometheus_metric(struct prometheus *prometheus, const char *name, const char *type, const char *help) {
    prometheus->name = name;
    prometheus->type = type;
    prometheus->help = help;
    prometheus->samples = 0;
}

void prometheus_sample(struct prometheus *prometheus, const char *suffix, const char *labels, double value) {
    if (isnan(value)) return;
    const char *name = prometheus->name;
    char number[NUMBER_TEXT] = "";
    if (isfinite(value))
        number_write(value, number);
    else
        snprintf(number, sizeof number, value > 0 ? "+Inf" : "-Inf");
    if (!prometheus->samples++)
        add(prometheus, "# HELP %s %s\n# TYPE %s %s\n", name, prometheus->help, name, prometheus->type);
    add(prometheus, "%s%s{%s%s%s} %s\n", name, suffix, prometheus->run, *labels ? "," : "", labels, number);
}

void prometheus_value(struct prometheus *prometheus, const char *name, const char *type, const char *help,
                      double value) {
    prometheus_metric(prometheus, name, type, help);
    prometheus_sample(prometheus, "", "", value);
}

static int fail(struct prometheus *p, const char *path, const char *what, const char *reason) {
    snprintf(p->failure, sizeof p->failure, "%s: %s: %s", path, what, reason);
    return -1;
}

int prometheus_write(struct prometheus *prometheus) {
    struct prometheus *p = prometheus;
    if (p->used >= p->size) return fail(p, p->path, "cannot write", "its text does not fit its memory");
    int file = open(p->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return fail(p, p->beside, "cannot create", strerror(errno));
    int reason = write_whole(file, p->text, p->used);
    if (close(file) && !reason) reason = errno;
    if (!reason && rename(p->beside, p->path)) reason = errno;
    if (!reason) return 0;
    unlink(p->beside);
    return fail(p, p->path, "cannot write", strerror(reason));
}

int prometheus_remove(struct prometheus *out, const char *directory) {
    if (set_paths(out, directory) && unlink(out->path) && errno != ENOENT)
        return fail(out, out->path, "cannot remove", strerror(errno));
    return 0;
}
