/* Rows that several stages hold: every owner gets every other one's version, and all add them in the same
 * order. */
#include "dist/sync/private.h"

#include "dist/mpi/activity.h"

/* Sends x [count] to another owner and receives its version. */
static int swap(struct sync *sync, int rank, real *x, real *version, long count, struct async_op *op) {
    struct axis *axis = &sync->mesh->axis[AXIS_PIPELINE];
    if (axis->device_comm) {
        const struct device_comm_ops *comms = axis->ops->device->comm;
        comms->send(axis->device_comm, x, (size_t)count * sizeof *x, rank);
        comms->receive(axis->device_comm, version, (size_t)count * sizeof *x, rank);
        return 0;
    }
    TRY(async_op_receive(&op[0], axis, sync->pipeline, version, count, WIRE_STORED, rank, 0, false));
    return async_op_send(&op[1], axis, sync->pipeline, x, count, WIRE_STORED, rank, 0, false);
}

/* Sums x [count], a piece of the row, of all its owners, who exchange their versions with each other. */
static int sum_versions(struct sync *sync, const struct row *row, real *x, long count) {
    struct axis *axis = &sync->mesh->axis[AXIS_PIPELINE];
    const struct device_comm_ops *comms = axis->ops->device->comm;
    int swaps = 0;
    if (axis->device_comm) comms->begin(axis->device_comm, "a sum of shared gradients");
    for (int i = 0; i < row->owners; i++) {
        int rank = row->owner[i];
        real *version = sync->versions + i * count;
        if (rank == axis->index) {
            axis->ops->copy(count, x, version);
            continue;
        }
        TRY(swap(sync, rank, x, version, count, sync->swap + swaps));
        if (!axis->device_comm) swaps += 2;
        axis->bytes += count * REAL_BYTES;
    }
    if (axis->device_comm) comms->join(axis->device_comm, comms->end(axis->device_comm));
    for (int i = 0; i < swaps; i++) TRY(async_op_end(&sync->swap[i]));
    axis->ops->add_parts(count, row->owners, sync->versions, x);
    return axis->ops->device->status();
}

static int share_rows(struct sync *sync, real *gradient) {
    for (int i = 0; i < sync->table->rows; i++) {
        const struct row *row = &sync->table->row[i];
        if (!is_shared(row)) continue;
        long piece = sync_shared_piece(row);
        for (long at = 0; at < row->count; at += piece) {
            long n = row->count - at < piece ? row->count - at : piece;
            TRY(sum_versions(sync, row, gradient + row->offset + at, n));
        }
    }
    return 0;
}

int sync_share(struct sync *sync, real *gradient) {
    struct axis *pipeline = &sync->mesh->axis[AXIS_PIPELINE];
    if (pipeline->size > 1) {
        pipeline->seconds -= MPI_Wtime();
        activity_enter(pipeline->name, "sum of shared gradients", -1, -1);
        int status = share_rows(sync, gradient);
        activity_leave();
        pipeline->seconds += MPI_Wtime();
        TRY(status);
    }
    if (sync->mesh->axis[AXIS_TENSOR].size > 1)
        for (int layer = sync->highest; layer >= sync->lowest; layer--)
            sync_sum_partial(sync, layer, true, gradient);
    return sync->mesh->axis[AXIS_TENSOR].status;
}
