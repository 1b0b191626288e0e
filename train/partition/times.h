/* Planned times of stages' passes, for schedules whose order follows from them. */
#ifndef GDN_TIMES_H
#define GDN_TIMES_H

#include "dist/schedule/schedule.h"
#include "train/config/config.h"

/* In thousandths of a mean stage's forward pass, by arithmetic and by what crosses boundaries, a byte in the time of
 * so many operations, as between nodes of configs/machines/h100-ib.yaml: out [stages] for routes and `layout`. The
 * head, with its loss, is computed in the last stage's backward pass. Not collective. GDN_INTERNAL. */
enum { OPERATIONS_A_BYTE = 8000 };
int stage_times_of(const struct config *config, const struct edges *edges, const struct routes *routes,
                   const struct route_widths *widths, const struct layout *layout, struct stage_times *out);

#endif
