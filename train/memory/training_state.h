/* What a run trains: weights, gradients and the optimiser's state where training has them, and their copy on
 * the host, which files are read into and written from. */
#ifndef GDN_TRAINING_STATE_H
#define GDN_TRAINING_STATE_H

#include "train/memory/state.h"

struct training_state {
    struct state_memory memory; /* what `state` points into */
    struct state state;         /* on the device */
    struct state_memory mirror; /* on the host, where that is elsewhere: what is loaded and saved, `saved` */
    struct state saved;
};

/* Reserves both, all zero, with `copy` bytes on the device for each weight's copy (state.h). Not collective;
 * training_state_free follows, whatever this returns. Fails like state_reserve. */
int training_state_reserve(struct training_state *training, const struct device *device, long copy,
                           const struct table *table, const struct shards *shards);
void training_state_free(struct training_state *training);

/* From the device to the host, what a checkpoint holds; and back. Not collective. The device's status. */
int training_state_download(struct training_state *training);
int training_state_upload(struct training_state *training);

#endif
