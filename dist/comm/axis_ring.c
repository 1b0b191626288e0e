#include "dist/comm/axis_ring.h"
#include "dist/comm/async_op.h"
#include "dist/comm/axis_cover.h"
#include "dist/comm/axis_move.h"
#include "dist/mpi/activity.h"

#include <stdlib.h>

/* What is under way. */
struct axis_ring {
    int count;
    struct async_op sent[AXIS_RING], received[AXIS_RING];
    int ticket[AXIS_RING]; /* on a device communicator */
};

void axis_ring_free(struct axis *axis) {
    free(axis->ring);
    axis->ring = NULL;
}

/* Of the axis's parts one goes and one comes. */
static int begin_on_device(struct axis *axis, const real *out, real *in, long count, int next, int before) {
    for (int r = 0; r < axis->size; r++)
        axis->at[r] = axis->count[r] = axis->received[r] = axis->received_at[r] = 0;
    axis->count[next] = axis->received[before] = count;
    return axis_begin_device_parts(axis, out, in, WIRE_STORED);
}

static int begin(struct axis *axis, const real *out, real *in, long count) {
    const int next = (axis->index + 1) % axis->size, before = (axis->index + axis->size - 1) % axis->size;
    struct axis_ring *ring = axis->ring;
    if (ring->count == AXIS_RING)
        return gdn_fail(GDN_INTERNAL, "more than %d buffers travel round the %s axis", AXIS_RING, axis->name);
    const int i = ring->count++;
    axis->bytes += count * (int64_t)sizeof *out;
    if (axis->device_comm) {
        ring->ticket[i] = begin_on_device(axis, out, in, count, next, before);
        return 0;
    }
    TRY(async_op_receive(&ring->received[i], axis, axis->comm, in, count, WIRE_STORED, before, i, false));
    return async_op_send(&ring->sent[i], axis, axis->comm, out, count, WIRE_STORED, next, i, false);
}

static int end(struct axis *axis) {
    struct axis_ring *ring = axis->ring;
    const int count = ring->count;
    ring->count = 0;
    for (int i = 0; i < count; i++) {
        if (axis->device_comm) {
            axis->ops->device->comm->join(axis->device_comm, ring->ticket[i]);
            continue;
        }
        TRY(async_op_end(&ring->received[i]));
        TRY(async_op_end(&ring->sent[i]));
    }
    return 0;
}

void axis_ring_begin(struct axis *axis, const real *out, real *in, long count) {
    if (axis->size == 1 || axis->status) return;
    axis->calls++;
    axis->begun_now = true;
    if (axis->comm == MPI_COMM_NULL) {
        axis->bytes += count * (int64_t)sizeof *out;
        axis_cover_begin(axis, count * (int64_t)sizeof *out);
        return;
    }
    if (!axis->ring && !(axis->ring = calloc(1, sizeof *axis->ring))) {
        axis->status = gdn_fail(GDN_INTERNAL, "out of memory for what travels round the %s axis", axis->name);
        return;
    }
    axis->seconds -= MPI_Wtime();
    activity_enter(axis->name, "buffer that travels round", count, -1);
    axis->status = begin(axis, out, in, count);
    activity_leave();
    axis->seconds += MPI_Wtime();
}

void axis_ring_end(struct axis *axis) {
    if (axis->size == 1 || axis->status) return;
    axis->begun_now = false;
    if (axis->comm == MPI_COMM_NULL) {
        axis_cover_end(axis);
        return;
    }
    if (!axis->ring) return;
    axis->seconds -= MPI_Wtime();
    activity_enter(axis->name, "end of buffers that travel round", -1, -1);
    axis->status = end(axis);
    activity_leave();
    axis->seconds += MPI_Wtime();
    if (!axis->status) axis->status = axis->ops->device->status();
}
