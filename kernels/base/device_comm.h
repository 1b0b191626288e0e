/* Device communicators: exchanges between the devices of several processes that do not go through host
 * memory. A module with a device may have them (NCCL's: kernels/cuda/nccl.cu); dist/ decides what travels
 * when.
 *
 * An exchange queues behind the operations queued so far; operations queued after `join` wait for it. The
 * host waits for nothing. All ranks of a device communicator make the same exchanges over it in the same
 * order. Exchanges on device communicators that share a queue take place in the order in which they were
 * made.
 *
 * Calls return no status: the first failure is the device's (device.h, status). Where a peer fails, or an
 * exchange does not end in time, all device communicators are given up, and what was recorded, so that
 * whoever waits for the device gets on, and finds the failure. Recordings (device.h) are discarded before
 * the device communicators whose exchanges they have are closed. */
#ifndef GDN_DEVICE_COMM_H
#define GDN_DEVICE_COMM_H

#include <stdbool.h>
#include <stddef.h>

enum { DEVICE_COMM_ID = 128 };

struct device_comm; /* one rank's end */

/* What a new device communicator is. */
struct device_comm_info {
    int index, size;  /* this rank among the device communicator's */
    bool own_queue;   /* with a queue of its own: its exchanges may wait for peers while others go on */
    const char *name; /* "the tensor axis", for failures */
    double seconds;   /* after which an exchange is given up */
};

struct device_comm_ops {
    const char *name; /* "nccl" */

    /* The id of a new device communicator, made by one of its ranks, with which all open it. Status. */
    int (*identify)(char id[DEVICE_COMM_ID]);
    /* Collective over the device communicator's ranks; waits for them. NULL with a failure. */
    struct device_comm *(*open)(const struct device_comm_info *end, const char id[DEVICE_COMM_ID]);
    void (*close)(struct device_comm *device_comm);

    /* What lies between begin and end is one exchange, whatever the order. `call` names it for failures.
     * Every send meets a receive of as many bytes, > 0. */
    void (*begin)(struct device_comm *device_comm, const char *call);
    void (*send)(struct device_comm *device_comm, const void *x, size_t bytes, int peer);
    void (*receive)(struct device_comm *device_comm, void *x, size_t bytes, int peer);
    /* x [size, bytes] in place: every rank's own part to all. */
    void (*gather)(struct device_comm *device_comm, void *x, size_t bytes);
    int (*end)(struct device_comm *device_comm); /* a ticket of this device communicator's */
    void (*join)(struct device_comm *device_comm, int ticket);

    /* Looks for failures of peers and exchanges that take too long, on all device communicators. Does not
     * wait. The device's calls that wait do this, too. */
    void (*poll)(void);
    /* Before the host waits for other ranks by other means: an emulated device rests while the host does, so
     * it is given its time now. */
    void (*rest)(void);
};

#endif
