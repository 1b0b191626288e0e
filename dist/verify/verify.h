/* The schedule's verifier: proves a schedule sound before anything is sent. What passes need follows from
 * edges and layout; of the routes only `projector` is read, which says what edges are narrow.
 *
 *   - Every SEND has exactly one RECEIVE at the named peer, of the same message, payload, index and
 *     micro-batch, and the other way round.
 *   - No deadlock, even where a send completes only once its receive has started (FREE and FORWARD wait for
 *     that): all ranks' lists are run against each other to their ends.
 *   - Every FORWARD and BACKWARD finds what it reads: stream, the nodes or edges of its layers, its
 *     activation set. A buffer is not read before it is filled, freed while something still needs it, taken
 *     twice, or left taken at the end.
 *   - What an edge leaves at a node reaches that node's BACKWARD, once, by descending target layer (a narrow
 *     edge's at its projector, before what the projector's own layers leave).
 *   - Every bucket is reduced, finished, updated, gathered once, in that order, after its last gradient. */
#ifndef GDN_VERIFY_H
#define GDN_VERIFY_H

#include "dist/schedule/schedule.h"

/* Verifies all lists. GDN_INTERNAL with words that name pipeline rank, action and what is wrong. */
int schedule_verify(const struct edges *edges, const struct edge_set *active, const struct routes *routes,
                    const struct layout *layout, const struct schedule_options *options,
                    const struct schedule *schedule);

#endif
