#include "dist/sync/whole.h"

#include "dist/sync/exchange.h"

/* A part of a tensor on its way from a copy to another. */
struct parcel {
    long at, count; /* in the flat buffer */
    int from, to;
};

typedef int take_parcel(void *context, const struct parcel *parcel);

/* What a copy owns of a tensor in a bucket, where the tensor meets it. */
static struct parcel part_of(const struct row *row, const struct shards *shards, const struct bucket *b, int rank) {
    long share = b->sharded ? b->count / shards->copies : b->count,
         first = b->first + (b->sharded ? shards_part(shards->copies, shards->group, rank) * share : 0);
    long from = row->offset > first ? row->offset : first, end = row->offset + row->count;
    long to = end < first + share ? end : first + share;
    return (struct parcel){.at = from, .count = to > from ? to - from : 0};
}

/* All parcels of one tensor, in an order that all copies have. Of what every rank owns, nothing is
 * collected. */
static int each_of_tensor(const struct row *row, const struct shards *shards, const struct dealt *item,
                          int copies, bool back, take_parcel *take, void *context) {
    for (int b = 0; b < shards->buckets; b++) {
        const struct bucket *bucket = &shards->bucket[b];
        if (row->offset >= bucket->first + bucket->count || row->offset + row->count <= bucket->first)
            continue;
        for (int rank = 0; rank < copies && (back || bucket->sharded); rank++) {
            struct parcel parcel = part_of(row, shards, bucket, rank);
            if (rank == item->owner || !parcel.count) continue;
            parcel.from = back ? item->owner : rank, parcel.to = back ? rank : item->owner;
            TRY(take(context, &parcel));
        }
    }
    return 0;
}

/* The same of all tensors of a matrix. */
static int each_parcel(const struct table *table, const struct shards *shards, const struct dealt *item,
                       int copies, bool back, take_parcel *take, void *context) {
    const int tensors = deal_shape(table, item->row).tensors;
    for (int i = 0; i < tensors; i++)
        TRY(each_of_tensor(&table->row[item->row + i], shards, item, copies, back, take, context));
    return 0;
}

/* Does the owner need the matrix on this tensor rank to work on it? */
static bool is_here(const struct table *table, const struct dealt *item, int tensor_index) {
    return item->tensor == ALL_TENSOR_RANKS || item->tensor == tensor_index ||
           deal_shape(table, item->row).split;
}

/* ------------------------------------------------------------------------------------------- exchanging */

struct transfer {
    struct exchange exchange; /* over all copies */
    real *x;
    int messages;
};

static int count_own(void *context, const struct parcel *parcel) {
    struct transfer *t = context;
    int me = t->exchange.axis->index;
    t->messages += parcel->from == me || parcel->to == me;
    return 0;
}

static int start(void *context, const struct parcel *parcel) {
    struct transfer *t = context;
    int me = t->exchange.axis->index;
    if (parcel->from == me) return exchange_send(&t->exchange, t->x + parcel->at, parcel->count, parcel->to);
    if (parcel->to == me)
        return exchange_receive(&t->exchange, t->x + parcel->at, parcel->count, parcel->from);
    return 0;
}

/* So many of the list's tensors at once as there are ranks, which is about one to each. What another tensor
 * rank works on for all is collected there alone. */
static int each_of_some(struct transfer *t, const struct mesh *mesh, const struct table *table,
                        const struct shards *shards, const struct deal *deal, int first, bool back,
                        take_parcel *take) {
    int copies = mesh->axis[AXIS_COPIES].size;
    for (int i = first; i < deal->count && i < first + copies; i++)
        if (deal->item[i].active && (back || is_here(table, &deal->item[i], mesh->axis[AXIS_TENSOR].index)))
            TRY(each_parcel(table, shards, &deal->item[i], copies, back, take, t));
    return 0;
}

static int transfer(struct mesh *mesh, const struct table *table, const struct shards *shards,
                    const struct deal *deal, real *x, bool back) {
    struct transfer t = {.exchange.axis = &mesh->axis[AXIS_COPIES], .x = x};
    const char *what = back ? "return of matrices" : "gather of matrices";
    int copies = mesh->axis[AXIS_COPIES].size, status = 0;
    if (copies == 1) return 0;
    for (int i = 0; i < deal->count && !status; i += copies) {
        t.messages = 0;
        status = each_of_some(&t, mesh, table, shards, deal, i, back, count_own);
        if (!status) status = exchange_begin(&t.exchange, t.messages, what);
        if (!status) status = each_of_some(&t, mesh, table, shards, deal, i, back, start);
        if (!status) status = exchange_end(&t.exchange);
    }
    exchange_free(&t.exchange);
    return status;
}

int whole_collect(struct mesh *mesh, const struct table *table, const struct shards *shards,
                  const struct deal *deal, real *x) {
    return transfer(mesh, table, shards, deal, x, false);
}

int whole_hand_back(struct mesh *mesh, const struct table *table, const struct shards *shards,
                    const struct deal *deal, real *x) {
    return transfer(mesh, table, shards, deal, x, true);
}

/* ------------------------------------------------------------------------------------------- counting */

static int count_bytes(void *bytes, const struct parcel *parcel) {
    ((int64_t *)bytes)[parcel->from] += parcel->count * (int64_t)sizeof(real);
    return 0;
}

void whole_formula(const struct table *table, const struct shards *shards, const struct deal *deal,
                   const struct deal_ranks *ranks, int64_t *bytes) {
    for (int i = 0; i < deal->count; i++)
        for (int back = !is_here(table, &deal->item[i], ranks->tensor_index); back < 2; back++)
            each_parcel(table, shards, &deal->item[i], ranks->copies, back, count_bytes, bytes);
}
