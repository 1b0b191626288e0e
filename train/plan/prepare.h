/* What a plan begins with: the mesh and what it divides, before any rank's own part. Private to plan/. */
#ifndef GDN_PLAN_PREPARE_H
#define GDN_PLAN_PREPARE_H

#include "train/plan/plan.h"

/* Fills what all ranks have in common, for `ranks` ranks (0: as many as the mesh names); recomputation as far
 * as it is fixed. plan_free follows in any case. GDN_INPUT, GDN_INTERNAL. */
int plan_prepare(struct plan *plan, long ranks);

/* The rank that needs most memory. */
struct plan_max {
    long rank;
    struct memory memory;
};

/* Raises `out` to the greatest of all ranks, looking no further once one needs more than `enough`.
 * GDN_INTERNAL. */
int plan_find_max(const struct plan *plan, int64_t enough, struct plan_max *out);

/* Parameters that a table has. */
int64_t plan_table_parameters(const struct table *table);

#endif
