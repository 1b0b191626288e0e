/* Walks through what a run has stored, one connection after the other. */
#ifndef GDN_DELTA_EACH_H
#define GDN_DELTA_EACH_H

#include "train/deltas/list.h"

/* Calls `take` for each record that is chosen and whole, in order; it does not keep the factors. Damaged
 * files go to the survey. Returns the first status of `take` that is not 0. */
typedef int deltas_take(void *context, const struct delta_entry *entry, struct delta_record *record,
                        int element);
int deltas_each(struct delta_survey *survey, deltas_take *take, void *context);

/* GDN_INPUT with the words of one damaged file and the number of them; 0 where none is. */
int deltas_report_damage(const struct delta_survey *survey);

/* The relative error of the first k singular values and vectors; its square is the part of ‖δ‖² that they do
 * not hold. */
double deltas_error_of(const struct factors *factors, long k);

#endif
