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

#include "dist/schedule/schedule.h"
#include "train/plan/action_cost.h"

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
