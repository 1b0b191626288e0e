#include "dist/sync/whole.h"

#include "dist/comm/async_op.h"
#include "dist/mpi/activity.h"
#include "kernels/base/status.h"

#include <stdlib.h>

/* A part of a tensor on its way from a data rank to another. */
struct parcel {
    long at, count; /* in the flat buffer */
    int from, to;
};

typedef int take_parcel(void *context, const struct parcel *parcel);

/* What a data rank owns of a tensor in a bucket, where the tensor meets it. */
static struct parcel part_of(const struct row *row, const struct bucket *b, int data, int rank) {
    long share = b->sharded ? b->count / data : b->count, first = b->first + (b->sharded ? rank * share : 0);
    long from = row->offset > first ? row->offset : first, end = row->offset + row->count;
    long to = end < first + share ? end : first + share;
    return (struct parcel){.at = from, .count = to > from ? to - from : 0};
}

/* All parcels of one tensor, in an order that all data ranks have. Of what every rank owns, nothing is
 * collected. */
static int each_of_tensor(const struct row *row, const struct shards *shards, const struct dealt *item,
                          int data, bool back, take_parcel *take, void *context) {
    for (int b = 0; b < shards->buckets; b++) {
        const struct bucket *bucket = &shards->bucket[b];
        if (row->offset >= bucket->first + bucket->count || row->offset + row->count <= bucket->first)
            continue;
        for (int rank = 0; rank < data && (back || bucket->sharded); rank++) {
            struct parcel parcel = part_of(row, bucket, data, rank);
            if (rank == item->owner || !parcel.count) continue;
            parcel.from = back ? item->owner : rank, parcel.to = back ? rank : item->owner;
            TRY(take(context, &parcel));
        }
    }
    return 0;
}

/* The same of all tensors of a matrix. */
static int each_parcel(const struct table *table, const struct shards *shards, const struct dealt *item,
                       int data, bool back, take_parcel *take, void *context) {
    const int tensors = deal_shape(table, item->row).tensors;
    for (int i = 0; i < tensors; i++)
        TRY(each_of_tensor(&table->row[item->row + i], shards, item, data, back, take, context));
    return 0;
}

/* ------------------------------------------------------------------------------------------- exchanging */

struct exchange {
    struct axis *axis;
    real *x;
    struct async_op *op; /* [count] under way; none over a device communicator */
    int count, room;
};

static int grow(struct exchange *e) {
    int room = 2 * e->room + 64;
    struct async_op *grown = calloc((size_t)room, sizeof *grown);
    if (!grown) return gdn_fail(GDN_INTERNAL, "out of memory for an exchange of matrices");
    free(e->op);
    e->op = grown, e->room = room;
    return 0;
}

static int count_own(void *context, const struct parcel *parcel) {
    struct exchange *e = context;
    e->count += parcel->from == e->axis->index || parcel->to == e->axis->index;
    return 0;
}

static int start(void *context, const struct parcel *parcel) {
    struct exchange *e = context;
    struct axis *axis = e->axis;
    bool out = parcel->from == axis->index;
    int peer = out ? parcel->to : parcel->from;
    real *x = e->x + parcel->at;
    if (!out && parcel->to != axis->index) return 0;
    if (out) axis->bytes += parcel->count * (int64_t)sizeof(real);
    if (axis->device_comm) {
        const struct device_comm_ops *comms = axis->ops->device->comm;
        size_t bytes = (size_t)parcel->count * sizeof *x;
        if (out) comms->send(axis->device_comm, x, bytes, peer);
        if (!out) comms->receive(axis->device_comm, x, bytes, peer);
        return 0;
    }
    struct async_op *op = &e->op[e->count++];
    return out ? async_op_send(op, axis, axis->comm, x, parcel->count, peer, 0, false)
               : async_op_receive(op, axis, axis->comm, x, parcel->count, peer, 0, false);
}

/* So many of the list's tensors at once as there are ranks, which is about one to each. */
static int exchange_some(struct exchange *e, const struct table *table, const struct shards *shards,
                         const struct deal *deal, int first, bool back) {
    struct axis *axis = e->axis;
    const struct device_comm_ops *comms = axis->ops->device->comm;
    take_parcel *const passes[] = {count_own, start};
    for (int pass = 0; pass < 2; pass++) {
        e->count = 0;
        if (pass && axis->device_comm) comms->begin(axis->device_comm, "an exchange of matrices");
        for (int i = first; i < deal->count && i < first + axis->size; i++)
            if (deal->item[i].active)
                TRY(each_parcel(table, shards, &deal->item[i], axis->size, back, passes[pass], e));
        while (!pass && e->count > e->room) TRY(grow(e));
    }
    if (axis->device_comm) comms->join(axis->device_comm, comms->end(axis->device_comm));
    for (int i = 0; i < e->count; i++) TRY(async_op_end(&e->op[i]));
    return axis->ops->device->status();
}

static int exchange(struct mesh *mesh, const struct table *table, const struct shards *shards,
                    const struct deal *deal, real *x, bool back) {
    struct axis *axis = &mesh->axis[AXIS_DATA];
    struct exchange e = {.axis = axis, .x = x};
    int status = 0;
    if (axis->size == 1) return 0;
    axis->seconds -= MPI_Wtime();
    activity_enter(axis->name, back ? "return of matrices" : "gather of matrices", -1, -1);
    for (int i = 0; i < deal->count && !status; i += axis->size)
        status = exchange_some(&e, table, shards, deal, i, back);
    activity_leave();
    axis->seconds += MPI_Wtime();
    free(e.op);
    return status;
}

int whole_collect(struct mesh *mesh, const struct table *table, const struct shards *shards,
                  const struct deal *deal, real *x) {
    return exchange(mesh, table, shards, deal, x, false);
}

int whole_hand_back(struct mesh *mesh, const struct table *table, const struct shards *shards,
                    const struct deal *deal, real *x) {
    return exchange(mesh, table, shards, deal, x, true);
}

/* ------------------------------------------------------------------------------------------- counting */

static int count_bytes(void *bytes, const struct parcel *parcel) {
    ((int64_t *)bytes)[parcel->from] += parcel->count * (int64_t)sizeof(real);
    return 0;
}

void whole_formula(const struct table *table, const struct shards *shards, const struct deal *deal, int data,
                   int64_t *bytes) {
    for (int i = 0; i < deal->count; i++)
        for (int back = 0; back < 2; back++)
            each_parcel(table, shards, &deal->item[i], data, back, count_bytes, bytes);
}
