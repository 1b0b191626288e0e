/* Transfers under way at once, and when each is done: for train/plan/simulate.h.
 *
 * A link carries one way and does one second's worth of transfer in a second. A flow goes over two, the
 * sender's way out and the receiver's way in; those on one link divide it by their weights (a sum that is as
 * many messages weighs as many), and what a flow cannot use because its other link is fuller goes to the
 * rest: weighted max-min fairness, as in Bertsekas and Gallager, Data Networks, 6.5.2. Flows of one queue go
 * one after the other, in the order in which they were added.
 *
 * Time only goes forward: flows_step goes to the next moment at which something happens. */
#ifndef GDN_PLAN_FLOWS_H
#define GDN_PLAN_FLOWS_H

enum flow_state { FLOW_QUEUED, FLOW_WAITS, FLOW_MOVES, FLOW_TAIL, FLOW_DONE };

struct flow {
    int link[2], queue;
    double weight;
    double ready; /* when it may begin, if it is first in its queue */
    double lead;  /* seconds from then until it is on its links */
    double work;  /* seconds that it takes with its links to itself; what is left of them */
    double tail; /* seconds from when it is through to when it is done, and the next of its queue may begin */

    enum flow_state state;
    double at; /* of FLOW_WAITS and FLOW_TAIL, when that ends; FLOW_DONE, when it was done */
    double rate;
    int next; /* in its queue; −1: none */
};

struct flows {
    double now;
    struct flow *flow; /* [count] */
    int *last;         /* [queues] the flow that was added last and is not done; −1: none */
    int *under_way;    /* [at_once, of queues] those that are first in their queues */
    int at_once;
    struct link *link; /* [links] for dividing them */
    int *used;         /* [links] those that flows move on */
};

/* Room for so many flows, none under way. GDN_INTERNAL without memory. */
int flows_create(int count, int links, int queues, struct flows *flows);
void flows_free(struct flows *flows);

/* Adds flow `id`, which is not under way; of `flow`, link to tail are read. What is ready before flows->now
 * is so now. */
void flows_add(struct flows *flows, int id, struct flow flow);

/* When something happens next; infinity: nothing is under way. */
double flows_next(const struct flows *flows);

/* Goes to that moment. The flow that is done; −1: none is, as where one begins. Where several are, they come
 * one a call, at the same moment. */
int flows_step(struct flows *flows);

#endif
