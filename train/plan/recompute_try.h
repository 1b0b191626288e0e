/* Private to the choice of what is recomputed: dry runs (recompute_try.c) and the choice
 * (recompute_auto.c). */
#ifndef GDN_RECOMPUTE_TRY_H
#define GDN_RECOMPUTE_TRY_H

#include "train/plan/rank_plan.h"
#include "train/plan/recompute.h"

/* FLOP of matrix products in the time of writing a byte again without any. Measured with gdn bench on one
 * core (768 x 128 and 2048 x 768): 3 to 6 for norms, 10 to 14 for a connection's gate. */
static const double FLOP_PER_BYTE = 6;
/* The same of a byte that is sent again over the tensor axis, at 10 GB/s. */
static const double FLOP_PER_BYTE_SENT = 10;

/* Combination i is policy i div POLICIES of a layer, i mod POLICIES of its connections. */
enum { POLICIES = POLICY_FULL + 1, COMBINATIONS = POLICIES * POLICIES };

struct chooser {
    const struct rank_work *work;
    int pipeline;
    int64_t available;
    const struct recompute *fixed; /* [num_layers] */
    bool layers_open, delta_open;  /* to choice */

    int count;            /* own layers */
    int *layer;           /* [count] their numbers, rising */
    int *like;            /* [count] place of the first layer that is like it */
    int *activation_sets; /* [count] sets of activations of its chunk */

    struct recompute *policy;        /* [num_layers] of the dry run in progress */
    int64_t taken;                   /* bytes of the rank that takes most with these */
    int64_t shared[COMBINATIONS];    /* more workspace once these policies are used */
    struct recompute_option *option; /* [count, COMBINATIONS] */
};

/* May a layer have the combination? Where memory does not decide one of the policies, it counts as
 * POLICY_NONE. */
bool try_allowed(const struct chooser *c, int combination);
/* Sets it in `policy`. */
void try_set(const struct chooser *c, int layer, int combination);

/* Finds the rank's layers and which are alike; fills all but what the caller has. GDN_INTERNAL without
 * memory. try_free follows in any case. */
int try_begin(struct chooser *c);
void try_free(struct chooser *c);

/* Fills `taken` for the policies as they are. GDN_INTERNAL. */
int try_memory(struct chooser *c);
/* Fills the bytes of `option`, and `shared`, with all policies as `fixed`. GDN_INTERNAL. */
int try_bytes(struct chooser *c);
/* Then the costs of `option`, which take far longer: every pass of a step is run dry. GDN_INTERNAL. */
int try_costs(struct chooser *c);

#endif
