/* The GPU as a device (kernels/base/device.h): memory, copies, tickets, and opening it.
 *
 * Operations, uploads, downloads, moves and clears are queued on one stream, communication's copies on
 * another, which events order behind the operations queued so far. Uploads go through a ring of pinned host
 * memory, so the host waits only where the whole ring is under way. What all files need of it is in
 * context.cu. */
#include "kernels/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

extern "C" {
#include "kernels/base/status.h"
}

enum {
    TICKETS = 1024,
    RING = 32, /* pieces of pinned host memory for uploads */
};
static const size_t PIECE = (size_t)512 << 10;

static cudaEvent_t queued, delivered; /* operations, deliveries so far */
static struct {
    char *memory; /* [RING, PIECE] */
    cudaEvent_t sent[RING];
    int next;
} ring;

static struct {
    cudaEvent_t event[TICKETS];
    int free[TICKETS], count; /* tickets that are free */
} tickets;

/* Waits for a stream's work, which may wait for other processes. */
static void finish(cudaStream_t stream, const char *what) {
    cudaError_t error = cudaErrorNotReady;
    while (cuda_watch && (error = cudaStreamQuery(stream)) == cudaErrorNotReady) cuda_watch();
    if (error == cudaErrorNotReady) error = cudaStreamSynchronize(stream);
    cuda_failed(error, what);
}

/* ------------------------------------------------------------------ memory */

static void release(void *memory) {
    cuda_failed(cudaFree(memory), "releasing memory");
}

static void *reserve_host(size_t bytes) {
    void *memory = NULL;
    if (cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocDefault) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return memset(memory, 0, bytes);
}

static void release_host(void *memory) {
    cuda_failed(cudaFreeHost(memory), "releasing host memory");
}

static size_t available(void) {
    size_t free = 0, total;
    cuda_failed(cudaMemGetInfo(&free, &total), "asking for free memory");
    return free;
}

/* ------------------------------------------------------------------ copies among operations */

/* Looks after the device communicators meanwhile: a peer that is lost never comes. */
static void await_event(cudaEvent_t event, const char *what) {
    cudaError_t error = cudaErrorNotReady;
    while (cuda_watch && (error = cudaEventQuery(event)) == cudaErrorNotReady) cuda_watch();
    if (error == cudaErrorNotReady) error = cudaEventSynchronize(event);
    cuda_failed(error, what);
}

static void upload_piece(void *device, const void *host, size_t bytes) {
    int i = ring.next;
    char *piece = ring.memory + (size_t)i * PIECE;
    ring.next = (i + 1) % RING;
    await_event(ring.sent[i], "an upload");
    memcpy(piece, host, bytes);
    cuda_failed(cudaMemcpyAsync(device, piece, bytes, cudaMemcpyHostToDevice, cuda_stream()), "an upload");
    cuda_failed(cudaEventRecord(ring.sent[i], cuda_stream()), "an upload");
}

static void upload(void *device, const void *host, size_t bytes) {
    if (cuda_recording()) cuda_fail("an upload while operations are recorded");
    for (size_t done = 0; done < bytes; done += PIECE)
        upload_piece((char *)device + done, (const char *)host + done,
                     bytes - done < PIECE ? bytes - done : PIECE);
}

static void download(void *host, const void *device, size_t bytes) {
    if (cuda_watch)
        finish(cuda_stream(),
               "a download"); /* the copy itself may wait in the driver, where nobody watches */
    if (bytes)
        cuda_failed(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, cuda_stream()),
                    "a download");
    finish(cuda_stream(), "a download");
}

static void move(void *to, const void *from, size_t bytes) {
    if (bytes)
        cuda_failed(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda_stream()), "a copy");
}

static void clear(void *memory, size_t bytes) {
    if (bytes) cuda_failed(cudaMemsetAsync(memory, 0, bytes, cuda_stream()), "a clear");
}

/* ------------------------------------------------------------------ communication */

/* A copy behind the operations queued so far, which may still use what it overwrites. */
static int start(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, const char *what) {
    if (cuda_recording()) cuda_fail("%s while operations are recorded", what);
    if (tickets.count == 0) {
        cuda_fail("more than %d copies are under way", TICKETS);
        return -1;
    }
    int ticket = tickets.free[--tickets.count];
    cuda_failed(cudaEventRecord(queued, cuda_stream()), what);
    cuda_failed(cudaStreamWaitEvent(cuda_talk(), queued, 0), what);
    if (bytes) cuda_failed(cudaMemcpyAsync(to, from, bytes, kind, cuda_talk()), what);
    cuda_failed(cudaEventRecord(tickets.event[ticket], cuda_talk()), what);
    return ticket;
}

static int fetch(void *host, const void *device, size_t bytes) {
    return start(host, device, bytes, cudaMemcpyDeviceToHost, "a fetch");
}

static int deliver(void *device, const void *host, size_t bytes) {
    return start(device, host, bytes, cudaMemcpyHostToDevice, "a delivery");
}

static bool arrived(int ticket) {
    if (ticket < 0) return true; /* of a copy that could not be started */
    cudaError_t error = cudaEventQuery(tickets.event[ticket]);
    if (error == cudaErrorNotReady) return false;
    cuda_failed(error, "communication");
    return true;
}

static void await(int ticket) {
    if (ticket < 0) return;
    await_event(tickets.event[ticket], "communication");
    if (tickets.count < TICKETS) tickets.free[tickets.count++] = ticket;
}

static void join(void) {
    cuda_failed(cudaEventRecord(delivered, cuda_talk()), "a delivery");
    cuda_failed(cudaStreamWaitEvent(cuda_stream(), delivered, 0), "a delivery");
}

static int status(void) {
    cudaError_t error = cudaGetLastError();
    if (error != cudaErrorNotReady)
        cuda_failed(error, "an operation"); /* that one is an answer to a question */
    return cuda_has_failed() ? GDN_INTERNAL : GDN_OK;
}

static int wait(void) {
    finish(cuda_stream(), "an operation");
    finish(cuda_talk(), "communication");
    return status();
}

/* ------------------------------------------------------------------ opening */

static bool make_event(cudaEvent_t *event) {
    return !cuda_failed(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "creating events");
}

static bool make_events(void) {
    bool good = make_event(&queued) && make_event(&delivered);
    for (int i = 0; i < RING; i++) good = good && make_event(&ring.sent[i]);
    for (int i = 0; i < TICKETS; i++) {
        good = good && make_event(&tickets.event[i]);
        tickets.free[tickets.count++] = TICKETS - 1 - i;
    }
    return good;
}

static bool make_buffers(void) {
    void *memory = NULL;
    if (cuda_failed(cudaHostAlloc(&memory, RING * PIECE, cudaHostAllocDefault),
                    "reserving pinned host memory"))
        return false;
    ring.memory = (char *)memory;
    return true;
}

bool cuda_open(gdn_fail_function *fail, int local) {
    cuda_begin(fail);
    return gpu_take(local) && cuda_make_streams() && make_events() && make_buffers();
}

static struct device make_device(void) {
    struct device d = {};
    d.name = cuda_name;
    d.weight_ids = CUDA_WEIGHT_IDS;
    d.reserve = cuda_reserve;
    d.release = release;
    d.reserve_host = reserve_host;
    d.release_host = release_host;
    d.available = available;
    d.number = gpu_number;
    d.upload = upload;
    d.download = download;
    d.move = move;
    d.clear = clear;
    d.record = cuda_record;
    d.recorded = cuda_recorded;
    d.repeat = cuda_repeat;
    d.discard = cuda_discard;
    d.fetch = fetch;
    d.arrived = arrived;
    d.await = await;
    d.deliver = deliver;
    d.join = join;
    d.wait = wait;
    d.status = status;
    d.describe = gpu_describe;
    d.comm = cuda_device_comm();
    d.scales = cuda_scales;
    return d;
}

const struct device cuda_device = make_device();
