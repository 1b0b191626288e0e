/* The page of gdn report: one HTML file of sections, each about one side of one or several runs. */
#ifndef GDN_REPORT_PAGE_H
#define GDN_REPORT_PAGE_H

#include <stdio.h>

#include "train/report/figure.h"
#include "train/report/read.h"

struct report {
    struct report_run *run; /* [count] */
    int count;
    FILE *page;
    const char *commit; /* of the program that writes it */
};

/* Writes the whole page. Not collective; starts gnuplot for each figure. What a run lacks is left out, with a
 * line that says why. GDN_INPUT where gnuplot is missing or fails, GDN_INTERNAL. */
int report_page(const struct report *report);

/* ---- the sections, in their order, and what they share */

int report_summary(const struct report *report);
int report_training(const struct report *report); /* loss, gradient norm, learning rate */
int report_loss(const struct report *report);     /* its figure of losses, over steps, tokens or time */
int report_sets(const struct report *report);     /* its figures of validation sets by name */
int report_speed(const struct report *report);    /* throughput, step times, goodput */
int report_memory(const struct report *report);
int report_memory_curves(const struct report *report); /* its last figure, which ends its grid */
int report_connections(const struct report *report);   /* how many are used, their share of a step */
int report_gates(const struct report *report);         /* by layer and distance, over time and at the end */
int report_checkpoints(const struct report *report);
int report_timeline(const struct report *report); /* starts, stops, faults */
int report_settings(const struct report *report); /* config.yaml, or what differs */

/* A section's heading, which the page's list of contents leads to. */
void report_heading(const struct report *report, const char *id, const char *title);

/* A card with a title and, unless NULL, a note below it; wide: as wide as the page. Ended by report_card_end.
 */
void report_card(const struct report *report, bool wide, const char *title, const char *note);
void report_card_end(const struct report *report);

/* The line that says what is missing, e.g. "No `gates` events: …"; of several runs with the names of those
 * that lack it (lacking[i] of run i). Nothing where none does. */
void report_lacks(const struct report *report, const bool *lacking, const char *words);

/* Whether the run's model is known to have no delta connections. */
bool report_plain_model(const struct report_run *run);

/* Whether all validation losses were measured on the same data in the same way, as far as is known, and a
 * paragraph about it where they were not. */
bool report_alike(const struct report *report);
void report_tell_alike(const struct report *report);

/* A run's name with its colour. */
void report_name(const struct report *report, int run);

/* One curve of a figure. */
struct report_line {
    const struct series *series;
    int run, kind; /* kind: an index into the figure's names */
    bool raw;      /* single points, marked, neither smoothed nor shaded */
};

/* What curves are drawn over. */
enum report_over { OVER_STEPS, OVER_TOKENS, OVER_TIME, OVERS };

enum report_axis { AXIS_NUMBER, AXIS_SECONDS, AXIS_BYTES, AXIS_PERCENT, AXIS_COUNT };

struct report_curves {
    const char *title, *note; /* note: NULL for none */
    const char *label;        /* of the y axis */
    const char *const *name;  /* [kinds] what the kinds of curves are; NULL for one kind */
    int kinds;
    enum report_axis axis;
    enum report_over over;
    bool log, zero, wide;
    bool smooth; /* shows the points pale behind their mean */
};

/* The parts of a card with a figure: what is what, and the figure of `count` curves. */
void report_legend(const struct report *report, const struct report_curves *look,
                   const struct report_line *line, int count);
int report_plot(const struct report *report, const struct report_curves *look, const struct report_line *line,
                int count);

/* A card with a figure of `count` curves, empty ones left out. */
int report_draw(const struct report *report, const struct report_curves *look, const struct report_line *line,
                int count);

#endif
