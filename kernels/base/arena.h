/* An arena: one allocation that is handed out piece by piece and freed as a whole. Sizes are planned
 * first: an arena without memory only counts, so the same code that lays buffers out also plans them. */
#ifndef GDN_ARENA_H
#define GDN_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/base/device.h"

/* The address sanitizer knows an arena as one allocation, and would not see a run past one buffer into the
 * next: there, every buffer is followed by bytes that may not be touched. */
#ifdef __SANITIZE_ADDRESS__
enum { ARENA_GUARD = 64 };
#else
enum { ARENA_GUARD = 0 };
#endif

struct arena {
    const char *name;            /* for messages: "activations", "gradients", ... */
    const struct device *device; /* whose memory it is; NULL: the host's */
    char *base;                  /* NULL while planning */
    size_t size;                 /* bytes reserved; 0 while planning */
    size_t used;                 /* bytes handed out so far */
    bool dry_run;                /* addresses alone */
};

/* The next `bytes` of the arena, 64-byte aligned and zeroed at reservation. While planning returns NULL
 * and counts. Running past the reservation returns NULL; `used` then exceeds `size`. */
void *arena_take(struct arena *arena, size_t bytes);

/* Reserves what has been counted so far and starts handing out from the beginning. Zeroes the memory.
 * Fails (GDN_INTERNAL) naming the arena and the bytes where memory cannot be had. */
int arena_reserve(struct arena *arena);

/* The same with addresses alone: nothing may be read or written there. For plans. */
int arena_dry_run(struct arena *arena);

void arena_free(struct arena *arena);

#endif
