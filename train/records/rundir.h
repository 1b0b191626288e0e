/* A run directory as the training loop writes it (interfaces.md): made, locked, config.yaml, metrics.jsonl
 * and event files. One rank does this for all; on the others the structure stays closed and every call does
 * nothing. */
#ifndef GDN_RUNDIR_H
#define GDN_RUNDIR_H

#include <stdint.h>

#include "train/records/lock.h"
#include "train/records/metrics.h"
#include "train/records/tensorboard.h"

struct rundir {
    char path[4096];
    struct lock lock;
    int64_t newest; /* step that checkpoints/latest named when the lock could have been taken; −1: none */
    struct metrics metrics;
    struct tensorboard board;
};

/* A closed run directory with this path. GDN_INPUT where the path is too long. */
int rundir_set(struct rundir *rundir, const char *path);

/* The same of the path `given`, or where that is NULL of "runs/NAME" for a configuration
 * "some/where/NAME.yaml". GDN_INPUT likewise; GDN_INTERNAL without memory. */
int rundir_name(struct rundir *rundir, const char *given, const char *config_path);

/* Locks a run directory that exists, so that no other run changes it while this one reads it; creates
 * nothing: one without a lock file is only looked at. GDN_INPUT where another run holds it. */
int rundir_lock_existing(struct rundir *rundir);

/* Texts that a run directory has beside what training records. */
struct rundir_files {
    const char *config;                       /* config.yaml */
    const char *tokenizer, *tokenizer_config; /* tokenizer.json, tokenizer_config.json; NULL: there is none */
};

/* Creates the directory where it is missing, takes the lock where it is not held yet, writes the files
 * (beside and renamed) and opens metrics and event files; `step` is the first step to come. GDN_INPUT where
 * something cannot be written, or another run holds the lock; or has held it and saved checkpoints since
 * rundir_lock_existing, which this one does not go on from. */
int rundir_open(struct rundir *rundir, const struct rundir_files *files, int64_t step);

/* Closes everything and releases the lock. */
void rundir_close(struct rundir *rundir);

#endif
