/* Point-to-point channels: the messages between neighbouring pipeline stages that use device
 * communicators. A channel is a device communicator from one rank to another, with a queue of its own at
 * both ends, since a message waits there for the other end. A device communicator delivers in order and
 * has no message numbers. So both ends keep to the order in which the receiver begins its receives
 * (dist/schedule/schedule.h: POST, or RECEIVE without), and a sender holds a message back until its turn.
 * A receiver never waits for a message before those that it began to receive earlier have been sent;
 * tests/dist/comm/test_p2p.c tries schedules at random. Private to dist/. */
#ifndef GDN_P2P_H
#define GDN_P2P_H

#include "dist/comm/axis.h"

/* One end. */
struct p2p_channel {
    struct device_comm *device_comm; /* NULL: there is none */
    int *message;                    /* [count] in order */
    int count, next;                 /* next: how many are through */
};

struct p2p_channels {
    struct axis *axis;
    MPI_Comm comm;
    struct p2p_channel *from, *to; /* [size] by peer */
};

/* Opens channels between ranks that are neighbours on the axis, taken as a ring. Collective over the axis,
 * whose device communicator is there. GDN_INTERNAL. */
int p2p_create(struct axis *axis, MPI_Comm comm, struct p2p_channels **out);
void p2p_free(struct p2p_channels *channels);

/* Tells the peers which messages this rank will receive, in order: message[i] from peer[i]. Collective. */
int p2p_expect(struct p2p_channels *channels, int count, const int *peer, const int *message);
/* All of these are through: from the first on again. */
void p2p_rewind(struct p2p_channels *channels);

/* Whether it is this message's turn. */
bool p2p_turn(const struct p2p_channel *channel, int message);
/* Puts the next message under way; returns a ticket of the device communicator's, −1 for an empty message. */
int p2p_send(struct p2p_channels *channels, int peer, const void *x, size_t bytes);
int p2p_receive(struct p2p_channels *channels, int peer, void *x, size_t bytes);

#endif
