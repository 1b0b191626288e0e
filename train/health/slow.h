/* Slow ranks: those that compute longer than others with the same work, which the others wait for in every
 * step. Seconds of computing are gathered from all ranks at intervals. A rank is reported where it takes
 * more than `factor` times the median of its group, and SLOW_MIN seconds more, in two gatherings in a row;
 * once, until it has been as fast as the others again. Where a group's size is even, the median is the
 * lower of the middle two, so that of two ranks the slower one can be reported; in a group of one none is. */
#ifndef GDN_SLOW_H
#define GDN_SLOW_H

#include <stdbool.h>

#define SLOW_MIN 1e-3 /* seconds a step: less is not worth a word, and may be chance */

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
