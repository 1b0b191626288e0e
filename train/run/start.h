/* Where a run starts from: a checkpoint, other weights, or drawn ones. Private to train/run/; what each needs
 * of the run is there (sequence.c). */
#ifndef GDN_RUN_START_H
#define GDN_RUN_START_H

#include "train/run/run.h"

/* Finds the checkpoint to go on from; fills run->origin. Collective; fails like run_find_start. */
int start_find(struct run *run, const char *directory, const char *resume, FILE *log);

/* Makes the configuration the one that goes on from it. Collective; fails like run_adopt. */
int start_adopt(struct run *run, char *const *changes, int count, FILE *log);

/* Takes a checkpoint's figures. Not collective; fails like run_take_position. */
int start_take_position(struct run *run, const struct checkpoint_info *info);

/* Fills the state from `checkpoint`, or without a path afresh. Collective; fails like run_load. */
int start_load(struct run *run, const struct checkpoint *checkpoint, FILE *log);

#endif
