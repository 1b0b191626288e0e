/* By how much the loss grows without each connection alone, exactly: an evaluation each, in which that connection is
 * not active, all else staying as it is. On any mesh. */
#ifndef GDN_LEAVE_OUT_H
#define GDN_LEAVE_OUT_H

#include "train/evaluation/evaluation.h"

struct leave_out {
    struct evaluation *evaluation;
    const struct validation *data; /* of which the first set is evaluated: the evaluation's own, or a part of it */
    evaluation_ask *ask;           /* before each round, with `context`; NULL: nobody is asked */
    void *context;
};

/* The loss with the edges e with has[e], which evaluations then go on with (evaluation_choose). Collective; the same
 * bits on all ranks. Fails as evaluation_loss. */
int leave_out_loss(const struct leave_out *job, const bool *has, double *loss);

/* Leaves out each measured edge e with has[e] in turn, by rising e, and tells `found` by how much the loss is above `loss`,
 * that with all of them; INFINITY where it is not a number. has [edges] is as it was when this returns. Evaluations
 * then lack the last edge: evaluation_choose follows. Collective; the same on all ranks. Fails as evaluation_loss. */
typedef void leave_out_found(void *context, int edge, double increase);
int leave_out_each(const struct leave_out *job, bool *has, double loss, leave_out_found *found, void *context);

#endif
