/* Device memory, which is the host's, each piece on pages of its own and followed by one that may not be
 * touched.
 *
 * It comes filled with NaN, and so does what is left of its pages, which is looked at after each kernel. In
 * the strict mode the host may touch it only through the device's calls: pages are opened while queued work
 * runs. Memory of cudaMallocManaged always is the host's, too. */
#include "emulated.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <iterator>
#include <map>
#include <vector>

struct piece {
    size_t bytes, room; /* asked for; in pages */
    bool managed;
    size_t offset; /* from the pages' beginning */
};

static std::map<char *, struct piece> &pieces = *new std::map<char *, struct piece>();
static size_t used;
static bool opened;

static size_t capacity(void) {
    const char *asked = getenv("GDN_EMULATED_MEMORY");
    return asked ? (size_t)strtoull(asked, NULL, 10) : (size_t)8 << 30;
}

static bool strict(void) {
    const char *asked = getenv("GDN_EMULATED_STRICT");
    return asked && strcmp(asked, "1") == 0;
}

static void protect(int how) {
    for (auto &each : pieces)
        if (!each.second.managed) mprotect(each.first - each.second.offset, each.second.room, how);
}

void memory_open(void) {
    if (opened) return;
    opened = true;
    if (strict()) protect(PROT_READ | PROT_WRITE);
    guard_begin(memory_holds);
}

void memory_close(void) {
    if (!opened) return;
    opened = false;
    if (strict())
        protect(PROT_NONE); /* and the guard stays, for the host */
    else
        guard_end();
}

bool memory_holds(const void *at) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (auto &each : pieces) {
        const char *first = each.first - each.second.offset;
        if ((const char *)at >= first && (const char *)at < first + each.second.room + page) return true;
    }
    return false;
}

enum { STEP = 1 << 21 }; /* bytes */

static int file_of_nan(size_t bytes) {
    std::vector<char> content(bytes, (char)0xff);
    int file = memfd_create("emulated memory", MFD_CLOEXEC);
    if (file < 0 || write(file, content.data(), bytes) != (ssize_t)bytes) abort();
    return file;
}

/* Fills pages with NaN. Of large pieces most is often never written, so these begin as copies of one file's
 * pages, which are a process's own only from the first write on. */
static void fill(char *pages, size_t room) {
    size_t at = 0;
    for (; at + STEP <= room; at += STEP) {
        static const int file = file_of_nan(STEP);
        void *step = mmap(pages + at, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0);
        if (step == MAP_FAILED) abort();
    }
    memset(pages + at, 0xff, room - at);
}

/* Whether all of [at, end) belongs to one piece. */
static bool in_one_piece(char *at, const char *end) {
    auto after = pieces.upper_bound(at);
    if (after == pieces.begin()) return false;
    auto &each = *std::prev(after);
    return end <= each.first + each.second.bytes;
}

void memory_set(void *memory, int value, size_t bytes) {
    char *at = (char *)memory, *end = at + bytes;
    if (value == 0 && bytes >= STEP && in_one_piece(at, end)) { /* fresh pages, for the reason above */
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *first = at + (page - (uintptr_t)at % page) % page, *last = end - (uintptr_t)end % page;
        int how = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS;
        if (mmap(first, (size_t)(last - first), PROT_READ | PROT_WRITE, how, -1, 0) == MAP_FAILED) abort();
        memset(at, 0, (size_t)(first - at));
        at = last;
    }
    memset(at, value, (size_t)(end - at));
}

static cudaError_t take(void **memory, size_t bytes, bool managed) {
    enum { ALIGNMENT = 256 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    *memory = NULL;
    if (faulted()) return returned(faulted());
    if (used + room > capacity()) return returned(cudaErrorMemoryAllocation);
    void *pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return returned(cudaErrorMemoryAllocation);
    used += room;
    mprotect((char *)pages + room, page, PROT_NONE);
    fill((char *)pages, room);
    size_t offset = room - (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *memory = (char *)pages + offset;
    pieces[(char *)*memory] = {bytes, room, managed, offset};
    if (strict()) {
        guard_begin(memory_holds);
        if (!managed) mprotect(pages, room, PROT_NONE);
    }
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    return take(memory, bytes, false);
}

cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned) {
    return take(memory, bytes, true);
}

cudaError_t memory_give(void *memory) {
    auto found = pieces.find((char *)memory);
    if (found == pieces.end()) return returned(cudaErrorInvalidValue);
    used -= found->second.room;
    munmap(found->first - found->second.offset, found->second.room + (size_t)sysconf(_SC_PAGESIZE));
    pieces.erase(found);
    return returned(faulted());
}

bool memory_overrun(void) {
    static const std::vector<char> &pattern =
        *new std::vector<char>((size_t)sysconf(_SC_PAGESIZE), (char)0xff);
    for (auto &each : pieces) {
        const char *at = each.first, *end = at - each.second.offset + each.second.room;
        size_t bytes = each.second.bytes;
        if (memcmp(at - each.second.offset, pattern.data(), each.second.offset) != 0 ||
            memcmp(at + bytes, pattern.data(), (size_t)(end - at) - bytes) != 0)
            return true;
    }
    return false;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    *total = capacity();
    *free = *total - used;
    return cudaSuccess;
}
