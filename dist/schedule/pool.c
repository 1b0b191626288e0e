#include "dist/schedule/private.h"

#include <stdlib.h>

int pool_lowest(struct pool *pool) {
    while (pool->lowest < pool->count && pool->buffer[pool->lowest].state != BUFFER_FREE) pool->lowest++;
    return pool->lowest < pool->count ? pool->lowest : -1;
}

int pool_oldest(const struct pool *pool, int now) {
    for (int b = pool->oldest; b >= 0; b = pool->buffer[b].next) {
        const struct outgoing *sends = &pool->buffer[b].sends;
        if (!sends->open && sends->when < now) return b;
    }
    return -1;
}

int pool_find(const struct pool *pool, enum payload payload, int index, int micro_batch) {
    for (int b = lookup_first(&pool->by_content, payload, index, micro_batch); b >= 0;
         b = lookup_next(&pool->by_content, b)) {
        const struct buffer *it = &pool->buffer[b];
        if (it->state == BUFFER_TAKEN && it->payload == payload && it->index == index &&
            it->micro_batch == micro_batch)
            return b;
    }
    return -1;
}

void pool_begin(struct pool *pool) {
    *pool = (struct pool){.oldest = -1, .newest = -1};
}

void pool_end(struct pool *pool) {
    free(pool->buffer);
    lookup_free(&pool->by_content);
}

int pool_grow(struct pool *pool) {
    int n = pool->count;
    if ((n & (n - 1)) == 0) { /* grows at powers of two */
        int capacity = n ? 2 * n : 1;
        if (lookup_reserve(&pool->by_content, capacity)) return -1;
        struct buffer *more = realloc(pool->buffer, (size_t)capacity * sizeof *more);
        if (!more) return -1;
        pool->buffer = more;
    }
    pool->buffer[n] = (struct buffer){.state = BUFFER_FREE};
    return pool->count++;
}

void pool_take(struct pool *pool, int b, enum payload payload, int index, int micro_batch) {
    pool->buffer[b] = (struct buffer){.state = BUFFER_TAKEN,
                                      .payload = payload,
                                      .index = index,
                                      .micro_batch = micro_batch,
                                      .next = -1,
                                      .sends = {.when = -1}};
    lookup_put(&pool->by_content, b, payload, index, micro_batch);
}

void pool_rename(struct pool *pool, int b, int index) {
    struct buffer *it = &pool->buffer[b];
    lookup_remove(&pool->by_content, b);
    it->index = index;
    lookup_put(&pool->by_content, b, it->payload, index, it->micro_batch);
}

void pool_done(struct pool *pool, int b) {
    pool->buffer[b].state = BUFFER_DONE;
    *(pool->newest < 0 ? &pool->oldest : &pool->buffer[pool->newest].next) = b;
    pool->newest = b;
}

/* Takes a buffer out of those that are done. */
static void leave(struct pool *pool, int b) {
    int before = -1;
    for (int i = pool->oldest; i != b; i = pool->buffer[i].next) before = i;
    *(before < 0 ? &pool->oldest : &pool->buffer[before].next) = pool->buffer[b].next;
    if (pool->newest == b) pool->newest = before;
}

void pool_free(struct pool *pool, int b) {
    if (pool->buffer[b].state == BUFFER_DONE) leave(pool, b);
    lookup_remove(&pool->by_content, b);
    pool->buffer[b].state = BUFFER_FREE;
    if (pool->lowest > b) pool->lowest = b;
}
