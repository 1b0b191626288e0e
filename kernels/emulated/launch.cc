/* A launch: what it may ask for, and its grid's blocks, one after another.
 *
 * Limits are sm_90's. Shared memory is filled with NaN before each block: dynamic shared memory, which ends
 * at a page that may not be touched, and the module's thread-local memory, which is what `__shared__`
 * variables are. Every second block runs its threads in descending order, and every second launch its blocks,
 * so that what is right in one order alone shows. */
#include "emulated.h"

#include <link.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>

enum { SHARED_PLAIN = 48 << 10, SHARED_OPTIN = 227 << 10, GRID_YZ = 65535 };

static std::string next_name = "a kernel";
static std::unordered_map<const void *, int> optin; /* by kernel: dynamic shared memory that it may have */
static char *dynamic;                               /* of the running block */
static unsigned long launches;                      /* so far */

static thread_local char anchor; /* lies in the module's thread-local memory */

struct piece {
    char *at;
    size_t bytes;
};

static int find_thread_local(struct dl_phdr_info *info, size_t, void *found) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        char *at = (char *)info->dlpi_tls_data;
        size_t bytes = info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_TLS || !at || &anchor < at || &anchor >= at + bytes) continue;
        *(struct piece *)found = {at, bytes};
        return 1;
    }
    return 0;
}

static struct piece static_shared(void) {
    struct piece found = {&anchor, 1};
    dl_iterate_phdr(find_thread_local, &found);
    return found;
}

void *emulated_dynamic_shared(void) {
    return dynamic;
}

/* Dynamic shared memory of `bytes`, 16-byte aligned, at the end of what may be touched. */
static char *dynamic_shared(size_t bytes) {
    static char *end;
    if (!end) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (SHARED_OPTIN + page - 1) / page * page;
        void *memory = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            fault(cudaErrorMemoryAllocation, "no host memory for dynamic shared memory");
            return NULL;
        }
        end = (char *)memory + room;
        mprotect(end, page, PROT_NONE);
    }
    return end - (bytes + 15) / 16 * 16;
}

cudaError_t emulated_attribute(const void *function, cudaFuncAttribute, int value) {
    if (value < 0 || value > SHARED_OPTIN) return returned(cudaErrorInvalidValue);
    optin[function] = value;
    return cudaSuccess;
}

void emulated_name(const char *name) {
    next_name = name;
}

static bool allowed(const cudaLaunchConfig_t *c, const void *function) {
    const dim3 *g = &c->gridDim, *b = &c->blockDim;
    if (!g->x || !g->y || !g->z || g->x > 0x7fffffff || g->y > GRID_YZ || g->z > GRID_YZ) return false;
    if (!b->x || !b->y || !b->z || (size_t)b->x * b->y * b->z > BLOCK_MAX || b->z > 64) return false;
    auto set = optin.find(function);
    int max = set == optin.end() || set->second < SHARED_PLAIN ? (int)SHARED_PLAIN : set->second;
    return c->dynamicSmemBytes <= (size_t)max;
}

static void fill(struct piece piece) {
    memset(piece.at, 0xff, piece.bytes);
}

/* What is between the first and the last byte that was written since `fill`. */
static struct piece written(struct piece piece) {
    while (piece.bytes > 0 && piece.at[piece.bytes - 1] == (char)0xff) piece.bytes--;
    for (; piece.bytes > 0 && *piece.at == (char)0xff; piece.at++) piece.bytes--;
    return piece;
}

static bool run_block(const std::function<void()> &kernel, size_t shared, bool backwards) {
    struct piece own = {dynamic, (shared + 15) / 16 * 16};
    fill(own);
    if (!block_run(kernel, backwards)) return false;
    for (size_t i = shared; i < own.bytes; i++)
        if (dynamic[i] != (char)0xff) {
            fault(cudaErrorLaunchFailure,
                  "block (%u, %u, %u) writes behind its %zu bytes of dynamic shared memory", blockIdx.x,
                  blockIdx.y, blockIdx.z, shared);
            return false;
        }
    return true;
}

/* All blocks. Only what the first of them writes of `__shared__` variables is filled again for each of the
 * others. */
static bool run_blocks(const std::function<void()> &kernel, size_t shared, bool backwards) {
    struct piece variables = static_shared();
    unsigned long blocks = (unsigned long)gridDim.x * gridDim.y * gridDim.z;
    fill(variables);
    for (unsigned long i = 0; i < blocks; i++) {
        unsigned long block = backwards ? blocks - 1 - i : i;
        blockIdx.x = (unsigned)(block % gridDim.x);
        blockIdx.y = (unsigned)(block / gridDim.x % gridDim.y);
        blockIdx.z = (unsigned)(block / gridDim.x / gridDim.y);
        if (!run_block(kernel, shared, (i % 2 != 0) != backwards)) return false;
        if (i == 0) variables = written(variables);
        fill(variables);
    }
    return true;
}

static void run_grid(const cudaLaunchConfig_t *c, const std::function<void()> &kernel) {
    gridDim = c->gridDim;
    blockDim = c->blockDim;
    dynamic = dynamic_shared(c->dynamicSmemBytes);
    if (dynamic && run_blocks(kernel, c->dynamicSmemBytes, launches++ % 2 != 0) && memory_overrun())
        fault(cudaErrorIllegalAddress, "it writes around a piece of device memory");
}

cudaError_t emulated_launch(const cudaLaunchConfig_t *config, const void *function,
                            std::function<void()> kernel) {
    std::string name = next_name;
    next_name = "a kernel";
    if (faulted()) return returned(faulted());
    if (!allowed(config, function)) return returned(cudaErrorInvalidConfiguration);
    cudaLaunchConfig_t c = *config;
    return emulated_enqueue(c.stream, name.c_str(), [=] { run_grid(&c, kernel); });
}
