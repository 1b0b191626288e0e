/* What `gdn check` asks of the run directory: that all ranks see it and may write there, and room for the
 * checkpoints. */
#ifndef GDN_CHECK_DISK_H
#define GDN_CHECK_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "dist/mesh/mesh.h"
#include "dist/layout/table.h"
#include "train/config/config.h"

/* The room that checkpoints take, in bytes. */
struct check_space {
    int64_t each;     /* one, at most */
    int64_t expected; /* all that will lie there at a time: those kept, the best one, the one being written */
    int64_t present;  /* of these, what is there already */
    int64_t free;     /* to this user, on rank 0; −1: not known */
    bool unknown;     /* all are kept, one every so many minutes: nobody knows how many there will be */
    char path[4096];  /* the directory that was looked at: the run's, or what exists above it */
};

/* A file of rank 0 is seen by all ranks, each of which makes one too; all are removed. Where the run
 * directory is not there yet, the directory above it that is stands for it; nothing is created for good. The
 * same result on all ranks. Collective. GDN_INPUT, names the rank and what it cannot do. */
int check_directory(const struct mesh *mesh, const char *directory);

/* What the checkpoints of a run need of a directory's file system, and whether they get it: by the free space
 * that the system tells, the limit of a file's size (ulimit -f, on all ranks), and by reserving the space for
 * a moment, which shows quotas too. `global`: the whole model's parameters. The same result on all ranks.
 * Collective. GDN_INPUT where there is not enough. */
int check_space(const struct mesh *mesh, const char *directory, const struct config *config,
                const struct table *global, struct check_space *out);

#endif
