/* What all sections of the page are made of: headings, cards, names of runs, lines about what is missing. */
#ifndef GDN_REPORT_CARD_H
#define GDN_REPORT_CARD_H

#include <stdio.h>

#include "train/report/figure.h"
#include "train/report/read.h"

/* What a page is made of. */
struct report {
    struct report_run *run; /* [count] */
    int count;
    FILE *page;
    const char *commit; /* of the program that writes it */
};

/* A section's heading, which the page's list of contents leads to. */
void report_heading(const struct report *report, const char *id, const char *title);

/* A card with a title and, unless NULL, a note below it; wide: as wide as the page. Ended by
 * report_card_end. */
void report_card(const struct report *report, bool wide, const char *title, const char *note);
void report_card_end(const struct report *report);

/* The line that says what is missing, e.g. "No `gates` events: …"; of several runs with the names of those
 * that lack it (lacking[i] of run i). Nothing where none does. */
void report_lacks(const struct report *report, const bool *lacking, const char *text);

/* Whether the run's model is known to have no delta connections. */
bool report_plain_model(const struct report_run *run);

/* A run's name with its colour. */
void report_name(const struct report *report, int run);

#endif
