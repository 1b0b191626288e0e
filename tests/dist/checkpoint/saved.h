/* What the tests of checkpoints share: a mesh whose tensor axis has all ranks, and the sample saved on it. */
#ifndef GDN_TEST_SAVED_H
#define GDN_TEST_SAVED_H

#include "tests/dist/checkpoint/sample.h"
#include "tests/support/rank_main.h"
#include "tests/support/scratch.h"

/* The parts are those of the tensor axis. */
extern struct mesh mesh;
int set_up(void);
void tear_down(void);
void barrier(void);

/* Saves the sample as the checkpoint of `step`, keeping `keep` (0: all). Collective. */
void save(const char *directory, const struct sample *sample, int64_t step, double loss, double best,
          int keep);

/* The file of a step's checkpoint, as format() has it; whether a path is there. */
const char *file_of(const char *directory, int step);
bool there(const char *path);

/* As checkpoint_load_initial. */
int load_initial(const char *path, struct sample *sample, int *missing);

/* Expects a failure with these words, the same on all ranks. */
void assert_refused(int status, const char *word);

#endif
