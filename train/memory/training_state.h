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

#endif
