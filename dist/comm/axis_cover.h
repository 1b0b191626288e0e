/* What hides exchanges that have begun, on planned axes (struct axis_cover): work that is done between a
 * beginning and the end covers what is under way. Private to dist/. Nothing on an axis without a cover. */
#ifndef GDN_AXIS_COVER_H
#define GDN_AXIS_COVER_H

#include "dist/comm/axis.h"

/* So many bytes more are under way. */
void axis_cover_begin(struct axis *axis, int64_t bytes);
/* Nothing is any more; what was, was hidden, if work was done meanwhile. */
void axis_cover_end(struct axis *axis);

#endif
