#include "train/memory/training_state.h"

#include "kernels/base/device.h"
#include "kernels/base/status.h"

int training_state_reserve(struct training_state *training, const struct device *device, long copy,
                           const struct table *table, const struct shards *shards) {
    struct training_state *t = training;
    TRY(state_reserve(&t->memory, device, copy, table, STATE_TRAINING, shards, &t->state));
    t->saved = t->state;
    return device->host ? 0 : state_reserve(&t->mirror, NULL, 0, table, STATE_SAVED, shards, &t->saved);
}

void training_state_free(struct training_state *training) {
    state_free(&training->memory);
    state_free(&training->mirror);
}

/* Without a mirror, which the host itself does not need, there is nothing to copy. */
int training_state_download(struct training_state *training) {
    return state_copy(&training->mirror, &training->memory);
}

int training_state_upload(struct training_state *training) {
    return state_copy(&training->memory, &training->mirror);
}
