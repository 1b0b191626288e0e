#include "kernels/base/arena.h"
#include "kernels/base/status.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

enum {
    ALIGNMENT = 64,
    HUGE_PAGE = 2 << 20, /* of x86-64 and, with 4 KiB pages, of arm64 */
};

/* Addresses that no processor maps, with room behind them for more than any model has: a plan's sizes are
 * bound neither by ulimit -v nor by the 128 TiB of a process. */
static const uintptr_t NOWHERE = (uintptr_t)1 << 60, PLACE = (uintptr_t)1 << 44, PLACES = (uintptr_t)1 << 15;

static bool on_host(const struct arena *arena) {
    return !arena->device || arena->device->host;
}

void *arena_take(struct arena *arena, size_t bytes) {
    size_t at = arena->used;
    arena->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ARENA_GUARD;
    if (!arena->base || arena->used > arena->size) return NULL;
    if (!arena->dry_run && on_host(arena))
        ASAN_POISON_MEMORY_REGION(arena->base + at + bytes, arena->used - at - bytes);
    return arena->base + at;
}

static int reserve_on_device(struct arena *arena) {
    arena->base = arena->device->reserve(arena->size ? arena->size : ALIGNMENT);
    if (arena->base) return 0;
    return gdn_fail(
        GDN_INTERNAL,
        "out of memory on the device (%s): %.1f MiB for %s cannot be had, %.1f MiB are free; use a "
        "smaller model, train.micro_batch_size or train.sequence_length, or train.recompute",
        arena->device->name, (double)arena->size / 1048576, arena->name,
        (double)arena->device->available() / 1048576);
}

int arena_reserve(struct arena *arena) {
    arena->size = arena->used;
    arena->used = 0;
    if (!on_host(arena)) return reserve_on_device(arena);
    size_t page = arena->size < HUGE_PAGE ? ALIGNMENT : HUGE_PAGE;
    size_t bytes = (arena->size + page - 1) / page * page;
    arena->base = aligned_alloc(page, bytes ? bytes : page);
    if (!arena->base)
        return gdn_fail(GDN_INTERNAL,
                        "out of memory: %.1f MiB for %s cannot be had; use a smaller model, "
                        "train.micro_batch_size or train.sequence_length",
                        (double)arena->size / 1048576, arena->name);
    /* A hint: every pass walks over all of it, and huge pages save most look-ups of addresses. */
    if (page == HUGE_PAGE) madvise(arena->base, bytes, MADV_HUGEPAGE);
    memset(arena->base, 0, arena->size);
    return 0;
}

int arena_dry_run(struct arena *arena) {
    arena->size = arena->used;
    arena->used = 0;
    static atomic_uint_least64_t count; /* another place for each arena, so that no two overlap */
    arena->base = (char *)(NOWHERE + (uintptr_t)(count++ % PLACES) * PLACE);
    arena->dry_run = true;
    return 0;
}

void arena_free(struct arena *arena) {
    if (arena->dry_run) {
        /* there is nothing */
    } else if (!on_host(arena)) {
        if (arena->base) arena->device->release(arena->base);
    } else {
        if (arena->base) ASAN_UNPOISON_MEMORY_REGION(arena->base, arena->size);
        free(arena->base);
    }
    arena->dry_run = false;
    arena->base = NULL;
    arena->size = arena->used = 0;
}
