/* What a person sees of a training run: on a terminal one line that is rewritten, elsewhere (a file, a batch
 * system's log) a plain line now and then. */
#ifndef GDN_PROGRESS_H
#define GDN_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "train/config/config.h"
#include "train/records/metrics.h"

struct progress {
    FILE *out;                        /* NULL: silent (every rank but one) */
    bool terminal;                    /* rewrite one line */
    const struct train_config *train; /* of the run, for the sizes of its batches */
    long first;                       /* steps done before this start */
    double started, shown;            /* seconds of a monotonic clock; `shown`: of the last line */
    long shown_step;                  /* steps done at the last line; −1: none yet */
    bool standing;                    /* a line that is to be rewritten is on the terminal */
};

/* Starts showing a run, of which `done` steps are done. `out` may be NULL. `train` outlives it. */
void progress_open(struct progress *progress, FILE *out, long done, const struct train_config *train);

/* Shows a step that was just done, where it is time to: on a terminal ten times a second, else after 2 s and
 * a twentieth of the run, or a minute; the first and the last step always. */
void progress_step(struct progress *progress, const struct step_report *report);

/* Prints a line that stays, e.g. an evaluation; a rewritten line gives way to it. */
void progress_note(struct progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends a line that stands. */
void progress_close(struct progress *progress);

/* The line of a step in at most `width` columns (0: no limit), without newline: with a bar where `bar` is set
 * and there is room; parts that do not fit are left out from the right. `seconds_left` below 0: unknown. */
void progress_line(char *line, size_t size, int width, bool bar, const struct step_report *report, long steps,
                   double seconds_left);

/* "59 s", "12:05", "3:01:40", "2 d 03:00" from seconds; `out` holds at least 32 bytes. */
void progress_duration(double seconds, char *out);

#endif
