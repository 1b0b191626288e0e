/* Stored differences with made-up factors, for tests of what reads them. */
#ifndef GDN_DELTA_MADE_UP_H
#define GDN_DELTA_MADE_UP_H

#include "train/deltas/file.h"

struct made_up {
    long batch, length, hidden, rank;
};

/* Everything in it is a function of its place and of `shape`; U and Vt are no bases. delta_record_free. */
struct delta_record made_up_record(int64_t step, int layer, int distance, const struct made_up *shape);

/* Writes DIRECTORY/step_N/layer_NNN.h5 with distances 1 to `distances`. Returns whether that worked, and the
 * path. */
bool made_up_file(const char *directory, int64_t step, int layer, int distances, const struct made_up *shape,
                  char path[4096]);

#endif
