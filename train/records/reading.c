#include "train/records/reading.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "train/records/progress.h"

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void reading_begin(struct reading_progress *progress, FILE *out) {
    const double now = seconds();
    *progress = (struct reading_progress){
        .out = out, .started = now, .told = now, .first = -1, .terminal = out && isatty(fileno(out))};
}

void reading_tell(struct reading_progress *progress, long done, long all) {
    char left[32];
    const double now = seconds(), taken = now - progress->started;
    if (!progress->out) return;
    if (progress->first < 0) {
        progress->first = done;
        if (done)
            fprintf(progress->out, "going on from %.0f%% of the text, which an earlier start has done\n",
                    100.0 * (double)done / (double)all);
    }
    const long here = done - progress->first;
    if (!here || (!progress->terminal && now - progress->told < 60)) return;
    progress->told = now;
    progress->standing = progress->terminal;
    progress_duration(taken * (double)(all - done) / (double)here, left);
    fprintf(progress->out, "%s%3.0f%%  %.1f MB/s  %s left%s", progress->terminal ? "\r" : "",
            100.0 * (double)done / (double)all, 1e-6 * (double)here / taken, left,
            progress->terminal ? "\33[K" : "\n");
    fflush(progress->out);
}

/* The pair of the n-th token stands about 1/n times as often as that of the first (Zipf's law), and so long
 * takes its merge: all up to n take about log n. */
void reading_tell_merged(struct reading_progress *progress, long done, long all) {
    char left[32];
    const double now = seconds();
    if (!progress->out) return;
    if (!progress->merging) progress->merging = now, progress->first = done;
    if (done == progress->first || (!progress->terminal && now - progress->told < 60)) return;
    progress->told = now;
    progress->standing = progress->terminal;
    progress_duration((now - progress->merging) * log((double)all / (double)done) /
                          log((double)done / (double)progress->first),
                      left);
    fprintf(progress->out, "%s%ld of %ld tokens  %s left%s", progress->terminal ? "\r" : "", done, all, left,
            progress->terminal ? "\33[K" : "\n");
    fflush(progress->out);
}

void reading_tell_each(struct reading_progress *progress, const char *what, long done, long all) {
    char left[32];
    const double now = seconds();
    if (!progress->out || !done || (!progress->terminal && now - progress->told < 60)) return;
    progress->told = now;
    progress->standing = progress->terminal;
    progress_duration((now - progress->started) * (double)(all - done) / (double)done, left);
    fprintf(progress->out, "%s%ld of %ld %s  %s left%s", progress->terminal ? "\r" : "", done, all, what, left,
            progress->terminal ? "\33[K" : "\n");
    fflush(progress->out);
}

void reading_end(struct reading_progress *progress) {
    if (progress->standing) fprintf(progress->out, "\r\33[K");
    progress->standing = false;
}
