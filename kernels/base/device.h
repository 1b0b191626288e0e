/* Where a backend's buffers lie: the host's memory, a GPU's, or an emulated GPU's.
 *
 * A process uses one device. Its operations, copies and clears queue up and take effect in the order of the
 * calls, while the host goes on; on the host they are done at once. Calls here do not return a status, so
 * that passes need not check each: the first failure is kept, see `status`. `shared` memory aside, the host
 * never touches a device's memory itself.
 *
 * Communication has a queue of its own beside that of the operations. `fetch` starts a copy to the host
 * there, behind the operations queued so far, and `deliver` one to the device; `join` makes later operations
 * wait for all that was delivered before. */
#ifndef GDN_DEVICE_H
#define GDN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

struct device_comm_ops; /* kernels/base/device_comm.h */

struct device {
    const char *name; /* "host", "cuda", "emulated" */
    bool host;        /* buffers are ordinary memory */
    int weight_ids;   /* ops.h, linear */

    /* Zeroed device memory, 256-byte aligned; NULL where it cannot be had. Where the environment variable
     * GDN_SHARED_DEVICE_MEMORY is set, the host may touch it after `wait`: slow, for tests. */
    void *(*reserve)(size_t bytes);
    void (*release)(void *memory);
    /* Zeroed host memory that copies to and from the device are fast with. */
    void *(*reserve_host)(size_t bytes);
    void (*release_host)(void *memory);
    size_t (*available)(void); /* bytes of device memory that can be reserved now */
    int (*number)(void);       /* of the GPU on this machine; processes that share one have the same */

    void (*upload)(void *device, const void *host, size_t bytes);   /* `host` may be reused at return */
    void (*download)(void *host, const void *device, size_t bytes); /* there at return: waits */
    void (*move)(void *to, const void *from, size_t bytes);         /* both on the device; no overlap */
    void (*clear)(void *memory, size_t bytes);                      /* zeros */

    /* Between `record` and `recorded` operations, moves and clears are kept instead of run; `repeat` then
     * runs all of them as one call, as often as wanted (CUDA graphs). Exchanges of device communicators
     * (device_comm.h) are kept too, all of which have to be joined. Nothing may wait meanwhile, and nothing
     * may be uploaded. `recorded` gives NULL after a failure. NULL: the device has no such thing. */
    void (*record)(void);
    void *(*recorded)(void);
    void (*repeat)(void *recording);
    void (*discard)(void *recording);

    /* Communication. `host` is memory of reserve_host. A ticket is a small number, −1 after a failure, good
     * until waited for; there are at least 256 at a time. */
    int (*fetch)(void *host, const void *device, size_t bytes);
    bool (*arrived)(int ticket); /* without waiting; true also after a failure */
    void (*await)(int ticket);
    /* `host` must not change until the ticket has arrived. `await` gives it back. */
    int (*deliver)(void *device, const void *host, size_t bytes);
    void (*join)(void);

    /* Waits for everything queued. Returns `status`. */
    int (*wait)(void);
    /* The first failure, recorded in status.h's words: GDN_INTERNAL; 0: none seen so far. Does not wait. */
    int (*status)(void);
    /* The device in words: "NVIDIA H200, 139.8 GiB, sm_90, driver 580.1". Owned by the device. */
    const char *(*describe)(void);

    /* What a precision keeps between calls (ops.h, linear), on the device, in `weight_ids` equal parts by
     * weight id: words (uint32_t), 0 where nothing is known, of which the greatest of several processes hold
     * for all of them. Once operations in fp8 were asked for; NULL: the device has no fp8. Who writes zeros
     * asks for it each time: products whose words may have become unknown look at their operands once more.
     */
    void *(*scales)(size_t *bytes);

    /* Peers' devices, without going through host memory; NULL: there is no such way. */
    const struct device_comm_ops *comm;
};

extern const struct device host_device;

#endif
