/* Messages between pipeline stages: point-to-point calls over the pipeline axis, with the schedule's message
 * numbers as MPI's tags. Buffers lie on the axis's device, and travel as its sums do (dist/comm/axis.h), over
 * device communicators through channels (dist/comm/p2p.h); or on the host (`on_host`, the same at both ends),
 * and then over MPI.
 *
 * A transfer belongs to an *owner*, a number that the caller gives each of its buffers: whoever wants to use
 * a buffer's memory for something else waits for its owner. Several sends from one owner may be under way,
 * or one receive into it.
 *
 * Like the axis's sums, calls return no status: the first failure stays in axis->status, and later calls do
 * nothing. Payload handed over counts into axis->bytes, sends into axis->calls, time inside calls into
 * axis->seconds. On a planned axis nothing moves: sends are counted, no memory is touched and nothing is
 * waited for. */
#ifndef GDN_TRANSPORT_H
#define GDN_TRANSPORT_H

#include "dist/comm/axis.h"

struct transport; /* opaque */

/* For up to `transfers` at a time and message numbers below `messages`, of elements of that type. The axis
 * outlives it. Collective over the axis. GDN_INPUT where MPI has fewer tags than messages; GDN_INTERNAL. */
int transport_create(struct axis *axis, enum wire wire, int transfers, int messages, struct transport **out);
void transport_free(struct transport *transport);

/* The messages that this rank will receive before each transport_finish from now on, in the order of the
 * calls of transport_receive, but for those on the host: message[i] from peer[i]. Device communicators
 * need it. Collective over the axis, with no message pending. */
void transport_expect(struct transport *transport, int count, const int *peer, const int *message);

/* Starts to receive or send `count` elements; x is left alone until transport_wait of its owner. `peer` is a
 * pipeline index. */
void transport_receive(struct transport *transport, int owner, void *x, long count, int peer, int message,
                       bool on_host);
void transport_send(struct transport *transport, int owner, const void *x, long count, int peer, int message,
                    bool on_host);

/* Lets what goes over MPI move on, without waiting: a message larger than MPI sends unasked moves only inside
 * calls, at both ends. Called between the layers of a pass. */
void transport_progress(struct transport *transport);
/* Waits for all transfers of an owner; on a device, operations queued from now on do so. */
void transport_wait(struct transport *transport, int owner);
/* Waits for all that are under way: at the end of a step. */
void transport_finish(struct transport *transport);

#endif
