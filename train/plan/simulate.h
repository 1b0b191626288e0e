/* The time of a step, predicted: the schedule's lists (dist/schedule/schedule.h) of all pipeline ranks run
 * against each other with a clock each, from what every action costs and what a machine is assumed to do in a
 * second.
 *
 * One data and one tensor index stand for all, which act alike and in step. Arithmetic takes its count over
 * the rate. What goes over the tensor and the context axis, within a pass, comes on top of it, but for as
 * much of what travels beside products (mesh.tensor_pieces) or attention (mesh.context_exchange: ring) as
 * these take, all of an action's together; likewise before a message that is compressed. Messages between
 * stages and bucket sums go on beside arithmetic, over links of their own for each axis and rank, one for
 * what it sends and one for what comes, or those two for all axes that leave a node; what is on a link at
 * once divides it (train/plan/flows.h), a sum across nodes being as many messages as there are copies on
 * other nodes. A message takes the latency besides, from the moment on that both its ends have started it,
 * and goes behind those before it between the two; only what a rank then has to wait for counts.
 */
#ifndef GDN_PLAN_SIMULATE_H
#define GDN_PLAN_SIMULATE_H

#include "dist/layout/axes.h"
#include "dist/schedule/schedule.h"

/* What one rank is assumed to do in a second. */
struct plan_machine {
    double flops;           /* arithmetic, a multiply and an add being two */
    double bandwidth[AXES]; /* bytes handed over */
    double latency;         /* seconds of any message, sum or gather besides those of its bytes */
    double memory;          /* bytes read and written by the optimiser's update */
    bool waits;             /* for all that a pass sends: none of it moves beside arithmetic */

    /* Ranks of a node, and the bandwidth inside it and to others, for axes whose own is 0; node 0: none has.
     */
    int node;
    double inside, outside;
    int stages;        /* of the pipeline axis, neighbours, that share a node even if it leaves nodes */
    bool leaves[AXES]; /* the axis sends to other nodes: all such axes of a rank share its ways out and in */
    double within;     /* bandwidth between copies of a group; 0: as between all */
    int others;        /* groups of copies that one exchanges with */
    double stays; /* part of what copies send to those of other groups, or without groups, that stays in the
                     node */
};

/* Gives axes without a bandwidth that of where they lie on a mesh of this size, ranks filling nodes in order:
 * inside where no two ranks that differ in that axis alone are of different nodes, else outside. Likewise
 * groups of so many copies. */
void plan_machine_place(struct plan_machine *machine, const int size[AXES], int sum_group);

/* With the same bandwidth on every axis, and no latency. */
struct plan_machine plan_machine_of(double flops, double bandwidth, double memory);

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

/* Where a pipeline rank's seconds go; all of them together are the step's. */
struct rank_time {
    double arithmetic, update;
    double exposed[AXES]; /* waiting for bytes on the way */
    double bubble;        /* waiting for another rank to do its part */
};

struct action_time {
    double start, end;
};

struct simulation {
    double seconds; /* of the step */
    int ranks;
    struct rank_time *rank;      /* [ranks] */
    struct action_time **action; /* [ranks][schedule->rank[r].count] */
};

/* cost [ranks][count of the rank's actions]. Not collective. GDN_INTERNAL without memory or where the lists
 * wait for each other for ever. */
int simulate(const struct schedule *schedule, struct action_cost *const *cost,
             const struct plan_machine *machine, struct simulation *out);
void simulation_free(struct simulation *simulation);

#endif
