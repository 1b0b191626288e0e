#include "dist/comm/axis_host.h"

#include <stdlib.h>

#include "dist/comm/axis_move.h"
#include "kernels/backends/backends.h"

int axis_host_create(struct axis *axis, long count, struct axis_host *out) {
    *out = (struct axis_host){.axis = axis, .ops = ops_on_host(axis->ops)};
    TRY(axis_reserve(axis, count)); /* on a device, too: plans know no devices */
    if (axis->ops->device->host) return 0;
    out->pieces_count = axis->pieces_count;
    out->pieces = malloc((size_t)out->pieces_count * sizeof *out->pieces);
    return out->pieces ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for sums over the %s axis", axis->name);
}

void axis_host_free(struct axis_host *host) {
    free(host->pieces);
    *host = (struct axis_host){0};
}

/* The axis as one of the host's: the same ranks and buffers of counts, other scratch. */
static struct axis begin(const struct axis_host *host) {
    struct axis *axis = host->axis, copy = *axis;
    if (axis->ops->device->host || axis->comm == MPI_COMM_NULL) return copy;
    if (!axis->status) copy.status = axis_before_wait(axis);
    copy.ops = host->ops;
    copy.staging = NULL;
    copy.device_comm = NULL;
    copy.pieces = host->pieces;
    copy.pieces_count = host->pieces_count;
    return copy;
}

static void end(const struct axis_host *host, const struct axis *copy) {
    host->axis->status = copy->status;
    host->axis->bytes = copy->bytes;
    host->axis->calls = copy->calls;
    host->axis->seconds = copy->seconds;
}

void axis_host_sum(void *with, real *x, long count) {
    const struct axis_host *host = with;
    struct axis copy = begin(host);
    axis_sum_exact(&copy, x, count);
    end(host, &copy);
}

void axis_host_gather_columns(void *with, const real *x, long rows, long width, real *out) {
    const struct axis_host *host = with;
    struct axis copy = begin(host);
    copy.wire = WIRE_STORED;
    axis_gather_columns(&copy, x, rows, width, out);
    end(host, &copy);
}
