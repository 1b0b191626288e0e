/* Statistics of a connection's gates, of which several tensor ranks may each have a part. */
#ifndef GDN_DELTA_GATES_H
#define GDN_DELTA_GATES_H

#include "kernels/base/real.h"
#include "train/deltas/file.h"

/* Of some of the gates; of none: all zero. Numbers of gates are exact as doubles, which travel between
 * ranks. */
struct gates {
    double count, mean, squares; /* squares: of the deviations from the mean, summed */
    double min, max;
    double strange; /* how many are NaN or infinite; these are not in what is above */
    double bin[DELTA_BINS];
};

enum { GATES_DOUBLES = sizeof(struct gates) / sizeof(double) };

/* Of gate [T, width], row distance ld; NULL: of none. */
void gates_measure(const real *gate, long T, long width, long ld, struct gates *out);

/* Of all the gates that `count` parts are of, in their order (Chan, Golub & LeVeque 1979). */
void gates_join(const struct gates *part, int count, struct gates *out);

/* Puts them into a record. */
void gates_record(const struct gates *gates, struct delta_record *record);

#endif
