/* Rounds: the tensor ranks of one copy work on as many matrices at once as they are (deal.h). Of those
 * that are split each gets the other ranks' parts of its own, and gives them back; of copies it gives what
 * has become of them. */
#ifndef GDN_ROUNDS_H
#define GDN_ROUNDS_H

#include "dist/layout/deal.h"
#include "dist/mesh/mesh.h"

/* What a round is made of: parts in the flat buffer x, and room on the device (rounds_sizes). */
struct rounds {
    struct mesh *mesh;
    const struct table *table;
    struct deal *deal; /* deal_round says whose turn it is */
    real *x, *whole, *scratch;
};

/* Elements of `whole` and of `scratch`: of the largest split matrix, and of the largest that is split by
 * columns. */
struct rounds_size {
    long whole, scratch;
};
struct rounds_size rounds_sizes(const struct table *table);

/* Puts the split matrix of this rank's turn together in `whole`, as in memory; joined tensors one behind the
 * other. A copy stays where it is. Collective over the tensor axis, with nothing else under way on it.
 * GDN_INTERNAL. */
int rounds_collect(const struct rounds *rounds);
/* The way back: all ranks' parts, and copies, are as the rank of their turn has them. */
int rounds_hand_back(const struct rounds *rounds);

/* Bytes that a tensor rank of an item's owner hands over for both. */
int64_t rounds_formula(const struct table *table, const struct dealt *item, const struct deal_ranks *ranks);

#endif
