#include "dist/comm/staging.h"
#include "kernels/base/status.h"

#include <stdlib.h>

enum { MIN = 16384, /* bytes */ UNDER_WAY = 128 /* copies: a device has at least 256 tickets */ };

struct staged_memory {
    void *host;
    size_t bytes;
    bool used;
    int ticket; /* of the copy that still reads it, −1 */
};

int staging_create(const struct device *device, struct staging **out) {
    *out = calloc(1, sizeof **out);
    if (!*out) return gdn_fail(GDN_INTERNAL, "out of memory for transfers through host memory");
    (*out)->device = device;
    return 0;
}

/* Memory that a copy still reads is none to hand out. */
static void await(struct staging *s, struct staged_memory *m) {
    if (m->ticket >= 0) s->device->await(m->ticket);
    m->ticket = -1;
}

void staging_free(struct staging *staging) {
    if (!staging) return;
    for (int i = 0; i < staging->count; i++) {
        await(staging, &staging->memory[i]);
        staging->device->release_host(staging->memory[i].host);
    }
    free(staging->memory);
    free(staging);
}

/* The least piece that is free and long enough, or NULL. */
static struct staged_memory *find(struct staging *s, size_t bytes) {
    struct staged_memory *best = NULL;
    int under_way = 0;
    for (int i = 0; i < s->count; i++) {
        struct staged_memory *m = &s->memory[i];
        if (m->used) continue;
        if (m->ticket >= 0 && (under_way == UNDER_WAY || s->device->arrived(m->ticket))) await(s, m);
        if (m->ticket >= 0)
            under_way++;
        else if (m->bytes >= bytes && (!best || m->bytes < best->bytes))
            best = m;
    }
    return best;
}

static struct staged_memory *grow(struct staging *s, size_t bytes) {
    size_t room = MIN;
    while (room < bytes) room *= 2;
    struct staged_memory *more = realloc(s->memory, (size_t)(s->count + 1) * sizeof *more);
    if (more) s->memory = more;
    void *host = more ? s->device->reserve_host(room) : NULL;
    if (!host) {
        gdn_fail(GDN_INTERNAL, "out of memory: %.1f MiB of host memory between device and MPI cannot be had",
                 (double)room / 1048576);
        return NULL;
    }
    s->memory[s->count] = (struct staged_memory){.host = host, .bytes = room, .ticket = -1};
    return &s->memory[s->count++];
}

void *staging_take(struct staging *staging, size_t bytes) {
    struct staged_memory *m = find(staging, bytes);
    if (!m) m = grow(staging, bytes);
    if (!m) return NULL;
    m->used = true;
    return m->host;
}

void staging_give(struct staging *staging, void *host, int ticket) {
    for (int i = 0; host && i < staging->count; i++)
        if (staging->memory[i].host == host) {
            staging->memory[i].used = false;
            staging->memory[i].ticket = ticket;
        }
}
