/* Checkpoints in HDF5 (interfaces.md): every parameter under /model/… and its optimiser state under
 * /optimizer/{MOMENT,step}/… (table.h, moments) as one dataset of its global shape, whatever mesh wrote it. A
 * checkpoint is complete or invisible: written under a temporary name, synced, read back and verified,
 * renamed, then named in `latest`. The file's first 512 bytes hold a checksum of all the others (digest.h),
 * and each dataset carries one of its elements; load and verify recompute them.
 *
 * No rank gathers the model. Each writes its own parts of the file, which rank 0 has made with all datasets
 * in their places: the pieces that the rank owns (shard.h), of small tensors one rank the whole. After
 * each phase all ranks agree on the outcome, so that a disk that is full for one ends the save for all.
 * Reading back and verifying is divided among the ranks too; the datasets' checksums do not depend on how
 * (data/hdf5/sum.h). To load, each rank reads what it holds, whatever mesh wrote it.
 *
 * One file is the default. Measured (tests/dist/checkpoint/bench_checkpoint.c: 201 MB, a local disk, two
 * cores busy with other work, ranks in nodes of two; seconds, the better of two runs):
 *
 *     ranks                                  1      2      4      8
 *     save, synced and read back, one file   0.47   0.57   0.55   0.71
 *     save, one file a node                  0.65   0.46   0.64   0.62
 *     check the digest, one file             0.06   0.03   0.10   0.09
 *     check the digests, one file a node     0.09   0.07   0.10   0.24
 *     load, one file                         0.10   0.09   0.23   0.35
 *     load, one file a node                  0.15   0.12   0.25   0.48
 *
 * So on one disk there is no gain in several files; where checkpoint.files: node may pay is a file system of
 * many disks that keeps one file on few of them.
 *
 * Data are float32, or float64 in a GDN_DOUBLE build; either build loads either. `step` datasets are scalars
 * (int64). format_version is 2; files of version 1, which one rank wrote, with other checksums, are also
 * read. */
#ifndef GDN_CHECKPOINT_H
#define GDN_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dist/mesh/mesh.h"
#include "dist/layout/shard.h"
#include "dist/layout/table.h"

/* checkpoint.files: one file, or one for each node (part_00000.h5 …), which checkpoint.h5 then joins with
 * virtual datasets, so that it reads the same. In a file of its own a node writes no two pieces side by side
 * with another node's; in exchange there are more files to keep together, and HDF5 reads through one more
 * step. */
enum checkpoint_files { FILES_ONE, FILES_NODE };

struct checkpoint_info {
    int64_t step;        /* optimiser steps done */
    int64_t samples;     /* of the configuration's length, before which the data position is */
    int64_t tokens;      /* consumed; −1: not known, of files that do not say */
    char *config;        /* resolved configuration, YAML text */
    char *configured;    /* what a run's configuration said instead (train/config/config.h); NULL: the same */
    char *data;          /* what the training data were (train/run/identity.c); NULL: not known */
    char *tokenizer;     /* the files that carry the tokenizer (data/tokenizer/carried.h): tokenizer.json, */
    char *tokenizer_config; /* and tokenizer_config.json; NULL: there is none */
    char *pruning;       /* connections that are left in training (train/prune/pruning.h); NULL: all, no more is known */
    double best_loss;    /* least validation loss so far, NAN: none */
    double loss;         /* validation loss of this checkpoint, NAN where it was not evaluated */
    bool evaluation_due; /* one was given up at this step, so that the run could stop */
    double loss_scale;   /* of the next step; 0: none, neither saved nor found */
    int64_t loss_scale_good; /* good steps in a row with it */
};

/* What a rank has of a model, to be saved or filled. */
struct checkpoint_content {
    const struct table *global;  /* the model's, without a layout (params_create), the same on all ranks */
    const struct table *table;   /* this rank's; `global` itself where every rank holds everything */
    const struct shards *shards; /* of this rank's copy; NULL: every rank has all moments of its table's
                                    tensors, at the offsets of the weights */
    struct state *state;         /* without moments: weights alone */
    uint32_t *scales;  /* [num_scales] of 8-bit products (train/optimizer/scales.h), the same on all ranks */
    long num_scales;   /* 0: neither saved nor loaded */
    double *spikes;    /* [spike_values] what spikes are judged by, the same on all ranks */
    long spike_values; /* 0: neither saved nor loaded; loaded where the file has as many */
    bool fresh; /* loading: a tensor whose moments the file has not all begins with zeros, and with no steps */
    bool part;  /* loading: the file may have tensors that this model has not */
    bool owned; /* state->weight has the rank's own pieces alone, at the places of their moments (shard.h) */
    const uint64_t *sums; /* of what this rank writes, one a dataset, computed when it was copied
                             (checkpoint/snapshot.h); NULL: they are computed from `state` */
};

/* Which checkpoints stay when a new one is there. */
struct checkpoint_keep {
    int newest; /* that many of the newest whole ones; 0: all */
    long every; /* and those whose step is a multiple of it; 0: no others */
};

/* A checkpoint that was found whole. */
struct checkpoint {
    char *path; /* of its checkpoint.h5; NULL: none */
    struct checkpoint_info info;
    int skipped; /* newer ones that checkpoint_find found damaged */
};

/* Writes `directory`/checkpoints/step_%08ld/checkpoint.h5, makes it `latest`, and `best` where info->loss is
 * not NAN and is less than or equal to info->best_loss; then removes those that `keep` does not keep
 * (`best`'s and `latest`'s are never removed). Newest is the one that `latest` names, then lower steps, then
 * higher ones, which a run that was resumed from an older step has left behind; a damaged one stays where it
 * is newer than the last that counts. Also removes left-over temporary directories. A step that is already
 * there is replaced. `directory` is one that all ranks see. Collective over all ranks; returns the same
 * status on all. On failure nothing visible has changed and the temporary files are gone. GDN_INTERNAL with
 * the reason (full disk, not writable, …). */
int checkpoint_save(const struct mesh *mesh, const char *directory, const struct checkpoint_content *content,
                    const struct checkpoint_info *info, const struct checkpoint_keep *keep,
                    enum checkpoint_files files);

/* Bytes of the elements of a checkpoint of this content. Not collective. */
int64_t checkpoint_bytes(const struct checkpoint_content *content);

/* Removes what interrupted saves have left below `directory`, and puts back what they had put aside: for
 * whoever holds the run directory's lock, since what another process is saving looks the same. Not
 * collective. GDN_INPUT where the folder cannot be read. */
int checkpoint_clean_up(const char *directory);

/* Opens the newest checkpoint (in the order above) below `directory` that is whole; out->path is NULL where
 * there is none. Damaged ones are skipped with one warning line to rank 0's `log` each (NULL: silent) that
 * says what is wrong; where there are checkpoints but all are damaged: GDN_INPUT. Collective;
 * checkpoint_close. */
int checkpoint_find(const struct mesh *mesh, const char *directory, FILE *log, struct checkpoint *out);

/* Whether any checkpoint directory exists below `directory`. Not collective. */
bool checkpoint_any(const char *directory);

/* The path of a node's file beside a checkpoint.h5 (checkpoint.files: node), there or not; free() it. NULL
 * without memory. */
char *checkpoint_part(const char *path, int node);

/* Turns what a user gives (a checkpoint.h5, a step_N directory, a run directory, its folder `checkpoints`, or
 * a file `latest` or `best` in that) into a checkpoint.h5's path; free() it. Whether that is whole is not
 * looked at. Not collective. GDN_INPUT naming what was looked for. */
int checkpoint_resolve(const char *given, char **path);

/* Verifies the digest of a checkpoint.h5, for which the ranks read all of it between them (HDF5 is not to be
 * let loose on a damaged file), and reads its attributes. Collective; checkpoint_close. GDN_INPUT, with
 * nothing to close, for a foreign, damaged or newer-format file. */
int checkpoint_open(const struct mesh *mesh, const char *path, struct checkpoint *out);
void checkpoint_close(struct checkpoint *checkpoint);

/* Fills weights, optimiser state (content->state) and, where it has as many, scales from an open checkpoint
 * and verifies the datasets' checksums. Names and shapes are checked against all of content->global.
 * Collective. GDN_INPUT where the file is damaged, is of another model, lacks a tensor, or holds one of
 * another shape: names file, dataset and both shapes. On failure the state may be partly overwritten. */
int checkpoint_load(const struct mesh *mesh, const struct checkpoint *checkpoint,
                    const struct checkpoint_content *content);

/* Starting weights from group /initial or /model of any HDF5 file (interfaces.md, checkpoint.init_from):
 * shapes must match; missing tensors are an error but for those of delta connections (row->distance or
 * row->select), which are left as they are and counted in *missing (of the whole model); tensors that the
 * model does not have are an error. Floats of any width. Checksums are verified where the file or datasets
 * carry them. Reads no optimiser state. On failure the weights may be partly overwritten. Collective. */
int checkpoint_load_initial(const struct mesh *mesh, const char *path,
                            const struct checkpoint_content *content, int *missing);

/* The tokenizer's files that an HDF5 file of starting weights carries, to be freed; NULL where it has none. Not
 * collective. GDN_INPUT where they cannot be read. */
int checkpoint_initial_tokenizer(const char *path, char **tokenizer, char **tokenizer_config);

/* The subcommands' work. Not collective (one process). */
/* A checkpoint in a list; all is owned by who made it. */
struct checkpoint_entry {
    const char *path; /* of its checkpoint.h5 */
    int64_t step;     /* as its folder's name has it */
    int64_t bytes;    /* of its files */
    bool latest, best;
    const char *damage;                 /* what is wrong; NULL: it is whole */
    const struct checkpoint_info *info; /* NULL: it is damaged */
};
typedef int checkpoint_visitor(void *context, const struct checkpoint_entry *entry);
/* Calls `visit` for each checkpoint of the run directory, the newest first, after reading all of it to tell
 * whole from damaged; a status other than 0 ends the list. GDN_INPUT where it is no run directory. */
int checkpoint_each(const char *directory, checkpoint_visitor *visit, void *context);
/* These print to `out`. */
/* Every dataset against its checksum. */
int checkpoint_verify(const char *path, FILE *out);
/* Tensors that differ, with the greatest difference. */
int checkpoint_diff(const char *a, const char *b, bool *same, FILE *out);

#endif
