/* Host memory through which a device's buffers go on their way to and from MPI: a pool that grows to what is
 * under way at a time, and is not planned (device memory is). Private to dist/. */
#ifndef GDN_STAGING_H
#define GDN_STAGING_H

#include "kernels/base/device.h"

struct async_op; /* dist/comm/async_op.h */

struct staging {
    const struct device *device;
    struct async_op *first, *last; /* those that are being fetched, in the order in which they go to MPI */
    /* private to staging.c */
    struct staged_memory *memory;
    int count;
};

/* GDN_INTERNAL without memory. */
int staging_create(const struct device *device, struct staging **out);
void staging_free(struct staging *staging);

/* Host memory of so many bytes, aligned for any number; NULL, with a failure, where it cannot be had. */
void *staging_take(struct staging *staging, size_t bytes);
/* Gives it back; `ticket` (−1: none): of a copy from it to the device that is under way. */
void staging_give(struct staging *staging, void *host, int ticket);

#endif
