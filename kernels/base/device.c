/* The host as a device: everything is done at once. */
#include "kernels/base/device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 256 };

static void *reserve(size_t bytes) {
    size_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, whole ? whole : ALIGNMENT);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

static size_t available(void) {
    return (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

static void copy(void *to, const void *from, size_t bytes) {
    if (bytes) memcpy(to, from, bytes);
}

static void clear(void *memory, size_t bytes) {
    if (bytes) memset(memory, 0, bytes);
}

static int fetch(void *to, const void *from, size_t bytes) {
    copy(to, from, bytes);
    return 0;
}

static bool arrived(int ticket) {
    (void)ticket;
    return true;
}

static void await(int ticket) {
    (void)ticket;
}

static void join(void) {}

static int status(void) {
    return 0;
}

static const char *describe(void) {
    return "the host";
}

const struct device host_device = {
    .name = "host",
    .host = true,
    .reserve = reserve,
    .release = free,
    .reserve_host = reserve,
    .release_host = free,
    .available = available,
    .number = status,
    .upload = copy,
    .download = copy,
    .move = copy,
    .clear = clear,
    .fetch = fetch,
    .arrived = arrived,
    .await = await,
    .deliver = fetch,
    .join = join,
    .wait = status,
    .status = status,
    .describe = describe,
};
