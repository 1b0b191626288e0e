/* Runs with stored differences in the scratch folder, for tests that read them. */
#ifndef GDN_DELTA_RUNS_H
#define GDN_DELTA_RUNS_H

#include "tests/train/deltas/made_up.h"

extern const struct made_up shape;

/* A folder of its own for a test, RUN with RUN/deltas in it. */
void make_run(const char *name, char run[256], char deltas[300]);

/* A file of made-up differences of distances 1 to `distances`. */
void write_file(const char *deltas, int64_t step, int layer, int distances, char path[4096]);

/* A file in the folder that is no HDF5. */
void touch(const char *folder, const char *name);

/* The status is that of bad input, and the recorded failure has these words; forgets it. */
void fails_with(int status, const char *text);

#endif
