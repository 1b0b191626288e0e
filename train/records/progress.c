#include "train/records/progress.h"

#include "train/config/batch.h"
#include "train/records/printing.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 20, LINE = 256 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Columns of the terminal; 0 where `out` is none. mpirun hands its ranks a terminal without a width even
 * where its own output is a file: that counts as none, unless who started mpirun exports COLUMNS. */
static int terminal_width(FILE *out) {
    struct winsize size;
    const char *kind = getenv("TERM");
    if (!isatty(fileno(out)) || !kind || !strcmp(kind, "dumb")) return 0;
    if (!ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col) return size.ws_col;
    const char *columns = getenv("COLUMNS");
    return columns ? atoi(columns) : 0;
}

void progress_open(struct progress *progress, FILE *out, long done, const struct train_config *train) {
    *progress = (struct progress){.out = out, .train = train, .first = done, .shown_step = -1};
    progress->terminal = out && terminal_width(out) > 0;
    progress->started = progress->shown = now();
}

void progress_duration(double seconds, char *out) {
    long s = (long)(seconds + 0.5);
    if (s < 60)
        snprintf(out, 32, "%ld s", s);
    else if (s < 3600)
        snprintf(out, 32, "%ld:%02ld", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%ld d %02ld:%02ld", s / 86400, s / 3600 % 24, s / 60 % 60);
}

/* Adds a part to the line unless it would pass `width`; whether it did. */
static bool add_part(char *line, size_t size, int width, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool add_part(char *line, size_t size, int width, const char *format, ...) {
    char part[LINE];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(part, sizeof part, format, list);
    va_end(list);
    size_t used = strlen(line), columns = used + (size_t)n;
    if (columns >= size || (width && columns > (size_t)width)) return false;
    memcpy(line + used, part, (size_t)n + 1);
    return true;
}

void progress_line(char *line, size_t size, int width, bool bar, const struct step_report *report, long steps,
                   double seconds_left) {
    long done = (long)report->step + 1;
    double share = steps > 0 ? (double)done / (double)steps : 1;
    line[0] = 0;
    if (!add_part(line, size, width, "step %ld/%ld", done, steps)) return;
    if (!add_part(line, size, width, " %3.0f%%", floor(100 * share))) return;
    if (bar && (!width || width >= 100)) { /* a narrow terminal has better use for the columns */
        char drawn[BAR + 1];
        for (int i = 0; i < BAR; i++) drawn[i] = i < (int)(share * BAR) ? '=' : ' ';
        drawn[BAR] = 0;
        if (!add_part(line, size, width, " [%s]", drawn)) return;
    }
    char left[32] = "";
    if (seconds_left >= 0) progress_duration(seconds_left, left);
    if (!add_part(line, size, width, "  loss %.4f", report->loss)) return;
    if (left[0] && !add_part(line, size, width, "  %s left", left)) return;
    if (!add_part(line, size, width, "  %.0f tokens/s", report->tokens_per_second)) return;
    if (!add_part(line, size, width, "  norm %.3g", report->grad_norm)) return;
    add_part(line, size, width, "  lr %.3g", report->lr);
}

static bool is_time(const struct progress *progress, long done, double time) {
    if (progress->shown_step < 0 || done >= progress->train->steps) return true;
    double waited = time - progress->shown;
    if (progress->terminal) return waited >= 0.1;
    bool far = (done - progress->shown_step) * 20 >= progress->train->steps;
    return (waited >= 2 && far) || waited >= 60;
}

void progress_step(struct progress *progress, const struct step_report *report) {
    if (!progress->out) return;
    double time = now();
    long done = (long)report->step + 1;
    if (!is_time(progress, done, time)) return;
    /* A sequence takes as long as another, whatever its batch. */
    double each = (time - progress->started) / batch_sum(progress->train, progress->first, done);
    double remaining = batch_sum(progress->train, done, progress->train->steps);
    double left = remaining > 0 ? each * remaining : -1;
    char line[LINE];
    int width = progress->terminal ? terminal_width(progress->out) - 1 : 0; /* a full last column wraps */
    progress_line(line, sizeof line, width > 0 ? width : 0, progress->terminal, report,
                  progress->train->steps, left);
    fprintf(progress->out, progress->terminal ? "\r%s\033[K" : "%s\n", line);
    commands_flush_unneeded(progress->out);
    progress->shown = time;
    progress->shown_step = done;
    progress->standing = progress->terminal;
}

void progress_note(struct progress *progress, const char *format, ...) {
    if (!progress->out) return;
    if (progress->standing) fputs("\r\033[K", progress->out);
    progress->standing = false;
    va_list list;
    va_start(list, format);
    vfprintf(progress->out, format, list);
    va_end(list);
    fputc('\n', progress->out);
    commands_flush_unneeded(progress->out);
}

void progress_close(struct progress *progress) {
    if (progress->out && progress->standing) fputc('\n', progress->out);
    if (progress->out) commands_flush_unneeded(progress->out);
    progress->out = NULL;
}
