#include "dist/verify/private.h"

#include <stddef.h>

const struct action *verify_next(const struct verifier *c, int rank) {
    return &c->schedule->rank[rank].action[c->at[rank]];
}

int verify_stage(const struct verifier *c, int rank, const struct action *a) {
    return layout_stage(c->layout, rank, a->chunk);
}

int verify_pass_index(const struct verifier *c, int stage, int micro_batch) {
    return stage * c->micro_batches + micro_batch;
}

int verify_pool_size(const struct verifier *c, int rank, enum payload payload) {
    return payload_is_narrow(payload) ? c->schedule->narrow_blocks[rank] : c->schedule->blocks[rank];
}

static struct held *pool_of(const struct verifier *c, int rank, enum payload payload) {
    return (payload_is_narrow(payload) ? c->narrow_blocks : c->blocks)[rank];
}

/* The action's buffer; NULL where there is no such. */
struct held *verify_buffer(const struct verifier *c, int rank, const struct action *a) {
    if (a->buffer < 0 || a->buffer >= verify_pool_size(c, rank, a->payload)) return NULL;
    return pool_of(c, rank, a->payload) + a->buffer;
}

bool verify_holds(const struct held *h, enum payload payload, int index, int micro_batch) {
    return h->payload == payload && h->index == index && h->micro_batch == micro_batch;
}

static struct lookup *lookup_of(const struct verifier *c, int rank, enum payload payload) {
    return &(payload_is_narrow(payload) ? c->narrow_by_content : c->blocks_by_content)[rank];
}

void verify_hold(struct verifier *c, int rank, struct held *h, struct held what) {
    *h = what;
    lookup_put(lookup_of(c, rank, h->payload), (int)(h - pool_of(c, rank, h->payload)), h->payload, h->index,
               h->micro_batch);
}

void verify_empty(struct verifier *c, int rank, struct held *h) {
    lookup_remove(lookup_of(c, rank, h->payload), (int)(h - pool_of(c, rank, h->payload)));
    *h = (struct held){.message = -1};
}

void verify_rename(struct verifier *c, int rank, struct held *h, int index) {
    struct held what = *h;
    verify_empty(c, rank, h);
    what.index = index;
    verify_hold(c, rank, h, what);
}

/* The rank's buffer that is in use for something; NULL where there is none. */
struct held *verify_find(const struct verifier *c, int rank, enum payload payload, int index,
                         int micro_batch) {
    const struct lookup *buffers = lookup_of(c, rank, payload);
    for (int i = lookup_first(buffers, payload, index, micro_batch); i >= 0; i = lookup_next(buffers, i)) {
        struct held *h = pool_of(c, rank, payload) + i;
        if ((h->state == HELD_EMPTY || h->state == HELD_FULL) && verify_holds(h, payload, index, micro_batch))
            return h;
    }
    return NULL;
}

bool verify_full(const struct verifier *c, int rank, enum payload payload, int index, int micro_batch) {
    const struct held *h = verify_find(c, rank, payload, index, micro_batch);
    return h && h->state == HELD_FULL;
}

/* The activation set that holds a stage's micro-batch; −1 where none does. */
int verify_activation_set(const struct verifier *c, int stage, int micro_batch) {
    int activation_set = c->forwards[verify_pass_index(c, stage, micro_batch)];
    return activation_set >= 0 && c->saved[stage][activation_set].micro_batch == micro_batch ? activation_set
                                                                                             : -1;
}

bool verify_has_node(const struct verifier *c, int rank, int node, int micro_batch) {
    int own = c->stage[1 + node];
    if (layout_rank_of(c->layout, own) == rank && verify_activation_set(c, own, micro_batch) >= 0) return true;
    return verify_full(c, rank, PAYLOAD_SOURCE, node, micro_batch);
}

bool verify_active(const struct verifier *c, int e) {
    return edge_set_has(c->active, e);
}

int verify_activation_sets(const struct verifier *c, int stage) {
    return c->schedule->activation_sets[layout_rank_of(c->layout, stage) * c->chunks +
                                        layout_chunk_of(c->layout, stage)];
}

bool verify_activation_set_exists(const struct verifier *c, int rank, const struct action *a) {
    return a->chunk >= 0 && a->chunk < c->chunks && a->activation_set >= 0 &&
           a->activation_set < verify_activation_sets(c, verify_stage(c, rank, a));
}
