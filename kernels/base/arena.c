#include "kernels/base/arena.h"
#include "kernels/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

void *arena_take(struct arena *arena, size_t bytes) {
    size_t at = arena->used;
    arena->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!arena->base || arena->used > arena->size) return NULL;
    return arena->base + at;
}

int arena_reserve(struct arena *arena) {
    arena->size = arena->used;
    arena->used = 0;
    arena->base = aligned_alloc(ALIGNMENT, arena->size ? arena->size : ALIGNMENT);
    if (!arena->base)
        return gdn_fail(GDN_INTERNAL,
                        "out of memory: %.1f MiB for %s cannot be had; use a smaller model, "
                        "train.micro_batch_size or train.sequence_length",
                        (double)arena->size / 1048576, arena->name);
    memset(arena->base, 0, arena->size);
    return 0;
}

void arena_free(struct arena *arena) {
    free(arena->base);
    arena->base = NULL;
    arena->size = arena->used = 0;
}
