/* What figures are drawn of: the chosen records of a run, without U and Vt, by step, layer and distance. */
#ifndef GDN_DELTA_SET_H
#define GDN_DELTA_SET_H

#include "train/deltas/list.h"

struct delta_set {
    char title[128]; /* what titles call the run */
    int count, layers, distances, steps;
    struct delta_record *record;
    int *layer, *distance; /* each once, rising */
    int64_t newest;
};

/* Reads what the survey has into `out`, which is empty but for its title; damaged files go to the survey.
 * Not collective. Free with delta_set_free, also where it fails. GDN_INPUT, GDN_INTERNAL. */
int delta_set_read(struct delta_survey *survey, struct delta_set *out);
void delta_set_free(struct delta_set *set);

/* The record of the newest step, NULL where there is none. */
const struct delta_record *delta_set_newest(const struct delta_set *set, int layer, int distance);

#endif
