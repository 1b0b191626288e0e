/* What an action costs the rank that does it, and how many seconds that is on a machine. */
#ifndef GDN_PLAN_ACTION_COST_H
#define GDN_PLAN_ACTION_COST_H

#include "train/plan/machine.h"

#include <stdint.h>

/* What one action costs the rank that does it. */
struct action_cost {
    double flops;
    /* 0 where AXES has room for an axis and there is none: loops over all places are the quicker ones. */
    int64_t bytes[AXES]; /* handed over */
    int calls[AXES];     /* messages, sums and gathers, one after the other */
    int64_t within; /* of the bytes to copies, those that stay in a group of theirs, in a call of their own */
    int64_t memory; /* bytes read and written */

    /* Of these, in passes, what is under way while `covering` of the arithmetic is done. */
    struct hidden_cost {
        int64_t bytes;
        int calls;
        double covering;
    } hidden[AXES];
};

/* What is handed over on an axis, waited for at once. */
double action_transfer(const struct plan_machine *machine, const struct action_cost *cost, int axis);

/* What a pass waits for on an axis: what does not travel beside arithmetic, and of the rest what takes
 * longer. */
double action_waited(const struct plan_machine *machine, const struct action_cost *cost, int axis);

/* An exchange between copies: what stays in a group, its call with it, and the bytes, without latencies, of
 * what goes across groups, of which some may be in the same node, whose links are faster. */
double action_within(const struct plan_machine *machine, const struct action_cost *cost);
double action_across(const struct plan_machine *machine, const struct action_cost *cost);

#endif
