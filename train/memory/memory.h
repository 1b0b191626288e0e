/* What a rank's memory goes to, planned or reserved, and how much memory there is. */
#ifndef GDN_MEMORY_H
#define GDN_MEMORY_H

#include <stdint.h>

#include "dist/mesh/mesh.h"
#include "kernels/base/device.h"
#include "train/config/config.h"

enum memory_part {
    MEMORY_WEIGHTS,
    MEMORY_GRADIENTS,
    MEMORY_OPTIMIZER,
    MEMORY_ACTIVATIONS,   /* saved from forward to backward passes, of all micro-batches in flight */
    MEMORY_SOURCES,       /* outputs of nodes, which later layers read, of the same */
    MEMORY_COMMUNICATION, /* what comes from and goes to other stages; scratch of sums over ranks */
    MEMORY_WORKSPACE,     /* scratch of passes and of the norm, the batch; the models of evaluations */
    MEMORY_CHECKPOINT,    /* the copy that checkpoints are written from, where it lies in the same memory */
    MEMORY_PARTS
};

/* Bytes of one rank. */
struct memory {
    int64_t bytes[MEMORY_PARTS];
};

/* Names: in JSON, and for people. */
extern const char *const memory_key[MEMORY_PARTS], *const memory_word[MEMORY_PARTS];

int64_t memory_sum(const struct memory *memory);

/* "weights 1.2, gradients 1.2, …, workspace 0.4", in units of `unit` bytes; `text` holds 256 bytes. */
void memory_text(const struct memory *memory, double unit, char text[256]);

#define GIB 1073741824.0

/* What a rank may plan with. */
struct available {
    int64_t bytes; /* 0: not known */
    double given;  /* train.memory, in GiB; 0: measured */
};

/* Whether so much is available, as it is taken to be where nothing is known. */
bool memory_fits(const struct available *available, const struct memory *memory);

/* Of what a machine has free this part is left for code and the buffers of MPI and other libraries. */
#define MEMORY_RESERVE 0.05

/* train.memory alone, which is for all that is planned; not known where that is 0. Not collective. */
struct available memory_given(const struct config *config);

/* train.memory, or where that is 0 what `device` has free, less the reserve, shared evenly among the ranks
 * that use it: the least over all ranks, the same on each. Of the host: a limit of the control group counts
 * where there is one (v1 and v2); files that the system has cached do not. Not known where the system does
 * not tell. Collective. GDN_INTERNAL. */
int memory_measure(const struct config *config, const struct mesh *mesh, const struct device *device,
                   struct available *out);

/* Bytes that the system would give this process, from its files under `root` ("" for the real ones); 0: not
 * known. */
int64_t memory_of_machine(const char *root);

/* The most that this process has had in memory at a time, in bytes. */
int64_t memory_peak(void);

#endif
