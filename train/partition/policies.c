#include "train/partition/policies.h"

static int delta_choice(const struct train_config *train) {
    return train->recompute_delta == RECOMPUTE_SAME ? train->recompute : train->recompute_delta;
}

bool recompute_chosen(const struct train_config *train) {
    return train->recompute == RECOMPUTE_AUTO || delta_choice(train) == RECOMPUTE_AUTO;
}

static int policy_of(int choice) {
    return choice == RECOMPUTE_SELECTIVE ? POLICY_SELECTIVE
           : choice == RECOMPUTE_FULL    ? POLICY_FULL
                                         : POLICY_NONE;
}

/* Connections are narrow: beside a layer of which anything is computed again, all of theirs is. */
static int delta_policy(const struct train_config *train) {
    int policy = policy_of(delta_choice(train));
    return train->recompute_delta == RECOMPUTE_SAME && policy ? POLICY_FULL : policy;
}

void recompute_fixed(const struct train_config *train, int layers, struct recompute *out) {
    int every = train->recompute_every, delta_every = train->recompute_delta_every;
    if (!delta_every) delta_every = every;
    for (int l = 0; l < layers; l++)
        out[l] = (struct recompute){
            .layer = (unsigned char)(l % every ? POLICY_NONE : policy_of(train->recompute)),
            .delta = (unsigned char)(l % delta_every ? POLICY_NONE : delta_policy(train)),
        };
}
