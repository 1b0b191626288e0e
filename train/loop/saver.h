/* Saves checkpoints while training goes on (checkpoint.asynchronous). Training waits only for a copy of
 * the state into host memory, with checksums of the original (dist/checkpoint/snapshot.h). A thread on
 * each rank then does, together with those of the other ranks, what a save in the foreground does: write,
 * sync, read back, rename. There is one copy, so a save waits for the one before. The thread has its own
 * mesh (mesh_duplicate), sleeps while it waits for other ranks, and blocks all signals. Without the
 * setting, and at a run's end, checkpoints are saved in the foreground. */
#ifndef GDN_SAVER_H
#define GDN_SAVER_H

#include "dist/checkpoint/checkpoint.h"
#include "train/config/config.h"
#include "train/memory/training_state.h"

/* What has become of a checkpoint, the same on all ranks. */
struct saver_report {
    bool done;  /* false: there is none, or it is not finished yet */
    int status; /* GDN_INTERNAL: it could not be saved */
    int64_t step;
    double seconds;       /* from the beginning until it was there, or had failed; of the slowest rank */
    double stall_seconds; /* that training waited for it */
    int64_t bytes;
    bool asynchronous;
    double best_loss; /* as saved: the least validation loss so far */
    char text[1024];  /* why not */
};

struct saver; /* opaque */

/* What it saves; all that is pointed to outlives the saver. */
struct saver_setup {
    struct mesh *mesh;
    const struct ops *ops;
    const struct config *config;       /* checkpoint.* and what follows from it */
    struct checkpoint_content content; /* on the host, of `training`'s `saved` */
    struct training_state *training;
    const char *directory; /* the run's, copied */
};

/* Reserves the copy and starts the thread, where the configuration asks for them: for a state that is loaded.
 * Collective; saver_free. GDN_INPUT where MPI is not made for several threads; GDN_INTERNAL. */
int saver_create(const struct saver_setup *setup, struct saver **out);

/* Bytes of the copy, 0 without one. */
int64_t saver_reserved(const struct saver *saver);

/* Waits for the pending save. With `alone` other ranks may not call it and the job is about to be ended:
 * then it waits for nothing and leaves what the thread uses allocated. NULL is allowed. */
void saver_free(struct saver *saver, bool alone);

/* Begins a checkpoint of the current state; with `now`, and without checkpoint.asynchronous, it is
 * finished at return. saver_poll reports its outcome, and must have reported that of the one before, whose
 * waiting time is part of this one's stall. `info`'s configuration must not change until then. Collective.
 * GDN_INTERNAL where no copy could be made: then nothing was begun. */
int saver_begin(struct saver *saver, const struct checkpoint_info *info, bool now);

/* Polls whether the pending save has finished on all ranks, or waits for it; reports each save once. No
 * exchange where none is pending. Collective. GDN_INTERNAL where MPI failed. */
int saver_poll(struct saver *saver, bool wait, struct saver_report *out);

#endif
