#include "train/prune/leave_out.h"

#include "kernels/base/status.h"

#include <math.h>

int leave_out_loss(const struct leave_out *job, const bool *has, double *loss) {
    TRY(evaluation_choose(job->evaluation, has));
    return evaluation_loss_on(job->evaluation, job->data, job->ask, job->context, loss);
}

int leave_out_each(const struct leave_out *job, bool *has, double loss, leave_out_found *found, void *context) {
    const struct edges *edges = &job->evaluation->pipeline.edges;
    for (int e = 0; e < edges->count; e++) {
        double without;
        if (!edges->edge[e].measured || !has[e]) continue;
        has[e] = false;
        int status = leave_out_loss(job, has, &without);
        has[e] = true;
        TRY(status);
        found(context, e, isnan(without) ? INFINITY : without - loss);
    }
    return 0;
}
