/* Lanes: the messages between neighbouring pipeline stages that go over wires. A lane is a wire from one rank
 * to another, with a queue of its own at both ends, since a message waits there for the other end.
 *
 * A wire knows no message numbers: what goes in first comes out first. So both ends keep to the order in
 * which the receiver begins its receives (dist/schedule/schedule.h: POST, or RECEIVE without), and a sender
 * holds a message back until it is that one's turn. A receiver never waits for a message before those that it
 * began to receive earlier have been sent; tests/dist/comm/test_lanes.c tries schedules at random. Private to
 * dist/. */
#ifndef GDN_LANES_H
#define GDN_LANES_H

#include "dist/comm/axis.h"

/* One end. */
struct lane {
    struct wire *wire; /* NULL: there is none */
    int *message;      /* [count] in order */
    int count, next;   /* next: how many are through */
};

struct lanes {
    struct axis *axis;
    MPI_Comm comm;
    struct lane *from, *to; /* [size] by peer */
};

/* Opens lanes between ranks that are neighbours on the axis, taken as a ring. Collective over the axis, whose
 * wire is there. GDN_INTERNAL. */
int lanes_create(struct axis *axis, MPI_Comm comm, struct lanes **out);
void lanes_free(struct lanes *lanes);

/* Tells the peers which messages this rank will receive, in order: message[i] from peer[i]. Collective. */
int lanes_expect(struct lanes *lanes, int count, const int *peer, const int *message);
/* All of these are through: from the first on again. */
void lanes_rewind(struct lanes *lanes);

/* Whether it is this message's turn. */
bool lane_turn(const struct lane *lane, int message);
/* Puts the next message under way; returns a ticket of the wire's, −1 for an empty message. */
int lane_send(struct lanes *lanes, int peer, const real *x, long count);
int lane_receive(struct lanes *lanes, int peer, real *x, long count);

#endif
