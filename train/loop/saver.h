/* Saving checkpoints while training goes on (checkpoint.asynchronous). Training waits for a copy of the state
 * into host memory, with checksums of the original (dist/checkpoint/snapshot.h); a thread on each rank then
 * does together with those of the other ranks what a save in the foreground does: writes, syncs, reads back,
 * renames. There is one copy, so the next one waits for the save under way.
 *
 * The thread has a mesh of its own (mesh_apart), never spins while it waits for the others, and holds all
 * signals back. A checkpoint in the foreground is what there is without the setting, and at a run's end. */
#ifndef GDN_SAVER_H
#define GDN_SAVER_H

#include "train/run/run.h"

/* What has become of a checkpoint, the same on all ranks. */
struct saver_report {
    bool settled; /* false: there is none, or it is not finished yet */
    int status;   /* GDN_INTERNAL: it could not be saved */
    int64_t step;
    double seconds;       /* from the beginning until it was there, or had failed; of the slowest rank */
    double stall_seconds; /* that training waited for it */
    int64_t bytes;
    bool asynchronous;
    double best_loss; /* as saved: the least validation loss so far */
    char words[1024]; /* why not */
};

struct saver; /* opaque */

/* Reserves the copy and starts the thread, where the configuration asks for them: for a run that was created
 * and is loaded, in `directory`. Collective; saver_free. GDN_INPUT where MPI is not made for several threads;
 * GDN_INTERNAL. */
int saver_create(struct run *run, const char *directory, struct saver **out);
/* Waits for the save under way. Where `alone`, other ranks may not come here, and the job is about to be
 * ended: then waits for nothing, and leaves behind what the thread uses. NULL is allowed. */
void saver_free(struct saver *saver, bool alone);

/* Begins a checkpoint of the run's state as it is now; with `now`, and without checkpoint.asynchronous, it is
 * finished at return. Its outcome is for saver_settle to tell, as that of the one before must have been: what
 * training waited there is part of this one's stall. `info`'s configuration stays as it is until then.
 * Collective. GDN_INTERNAL where no copy could be made: then nothing was begun. */
int saver_begin(struct saver *saver, const struct checkpoint_info *info, bool now);

/* Asks whether the save under way is finished on all ranks, or waits for it; tells of each once. Costs no
 * exchange while there is none. Collective. GDN_INTERNAL where MPI failed. */
int saver_settle(struct saver *saver, bool wait, struct saver_report *out);

#endif
