/* The page of gdn report: one HTML file of sections, each about one side of one or several runs. */
#ifndef GDN_REPORT_PAGE_H
#define GDN_REPORT_PAGE_H

#include "train/report/card.h"
#include "train/report/lines.h"

/* Writes the whole page. Not collective; starts gnuplot for each figure. What a run lacks is left out, with a
 * line that says why. GDN_INPUT where gnuplot is missing or fails, GDN_INTERNAL. */
int report_page(const struct report *report);

/* ---- the sections, in their order */

int report_summary(const struct report *report);
int report_training(const struct report *report); /* loss, gradient norm, learning rate */
int report_loss(const struct report *report);     /* its figure of losses, over steps, tokens or time */
int report_sets(const struct report *report);     /* its figures of validation sets by name */
int report_speed(const struct report *report);    /* throughput, step times, goodput */
int report_memory(const struct report *report);
int report_connections(const struct report *report); /* how many are used, and which; their share of a step */
int report_gates(const struct report *report);       /* by layer and distance, over time and at the end */
int report_checkpoints(const struct report *report);
int report_timeline(const struct report *report); /* starts, stops, faults */
int report_settings(const struct report *report); /* config.yaml, or what differs */

/* Whether all validation losses were measured on the same data in the same way, as far as is known, and a
 * paragraph about it where they were not. */
bool report_comparable(const struct report *report);
void report_tell_comparable(const struct report *report);

#endif
