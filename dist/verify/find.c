#include "dist/verify/private.h"

#include <stddef.h>

const struct action *check_next(const struct checker *c, int rank) {
    return &c->schedule->rank[rank].action[c->at[rank]];
}

int check_stage(const struct checker *c, int rank, const struct action *a) {
    return rank + a->chunk * c->ranks;
}

int check_pass_index(const struct checker *c, int stage, int micro) {
    return stage * c->micro_batches + micro;
}

int check_pool_size(const struct checker *c, int rank, enum cargo cargo) {
    return cargo_is_strip(cargo) ? c->schedule->strips[rank] : c->schedule->blocks[rank];
}

static struct held *pool_of(const struct checker *c, int rank, enum cargo cargo) {
    return (cargo_is_strip(cargo) ? c->strips : c->blocks)[rank];
}

/* The action's buffer; NULL where there is no such. */
struct held *check_buffer(const struct checker *c, int rank, const struct action *a) {
    if (a->buffer < 0 || a->buffer >= check_pool_size(c, rank, a->cargo)) return NULL;
    return pool_of(c, rank, a->cargo) + a->buffer;
}

bool check_holds(const struct held *h, enum cargo cargo, int index, int micro) {
    return h->cargo == cargo && h->index == index && h->micro == micro;
}

static struct lookup *holders_of(const struct checker *c, int rank, enum cargo cargo) {
    return &(cargo_is_strip(cargo) ? c->strip_holders : c->block_holders)[rank];
}

void check_hold(struct checker *c, int rank, struct held *h, struct held what) {
    *h = what;
    lookup_put(holders_of(c, rank, h->cargo), (int)(h - pool_of(c, rank, h->cargo)), h->cargo, h->index,
               h->micro);
}

void check_empty(struct checker *c, int rank, struct held *h) {
    lookup_remove(holders_of(c, rank, h->cargo), (int)(h - pool_of(c, rank, h->cargo)));
    *h = (struct held){.message = -1};
}

void check_rename(struct checker *c, int rank, struct held *h, int index) {
    struct held what = *h;
    check_empty(c, rank, h);
    what.index = index;
    check_hold(c, rank, h, what);
}

/* The rank's buffer that is in use for something; NULL where there is none. */
struct held *check_find(const struct checker *c, int rank, enum cargo cargo, int index, int micro) {
    const struct lookup *holders = holders_of(c, rank, cargo);
    for (int i = lookup_first(holders, cargo, index, micro); i >= 0; i = lookup_next(holders, i)) {
        struct held *h = pool_of(c, rank, cargo) + i;
        if ((h->state == HELD_EMPTY || h->state == HELD_FULL) && check_holds(h, cargo, index, micro))
            return h;
    }
    return NULL;
}

bool check_full(const struct checker *c, int rank, enum cargo cargo, int index, int micro) {
    const struct held *h = check_find(c, rank, cargo, index, micro);
    return h && h->state == HELD_FULL;
}

/* The slot that holds a stage's micro-batch; −1 where none does. */
int check_slot(const struct checker *c, int stage, int micro) {
    int slot = c->forwards[check_pass_index(c, stage, micro)];
    return slot >= 0 && c->saved[stage][slot].micro == micro ? slot : -1;
}

bool check_has_node(const struct checker *c, int rank, int node, int micro) {
    int own = c->stage[1 + node];
    if (own % c->ranks == rank && check_slot(c, own, micro) >= 0) return true;
    return check_full(c, rank, CARGO_NODE, node, micro);
}

bool check_active(const struct checker *c, int e) {
    return c->edges->edge[e].slot < c->active;
}

bool check_slot_exists(const struct checker *c, int rank, const struct action *a) {
    return a->chunk >= 0 && a->chunk < c->chunks && a->slot >= 0 &&
           a->slot < c->schedule->slots[rank * c->chunks + a->chunk];
}
