/* Device communicators (kernels/base/device_comm.h) by NCCL, one of its communicators each, on
 * communication's stream, or on a stream of its own.
 *
 * NCCL's communicators are not blocking: a call that has to wait for peers says "in progress", and is asked
 * about until it is done, a peer fails or time is up. Exchanges in flight have a ring of events; the oldest
 * that has not taken place is looked at for how long it has been waited for. Those that are recorded
 * (cuda_record) have a ring of their own, which orders the recording's work; of what is repeated one more
 * place says how long that has been waited for. */
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

enum {
    PLACES = 1024,  /* exchanges in flight that are told apart */
    RECORDED = 256, /* recorded ones that are still to be joined */
};

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
    struct place place[PLACES + RECORDED];
    unsigned long begun, done; /* exchanges; number n has place n % PLACES */
    unsigned long recorded;    /* recorded exchanges; number n has place PLACES + n % RECORDED */
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

/* Kernels that wait for peers end, and whatever waits for them goes on. NCCL returns from this when no graph
 * can ask for the communicators any more: so recordings are dropped, and since what runs of them may wait
 * over another axis, for a peer that has given up, too, all communicators end at once. */
static void give_up(void) {
    cuda_drop_recordings();
    ncclGroupStart();
    for (struct device_comm *c = communicators; c; c = c->next) {
        if (c->comm) ncclCommAbort(c->comm);
        c->comm = NULL;
    }
    ncclGroupEnd();
}

static void failed(struct device_comm *c, const char *call, ncclResult_t result) {
    cuda_fail("%s over the %s axis: NCCL: %s", call, c->name, ncclGetErrorString(result));
    give_up();
}

static bool too_late(struct device_comm *c, const char *call, double since) {
    double waited = now() - since;
    if (waited < c->seconds) return false;
    cuda_fail("it waits in %s over the %s axis since %s, more than %.3g seconds ago: a rank of that axis is "
              "lost, or does something else",
              call, c->name, clock_text(waited), c->seconds);
    give_up();
    return true;
}

/* Asks until what was begun on the communicator is done. */
static void poll_call(struct device_comm *c, const char *call, ncclResult_t result) {
    double since = now();
    while (c->comm && result == ncclInProgress) {
        if (ncclCommGetAsyncError(c->comm, &result) == ncclSuccess && result != ncclInProgress) break;
        if (too_late(c, call, since)) return;
        sched_yield();
    }
    if (result != ncclSuccess) failed(c, call, result);
}

static void watch(struct device_comm *c) {
    ncclResult_t result = ncclSuccess;
    if (!c->comm) return;
    ncclCommGetAsyncError(c->comm, &result);
    while (c->done < c->begun && cudaEventQuery(c->place[c->done % PLACES].event) != cudaErrorNotReady)
        c->done++;
    const struct place *oldest = &c->place[c->done % PLACES];
    if (result != ncclSuccess && result != ncclInProgress)
        failed(c, c->done < c->begun ? oldest->call : "an exchange", result);
    else if (c->done < c->begun)
        too_late(c, oldest->call, oldest->since);
}

static void poll(void) {
    for (struct device_comm *c = communicators; c; c = c->next) watch(c);
}

/* ------------------------------------------------------------------ closing, and what opening needs */

static int identify(char id[DEVICE_COMM_ID]) {
    ncclResult_t result = ncclGetUniqueId((ncclUniqueId *)id);
    return result == ncclSuccess ? 0 : cuda_fail("NCCL makes no id: %s", ncclGetErrorString(result));
}

static bool make_stream(struct device_comm *c) {
    c->stream = cuda_talk();
    return !c->own_queue ||
           !cuda_failed(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "creating a stream");
}

static void close(struct device_comm *c) {
    for (struct device_comm **at = &communicators; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    if (!communicators) cuda_watch = cuda_repeated = NULL;
    while (c->comm && c->done < c->begun) watch(c); /* what is under way */
    if (c->comm) {
        ncclResult_t result = ncclCommFinalize(c->comm);
        poll_call(c, "the end of a device communicator", result);
        if (c->comm) ncclCommDestroy(c->comm);
    }
    for (int i = 0; i < PLACES + RECORDED; i++)
        if (c->place[i].event) cudaEventDestroy(c->place[i].event);
    if (c->own_queue && c->stream) cudaStreamDestroy(c->stream);
    free(c);
}

/* ------------------------------------------------------------------ exchanges */

/* What is given up swallows its exchanges. */
static void on_result(struct device_comm *c, const char *call, ncclResult_t result) {
    if (result != ncclSuccess && result != ncclInProgress) failed(c, call, result);
}

/* Where the next exchange has its place. */
static int next_place(const struct device_comm *c) {
    return (int)(cuda_recording() ? PLACES + c->recorded % RECORDED : c->begun % PLACES);
}

static void take_place(struct device_comm *c, const char *call) {
    struct place *place = &c->place[next_place(c)];
    while (!cuda_recording() && c->comm && c->begun - c->done == PLACES)
        watch(c); /* a ring's length behind */
    if (!place->event)
        cuda_failed(cudaEventCreateWithFlags(&place->event, cudaEventDisableTiming), "creating an event");
    place->call = call;
}

static void begin(struct device_comm *c, const char *call) {
    take_place(c, call);
    cuda_failed(cudaEventRecord(operations, cuda_stream()), call);
    cuda_failed(cudaStreamWaitEvent(c->stream, operations, 0), call);
    if (c->comm) on_result(c, call, ncclGroupStart());
}

static void send(struct device_comm *c, const void *x, size_t bytes, int peer) {
    if (c->comm) on_result(c, "a send", ncclSend(x, bytes, ncclInt8, peer, c->comm, c->stream));
}

static void receive(struct device_comm *c, void *x, size_t bytes, int peer) {
    if (c->comm) on_result(c, "a receive", ncclRecv(x, bytes, ncclInt8, peer, c->comm, c->stream));
}

static void gather(struct device_comm *c, void *x, size_t bytes) {
    if (c->comm)
        on_result(
            c, "a gather",
            ncclAllGather((char *)x + (size_t)c->index * bytes, x, bytes, ncclInt8, c->comm, c->stream));
}

/* The place is taken, once the stream has come to its event. */
static int mark(struct device_comm *c, cudaStream_t stream) {
    const int ticket = next_place(c);
    struct place *place = &c->place[ticket];
    place->since = now();
    cuda_failed(cudaEventRecord(place->event, stream), place->call);
    ++*(cuda_recording() ? &c->recorded : &c->begun);
    return ticket;
}

static int end(struct device_comm *c) {
    const char *call = c->place[next_place(c)].call;
    if (c->comm) poll_call(c, call, ncclGroupEnd());
    return mark(c, c->stream);
}

/* What was recorded is queued behind the operations so far. */
static void repeated(void) {
    for (struct device_comm *c = communicators; c; c = c->next) {
        if (!c->recorded) continue;
        take_place(c, "recorded exchanges");
        mark(c, cuda_stream());
    }
}

static void join(struct device_comm *c, int ticket) {
    cuda_failed(cudaStreamWaitEvent(cuda_stream(), c->place[ticket].event, 0), c->place[ticket].call);
}

/* NCCL connects two ranks when something first goes between them, and both hosts wait for that. In a step one
 * of them may be waiting for something else that the other has yet to do; here all are. */
static void connect(struct device_comm *c, const struct device_comm_info *other) {
    char *bytes = (char *)workspace((size_t)other->size); /* what is in them does not matter */
    begin(c, "opening a device communicator");
    for (int r = 0; r < other->size; r++) {
        if (r == c->index) continue;
        send(c, bytes + c->index, 1, r);
        receive(c, bytes + r, 1, r);
    }
    join(c, end(c));
    if (c->own_queue) return; /* it gathers nothing */
    begin(c, "opening a device communicator");
    gather(c, bytes, 1);
    join(c, end(c));
}

static struct device_comm *open(const struct device_comm_info *end, const char id[DEVICE_COMM_ID]) {
    struct device_comm *c = (struct device_comm *)calloc(1, sizeof *c);
    if (!c) {
        cuda_fail("out of memory for a device communicator over the %s axis", end->name);
        return NULL;
    }
    c->index = end->index;
    c->own_queue = end->own_queue;
    c->seconds = end->seconds;
    snprintf(c->name, sizeof c->name, "%s", end->name);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId unique;
    memcpy(&unique, id, sizeof unique);
    c->next = communicators;
    communicators = c;
    cuda_watch = poll;
    cuda_repeated = repeated;
    if (make_stream(c) &&
        (operations ||
         !cuda_failed(cudaEventCreateWithFlags(&operations, cudaEventDisableTiming), "creating an event")))
        poll_call(c, "opening a device communicator",
                  ncclCommInitRankConfig(&c->comm, end->size, unique, end->index, &config));
    connect(c, end);
    if (c->comm) return c;
    close(c);
    return NULL;
}

static void rest(void) {
#ifdef GDN_EMULATED
    cudaStreamSynchronize(cuda_stream());
    emulated_rest();
#endif
}

static struct device_comm_ops make_table(void) {
    struct device_comm_ops ops = {};
    ops.name = "nccl";
    ops.identify = identify;
    ops.open = open;
    ops.close = close;
    ops.begin = begin;
    ops.send = send;
    ops.receive = receive;
    ops.gather = gather;
    ops.end = end;
    ops.join = join;
    ops.poll = poll;
    ops.rest = rest;
    return ops;
}

const struct device_comm_ops *cuda_device_comm(void) {
    static const struct device_comm_ops comms = make_table();
    return &comms;
}

#endif
