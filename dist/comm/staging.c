#include "dist/comm/staging.h"
#include "kernels/base/status.h"

#include <stdlib.h>

enum { MIN = 4096, /* elements */ UNDER_WAY = 128 /* copies: a device has at least 256 tickets */ };

struct staged_memory {
    real *host;
    long count;
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
static struct staged_memory *find(struct staging *s, long count) {
    struct staged_memory *best = NULL;
    int under_way = 0;
    for (int i = 0; i < s->count; i++) {
        struct staged_memory *m = &s->memory[i];
        if (m->used) continue;
        if (m->ticket >= 0 && (under_way == UNDER_WAY || s->device->arrived(m->ticket))) await(s, m);
        if (m->ticket >= 0)
            under_way++;
        else if (m->count >= count && (!best || m->count < best->count))
            best = m;
    }
    return best;
}

static struct staged_memory *grow(struct staging *s, long count) {
    long room = MIN;
    while (room < count) room *= 2;
    size_t bytes = (size_t)room * sizeof(real);
    struct staged_memory *more = realloc(s->memory, (size_t)(s->count + 1) * sizeof *more);
    if (more) s->memory = more;
    real *host = more ? s->device->reserve_host(bytes) : NULL;
    if (!host) {
        gdn_fail(GDN_INTERNAL, "out of memory: %.1f MiB of host memory between device and MPI cannot be had",
                 (double)bytes / 1048576);
        return NULL;
    }
    s->memory[s->count] = (struct staged_memory){.host = host, .count = room, .ticket = -1};
    return &s->memory[s->count++];
}

real *staging_take(struct staging *staging, long count) {
    struct staged_memory *m = find(staging, count);
    if (!m) m = grow(staging, count);
    if (!m) return NULL;
    m->used = true;
    return m->host;
}

void staging_give(struct staging *staging, real *host, int ticket) {
    for (int i = 0; host && i < staging->count; i++)
        if (staging->memory[i].host == host) {
            staging->memory[i].used = false;
            staging->memory[i].ticket = ticket;
        }
}
