/* Checkpoints in HDF5 (interfaces.md): every parameter under /model/… and its optimiser state under
 * /optimizer/{exp_avg,exp_avg_sq,step}/… as one dataset of its global shape, whatever mesh wrote it. A
 * checkpoint is complete or invisible: written under a temporary name, synced, read back and verified,
 * renamed, then named in `latest`. The file's first 512 bytes hold a checksum of all the others (seal.h), and
 * each dataset carries one of its elements; load and verify recompute them.
 *
 * Rank 0 writes alone. With data parallelism it has everything, and one process that does all file work has
 * one outcome to agree on: a full disk cannot leave other ranks waiting in a collective write. It costs
 * little where the disk is the limit. Measured with 1.2 GB on two cores and a local disk: 0.4 to 1.2 GB/s,
 * syncing and reading back included, against 0.5 to 1.0 GB/s for collective HDF5 from two ranks without
 * either. Rank 0 reads alone, too (4 GB/s, checksums included), and sends what it read to all: the file is
 * read once whatever the number of ranks.
 *
 * Data are float32, or float64 in a GDN_DOUBLE build; either build loads either. `step` datasets are scalars
 * (int64). */
#ifndef GDN_CHECKPOINT_H
#define GDN_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dist/mesh.h"
#include "dist/table.h"

struct checkpoint_info {
    int64_t step;    /* optimiser steps done */
    int64_t samples; /* samples consumed: the data position */
    char *config; /* resolved configuration, YAML text; after checkpoint_load and checkpoint_info the caller's
                     to free() */
    double best_loss; /* least validation loss so far, NAN: none */
    double loss;      /* validation loss of this checkpoint, NAN where it was not evaluated */
};

/* Writes `directory`/checkpoints/step_%08ld/checkpoint.h5, makes it `latest`, and `best` where info->loss is
 * not NAN and is less than or equal to info->best_loss; then removes the oldest beyond `keep` newest (0: all
 * are kept; `best`'s and `latest`'s are never removed). Newest is the one that `latest` names, then lower
 * steps, then higher ones, which a run that was resumed from an older step has left behind. Also removes
 * left-over temporary directories. A step that is already there is replaced. Weights alone are written where
 * state->exp_avg is NULL. Collective over all ranks; returns the same status on all. On failure nothing
 * visible has changed and the temporary files are gone. GDN_INTERNAL with the reason (full disk, not
 * writable, …). */
int checkpoint_save(const struct mesh *mesh, const char *directory, const struct table *table,
                    const struct state *state, const struct checkpoint_info *info, int keep);

/* Finds the newest checkpoint (in the order above) below `directory` that is whole, checksums included, and
 * returns the path of its checkpoint.h5 in *path (free() it), NULL where there is none. Damaged ones are
 * skipped with one warning line to `log` each (NULL: silent) that says what is wrong; where there are
 * checkpoints but all are damaged: GDN_INPUT. Collective. */
int checkpoint_find(const struct mesh *mesh, const char *directory, FILE *log, char **path);

/* Whether any checkpoint directory exists below `directory`. Not collective. */
bool checkpoint_any(const char *directory);

/* Turns what a user gives (a checkpoint.h5, a step_N directory, a run directory, its folder `checkpoints`, or
 * a file `latest` or `best` in that) into a checkpoint.h5's path; free() it. Whether that is whole is not
 * looked at. Not collective. GDN_INPUT naming what was looked for. */
int checkpoint_resolve(const char *given, char **path);

/* Gives the attributes only, after the file's seal was checked, for which all of it is read: HDF5 is not to
 * be let loose on a damaged file. Not collective. GDN_INPUT for a foreign, damaged or newer-format file. */
int checkpoint_info(const char *path, struct checkpoint_info *out);

/* Reads weights (and, where state->exp_avg is not NULL, optimiser state) and verifies checksums. Collective.
 * GDN_INPUT where the file is damaged, foreign, lacks a tensor, or holds one of another shape: names file,
 * dataset and both shapes. On failure rank 0's `state` may be partly overwritten. */
int checkpoint_load(const struct mesh *mesh, const char *path, const struct table *table, struct state *state,
                    struct checkpoint_info *out);

/* Starting weights from group /initial or /model of any HDF5 file (interfaces.md, checkpoint.init_from):
 * shapes must match; missing tensors are an error but for those of delta connections (row->distance or
 * row->select), which are left as they are and counted in *missing; tensors that the model does not have are
 * an error. Floats of any width. Checksums are
 * verified where the file or datasets carry them. On failure rank 0's weights may be partly overwritten.
 * Collective. */
int checkpoint_load_initial(const struct mesh *mesh, const char *path, const struct table *table,
                            struct state *state, int *missing);

/* The subcommands' work; each prints to `out`. Not collective (one process). */
int checkpoint_list(const char *directory,
                    FILE *out); /* one line a checkpoint: step, samples, loss, size, state */
int checkpoint_verify(const char *path, FILE *out); /* every dataset against its checksum */
int checkpoint_diff(const char *a, const char *b, bool *same,
                    FILE *out); /* tensors that differ, with greatest difference */

#endif
