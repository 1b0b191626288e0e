/* Rows that several stages hold: every holder gets every other one's version, and all add them in the same
 * order. */
#include "dist/sync/private.h"

#include "dist/mpi/activity.h"

/* Sends x [count] to another holder and receives its version. */
static int swap(struct sync *sync, int rank, real *x, real *version, long count, struct parcel *parcel) {
    struct axis *axis = &sync->mesh->pipeline;
    if (axis->wire) {
        const struct wires *wires = axis->ops->device->wires;
        wires->send(axis->wire, x, (size_t)count * sizeof *x, rank);
        wires->receive(axis->wire, version, (size_t)count * sizeof *x, rank);
        return 0;
    }
    TRY(parcel_receive(&parcel[0], axis, sync->pipeline, version, count, rank, 0, false));
    return parcel_send(&parcel[1], axis, sync->pipeline, x, count, rank, 0, false);
}

/* Sums x [count] of a row's holders, whose versions are exchanged with each. */
static int sum_versions(struct sync *sync, uint64_t stages, real *x, long count) {
    struct axis *axis = &sync->mesh->pipeline;
    const struct wires *wires = axis->ops->device->wires;
    int holders = 0, parcels = 0;
    if (axis->wire) wires->begin(axis->wire, "a sum of shared gradients");
    for (int rank = 0; rank < axis->size; rank++) {
        if (!(stages >> rank & 1)) continue;
        real *version = sync->versions + holders++ * count;
        if (rank == axis->index) {
            axis->ops->copy(count, x, version);
            continue;
        }
        TRY(swap(sync, rank, x, version, count, sync->swap + parcels));
        if (!axis->wire) parcels += 2;
        axis->bytes += count * REAL_BYTES;
    }
    if (axis->wire) wires->join(axis->wire, wires->end(axis->wire));
    for (int i = 0; i < parcels; i++) TRY(parcel_end(&sync->swap[i]));
    axis->ops->add_parts(count, holders, sync->versions, x);
    return axis->ops->device->status();
}

static int share_rows(struct sync *sync, real *gradient) {
    for (int i = 0; i < sync->table->rows; i++) {
        const struct row *row = &sync->table->row[i];
        if (!is_shared(row)) continue;
        long piece = sync_shared_piece(row);
        for (long at = 0; at < row->count; at += piece) {
            long n = row->count - at < piece ? row->count - at : piece;
            TRY(sum_versions(sync, row->stages, gradient + row->offset + at, n));
        }
    }
    return 0;
}

int sync_share(struct sync *sync, real *gradient) {
    struct axis *pipeline = &sync->mesh->pipeline;
    if (pipeline->size > 1) {
        pipeline->seconds -= MPI_Wtime();
        activity_enter(pipeline->name, "sum of shared gradients", -1, -1);
        int status = share_rows(sync, gradient);
        activity_leave();
        pipeline->seconds += MPI_Wtime();
        TRY(status);
    }
    if (sync->mesh->tensor.size > 1)
        for (int layer = sync->highest; layer >= sync->lowest; layer--)
            sync_sum_partial(sync, layer, true, gradient);
    return sync->mesh->tensor.status;
}
