#include "dist/sync/exchange.h"

#include "dist/mpi/activity.h"
#include "kernels/base/status.h"

#include <stdlib.h>

static const struct device_comm_ops *comms_of(const struct exchange *e) {
    return e->axis->ops->device->comm;
}

static int make_room(struct exchange *e, int messages) {
    if (messages <= e->room) return 0;
    free(e->op);
    e->op = calloc((size_t)messages, sizeof *e->op);
    e->room = e->op ? messages : 0;
    return e->op ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for an exchange of matrices");
}

int exchange_begin(struct exchange *e, int messages, const char *what) {
    e->count = 0;
    e->axis->seconds -= MPI_Wtime();
    activity_enter(e->axis->name, what, -1, -1);
    if (!e->axis->device_comm) return make_room(e, messages);
    comms_of(e)->begin(e->axis->device_comm, what);
    return 0;
}

int exchange_send(struct exchange *e, const real *x, long count, int peer) {
    if (!count) return 0;
    e->axis->bytes += count * (int64_t)sizeof *x;
    if (!e->axis->device_comm)
        return async_op_send(&e->op[e->count++], e->axis, e->axis->comm, x, count, WIRE_STORED, peer, 0,
                             false);
    comms_of(e)->send(e->axis->device_comm, x, (size_t)count * sizeof *x, peer);
    return 0;
}

int exchange_receive(struct exchange *e, real *x, long count, int peer) {
    if (!count) return 0;
    if (!e->axis->device_comm)
        return async_op_receive(&e->op[e->count++], e->axis, e->axis->comm, x, count, WIRE_STORED, peer, 0,
                                false);
    comms_of(e)->receive(e->axis->device_comm, x, (size_t)count * sizeof *x, peer);
    return 0;
}

int exchange_end(struct exchange *e) {
    if (e->axis->device_comm) comms_of(e)->join(e->axis->device_comm, comms_of(e)->end(e->axis->device_comm));
    int status = 0;
    for (int i = 0; i < e->count && !status; i++) status = async_op_end(&e->op[i]);
    activity_leave();
    e->axis->seconds += MPI_Wtime();
    return status ? status : e->axis->ops->device->status();
}

void exchange_free(struct exchange *e) {
    free(e->op);
}
