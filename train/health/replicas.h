/* Replicas: do the ranks that hold copies of the same weights still have the same bits? Memory that fails, a
 * GPU that computes wrongly or a fault of the program make copies drift apart without anything else to show
 * for it.
 *
 * Copies are held by all ranks of the data axis; by those of the tensor axis, of tensors that are not split
 * there; and by those of the pipeline axis, of tensors that several stages have (table.h, `owners`). Each
 * rank hashes its part of every tensor (kernels/ops.h, add_hash) and the hashes are exchanged. Who differs
 * from most of its peers is the one that is off: the ranks that disagree with more peers than any others do,
 * on all axes taken together. Of two copies alone nobody knows which is right, and both are named. */
#ifndef GDN_REPLICAS_H
#define GDN_REPLICAS_H

#include "dist/mesh/mesh.h"
#include "dist/layout/table.h"

struct replicas; /* opaque */

/* All of these outlive it. `global`: the table of the whole model. Collective. GDN_INTERNAL without memory,
 * the same on all ranks. */
int replicas_create(struct mesh *mesh, const struct table *table, const struct table *global,
                    const struct ops *ops, struct replicas **out);
void replicas_free(struct replicas *replicas);

struct replicas_verdict {
    int count;          /* ranks that are off; 0: all copies are the same */
    const int *rank;    /* [count] rising; the comparison's, until the next */
    bool undecided;     /* nobody knows which of them is right */
    const char *tensor; /* the first that differs on the first of them */
};

/* Compares weight [table->total], on the device of `ops`. Allocates nothing. Collective over all ranks, which
 * get the same verdict. GDN_INTERNAL. */
int replicas_compare(struct replicas *replicas, const real *weight, struct replicas_verdict *verdict);

#endif
