/* Figures of curves that a run's files have as they stand. */
#ifndef GDN_REPORT_ROWS_H
#define GDN_REPORT_ROWS_H

#include "train/report/lines.h"

enum { MAX_KINDS = 3 };

struct figure_row {
    struct report_curves look;
    enum report_curve curve[MAX_KINDS];
    bool raw[MAX_KINDS];
    const char *lacks; /* what to say of runs without any of them */
};

/* The figure of those runs that have it. GDN_INPUT, GDN_INTERNAL as report_draw. */
int report_row(const struct report *report, const struct figure_row *row);

/* The line about those that lack it. GDN_INTERNAL. */
int report_row_lacks(const struct report *report, const struct figure_row *row);

/* A grid of figures, and behind it the lines about what is missing. */
int report_rows(const struct report *report, const struct figure_row *row, int count);

/* Words of what is missing. */
#define NO_STEPS "no training step has been told yet"
#define NO_MONITOR                                                                                           \
    "no <code>monitor</code> event yet: one comes after every <code>monitor.interval</code> steps (0: "      \
    "never)"

#endif
