/* Wires: exchanges between the devices of several processes that do not go through host memory. A module with
 * a device may have them (NCCL's: kernels/cuda/nccl.cu); dist/ decides what travels when.
 *
 * An exchange queues behind the operations queued so far; operations queued after `join` wait for it. The
 * host waits for nothing. All ranks of a wire make the same exchanges over it in the same order, and so do
 * exchanges on wires that share a queue take their turns.
 *
 * Calls return no status: the first failure is the device's (device.h, status). A wire on which a peer fails,
 * or an exchange does not end in time, is given up, so that whoever waits for the device gets on, and finds
 * the failure. */
#ifndef GDN_WIRES_H
#define GDN_WIRES_H

#include <stdbool.h>
#include <stddef.h>

enum { WIRES_ID = 128 };

struct wire; /* one rank's end */

/* What a new wire is. */
struct wire_end {
    int index, size;   /* this rank among the wire's */
    bool apart;        /* with a queue of its own: its exchanges may wait for peers while others go on */
    const char *words; /* "the tensor axis", for failures */
    double seconds;    /* after which an exchange is given up */
};

struct wires {
    const char *name; /* "nccl" */

    /* The id of a new wire, made by one of its ranks, with which all of them open it. Status. */
    int (*identify)(char id[WIRES_ID]);
    /* Collective over the wire's ranks; waits for them. NULL with a failure. */
    struct wire *(*open)(const struct wire_end *end, const char id[WIRES_ID]);
    void (*close)(struct wire *wire);

    /* What lies between begin and end is one exchange, whatever the order. `call` names it for failures.
     * Every send meets a receive of as many bytes, > 0. */
    void (*begin)(struct wire *wire, const char *call);
    void (*send)(struct wire *wire, const void *x, size_t bytes, int peer);
    void (*receive)(struct wire *wire, void *x, size_t bytes, int peer);
    /* x [size, bytes] in place: every rank's own part to all. */
    void (*gather)(struct wire *wire, void *x, size_t bytes);
    int (*end)(struct wire *wire); /* a ticket of this wire's */
    void (*join)(struct wire *wire, int ticket);

    /* Looks for failures of peers and exchanges that take too long, on all wires. Does not wait. The device's
     * calls that wait do this, too. */
    void (*poll)(void);
    /* Before the host waits for other ranks by other means: an emulated device rests while the host does, so
     * it is given its time now. */
    void (*settle)(void);
};

#endif
