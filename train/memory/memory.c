#include "train/memory/memory.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>

#include "dist/mesh/machine.h"
#include "kernels/base/status.h"

const char *const memory_key[MEMORY_PARTS] = {
    [MEMORY_WEIGHTS] = "weights",     [MEMORY_GRADIENTS] = "gradients",
    [MEMORY_OPTIMIZER] = "optimizer", [MEMORY_ACTIVATIONS] = "activations",
    [MEMORY_SOURCES] = "sources",     [MEMORY_COMMUNICATION] = "communication",
    [MEMORY_WORKSPACE] = "workspace", [MEMORY_CHECKPOINT] = "checkpoint",
};
const char *const memory_word[MEMORY_PARTS] = {
    [MEMORY_WEIGHTS] = "weights",     [MEMORY_GRADIENTS] = "gradients",
    [MEMORY_OPTIMIZER] = "optimiser", [MEMORY_ACTIVATIONS] = "activations",
    [MEMORY_SOURCES] = "sources",     [MEMORY_COMMUNICATION] = "communication",
    [MEMORY_WORKSPACE] = "workspace", [MEMORY_CHECKPOINT] = "checkpoint",
};

int64_t memory_sum(const struct memory *memory) {
    int64_t all = 0;
    for (int i = 0; i < MEMORY_PARTS; i++) all += memory->bytes[i];
    return all;
}

bool memory_fits(const struct available *available, const struct memory *memory) {
    return !available->bytes || memory_sum(memory) <= available->bytes;
}

void memory_text(const struct memory *memory, double unit, char text[256]) {
    int at = 0;
    for (int i = 0; i < MEMORY_PARTS; i++)
        at += snprintf(text + at, (size_t)(256 - at), "%s%s %.1f", i ? ", " : "", memory_word[i],
                       (double)memory->bytes[i] / unit);
}

int64_t memory_peak(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : (int64_t)usage.ru_maxrss * 1024;
}

struct available memory_given(const struct config *config) {
    double gib = config->train.memory;
    return (struct available){.bytes = llround(gib * GIB), .given = gib};
}

int memory_measure(const struct config *config, const struct mesh *mesh, const struct device *device,
                   struct available *out) {
    int sharers;
    *out = memory_given(config);
    if (out->given > 0) return 0;
    /* On one machine the host is shared by all ranks, a GPU by those that have chosen the same. */
    TRY(machine_count(mesh, device->host ? 0 : device->number(), &sharers));
    long mine = (long)(device->host ? memory_of_machine("") : (int64_t)device->available()) / sharers;
    TRY(mesh_reduce(mesh, &mine, 1, MPI_LONG, MPI_MIN));
    out->bytes = (int64_t)((double)mine * (1 - MEMORY_RESERVE));
    return 0;
}
