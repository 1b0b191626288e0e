/* Slow ranks: which of them compute longer than those that have the same work to do. The others wait for them
 * in every step.
 *
 * Seconds of computing are gathered from all ranks now and then. A rank that takes more than `factor` times
 * the median of its group, and SLOW_LEAST seconds more, in two gatherings in a row is found, once until it
 * has been as fast as the others again. Where a group's size is even, the median is the lower of the two in
 * the middle, so that of two ranks the slower one can be found; in a group of one nobody is. */
#ifndef GDN_SLOW_H
#define GDN_SLOW_H

#include <stdbool.h>

#define SLOW_LEAST 1e-3 /* seconds a step: less is not worth a word, and may be chance */

struct slow {
    int ranks;
    double factor;
    int *group;      /* [ranks] those of a number have the same work to do */
    double *median;  /* [ranks] of the rank's group, as of the last gathering */
    double *sorted;  /* [ranks] scratch */
    int *slow_times; /* [ranks] gatherings in a row */
};

/* Groups are copied. GDN_INTERNAL without memory; slow_free in any case. Not collective, as nothing here. */
int slow_create(int ranks, const int *group, double factor, struct slow *out);
void slow_free(struct slow *slow);

/* Takes one gathering: seconds[rank] of computing a step. found[0] … are the ranks that are slow now and were
 * not before; returns their number. */
int slow_judge(struct slow *slow, const double *seconds, int *found);

#endif
