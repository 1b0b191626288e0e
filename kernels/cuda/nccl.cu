/* Device communicators (kernels/base/device_comm.h) by NCCL, one of its communicators each, on
 * communication's stream, or on a stream of its own.
 *
 * NCCL's communicators are not blocking: a call that has to wait for peers says "in progress", and is asked
 * about until it is done, a peer fails or time is up. Exchanges in flight have a ring of events; the oldest
 * that has not taken place is looked at for how long it has been waited for. */
#include "kernels/cuda/cuda.h"

#ifndef GDN_NCCL

const struct device_comm_ops *cuda_device_comm(void) {
    return NULL;
}

#else

#include <nccl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

extern "C" {
#include "kernels/base/status.h"
#include "kernels/base/device_comm.h"
}

static_assert(sizeof(ncclUniqueId) == DEVICE_COMM_ID, "an id is handed over as it is");

enum { PLACES = 1024 }; /* exchanges in flight that are told apart */

struct place {
    cudaEvent_t event; /* NULL: never used */
    const char *call;
    double since;
};

struct device_comm {
    ncclComm_t comm; /* NULL: given up */
    cudaStream_t stream;
    bool own_queue;
    int index;
    char name[40];
    double seconds;
    struct place place[PLACES];
    unsigned long begun, done; /* exchanges; number n has place n % PLACES */
    struct device_comm *next;
};

static struct device_comm *communicators;
static cudaEvent_t operations; /* so far */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *clock_text(double ago) {
    static char text[16];
    time_t then = time(NULL) - (time_t)ago;
    struct tm parts;
    strftime(text, sizeof text, "%H:%M:%S", localtime_r(&then, &parts));
    return text;
}

/* ------------------------------------------------------------------ failures */

/* Kernels that wait for peers end, and whatever waits for them goes on. */
static void give_up(struct device_comm *w) {
    if (w->comm) ncclCommAbort(w->comm);
    w->comm = NULL;
}

static void failed(struct device_comm *w, const char *call, ncclResult_t result) {
    cuda_fail("%s over the %s axis: NCCL: %s", call, w->name, ncclGetErrorString(result));
    give_up(w);
}

static bool too_late(struct device_comm *w, const char *call, double since) {
    double waited = now() - since;
    if (waited < w->seconds) return false;
    cuda_fail("it waits in %s over the %s axis since %s, more than %.3g seconds ago: a rank of that axis is "
              "lost, or does something else",
              call, w->name, clock_text(waited), w->seconds);
    give_up(w);
    return true;
}

/* Asks until what was begun on the communicator is done. */
static void poll_call(struct device_comm *w, const char *call, ncclResult_t result) {
    double since = now();
    while (w->comm && result == ncclInProgress) {
        if (ncclCommGetAsyncError(w->comm, &result) == ncclSuccess && result != ncclInProgress) break;
        if (too_late(w, call, since)) return;
        sched_yield();
    }
    if (result != ncclSuccess) failed(w, call, result);
}

static void watch(struct device_comm *w) {
    ncclResult_t result = ncclSuccess;
    if (!w->comm) return;
    ncclCommGetAsyncError(w->comm, &result);
    while (w->done < w->begun && cudaEventQuery(w->place[w->done % PLACES].event) != cudaErrorNotReady)
        w->done++;
    const struct place *oldest = &w->place[w->done % PLACES];
    if (result != ncclSuccess && result != ncclInProgress)
        failed(w, w->done < w->begun ? oldest->call : "an exchange", result);
    else if (w->done < w->begun)
        too_late(w, oldest->call, oldest->since);
}

static void poll(void) {
    for (struct device_comm *w = communicators; w; w = w->next) watch(w);
}

/* ------------------------------------------------------------------ closing, and what opening needs */

static int identify(char id[DEVICE_COMM_ID]) {
    ncclResult_t result = ncclGetUniqueId((ncclUniqueId *)id);
    return result == ncclSuccess ? 0 : cuda_fail("NCCL makes no id: %s", ncclGetErrorString(result));
}

static bool make_stream(struct device_comm *w) {
    w->stream = cuda_talk();
    return !w->own_queue ||
           !cuda_failed(cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking), "creating a stream");
}

static void close(struct device_comm *w) {
    for (struct device_comm **at = &communicators; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    if (!communicators) cuda_watch = NULL;
    while (w->comm && w->done < w->begun) watch(w); /* what is under way */
    if (w->comm) {
        ncclResult_t result = ncclCommFinalize(w->comm);
        poll_call(w, "the end of a device communicator", result);
        if (w->comm) ncclCommDestroy(w->comm);
    }
    for (int i = 0; i < PLACES; i++)
        if (w->place[i].event) cudaEventDestroy(w->place[i].event);
    if (w->own_queue && w->stream) cudaStreamDestroy(w->stream);
    free(w);
}

/* ------------------------------------------------------------------ exchanges */

/* What is given up swallows its exchanges. */
static void on_result(struct device_comm *w, const char *call, ncclResult_t result) {
    if (result != ncclSuccess && result != ncclInProgress) failed(w, call, result);
}

static struct place *place_of(struct device_comm *w, unsigned long number) {
    return &w->place[number % PLACES];
}

static void begin(struct device_comm *w, const char *call) {
    struct place *place = place_of(w, w->begun);
    while (w->comm && w->begun - w->done == PLACES) watch(w); /* a ring's length behind */
    if (!place->event)
        cuda_failed(cudaEventCreateWithFlags(&place->event, cudaEventDisableTiming), "creating an event");
    place->call = call;
    cuda_failed(cudaEventRecord(operations, cuda_stream()), call);
    cuda_failed(cudaStreamWaitEvent(w->stream, operations, 0), call);
    if (w->comm) on_result(w, call, ncclGroupStart());
}

static void send(struct device_comm *w, const void *x, size_t bytes, int peer) {
    if (w->comm) on_result(w, "a send", ncclSend(x, bytes, ncclInt8, peer, w->comm, w->stream));
}

static void receive(struct device_comm *w, void *x, size_t bytes, int peer) {
    if (w->comm) on_result(w, "a receive", ncclRecv(x, bytes, ncclInt8, peer, w->comm, w->stream));
}

static void gather(struct device_comm *w, void *x, size_t bytes) {
    if (w->comm)
        on_result(
            w, "a gather",
            ncclAllGather((char *)x + (size_t)w->index * bytes, x, bytes, ncclInt8, w->comm, w->stream));
}

static int end(struct device_comm *w) {
    unsigned long number = w->begun++;
    struct place *place = place_of(w, number);
    if (w->comm) poll_call(w, place->call, ncclGroupEnd());
    place->since = now();
    cuda_failed(cudaEventRecord(place->event, w->stream), place->call);
    return (int)(number % PLACES);
}

static void join(struct device_comm *w, int ticket) {
    cuda_failed(cudaStreamWaitEvent(cuda_stream(), w->place[ticket].event, 0), w->place[ticket].call);
}

/* NCCL connects two ranks when something first goes between them, and both hosts wait for that. In a step one
 * of them may be waiting for something else that the other has yet to do; here all are. */
static void connect(struct device_comm *w, const struct device_comm_info *other) {
    char *bytes = (char *)workspace((size_t)other->size); /* what is in them does not matter */
    begin(w, "opening a device communicator");
    for (int r = 0; r < other->size; r++) {
        if (r == w->index) continue;
        send(w, bytes + w->index, 1, r);
        receive(w, bytes + r, 1, r);
    }
    join(w, end(w));
    if (w->own_queue) return; /* it gathers nothing */
    begin(w, "opening a device communicator");
    gather(w, bytes, 1);
    join(w, end(w));
}

static struct device_comm *open(const struct device_comm_info *end, const char id[DEVICE_COMM_ID]) {
    struct device_comm *w = (struct device_comm *)calloc(1, sizeof *w);
    if (!w) {
        cuda_fail("out of memory for a device communicator over the %s axis", end->name);
        return NULL;
    }
    w->index = end->index;
    w->own_queue = end->own_queue;
    w->seconds = end->seconds;
    snprintf(w->name, sizeof w->name, "%s", end->name);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId unique;
    memcpy(&unique, id, sizeof unique);
    if (make_stream(w) &&
        (operations ||
         !cuda_failed(cudaEventCreateWithFlags(&operations, cudaEventDisableTiming), "creating an event")))
        poll_call(w, "opening a device communicator",
                  ncclCommInitRankConfig(&w->comm, end->size, unique, end->index, &config));
    w->next = communicators;
    communicators = w;
    cuda_watch = poll;
    connect(w, end);
    if (w->comm) return w;
    close(w);
    return NULL;
}

static void rest(void) {
#ifdef GDN_EMULATED
    cudaStreamSynchronize(cuda_stream());
    emulated_rest();
#endif
}

static struct device_comm_ops make_table(void) {
    struct device_comm_ops w = {};
    w.name = "nccl";
    w.identify = identify;
    w.open = open;
    w.close = close;
    w.begin = begin;
    w.send = send;
    w.receive = receive;
    w.gather = gather;
    w.end = end;
    w.join = join;
    w.poll = poll;
    w.rest = rest;
    return w;
}

const struct device_comm_ops *cuda_device_comm(void) {
    static const struct device_comm_ops comms = make_table();
    return &comms;
}

#endif
