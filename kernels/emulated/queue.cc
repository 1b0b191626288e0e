/* Streams and events. A stream defers its work until something waits for it. Events alone order streams
 * among each other; where events leave the order open, it is the worst one: `late` executes only what is
 * waited for and what that depends on, `early` first executes all that other streams can. A program that
 * lacks an event or a wait computes with stale data in one of the two. */
#include "emulated.h"

#include <algorithm>
#include <deque>
#include <sched.h>
#include <stdlib.h>
#include <string>
#include <vector>

struct task {
    std::string name;
    std::function<void()> work; /* or, of an event's `count`: */
    struct emulated_event *record, *wait;
    unsigned long count;
    std::function<bool()> ready; /* of work that waits for another process */
};

struct emulated_stream {
    std::deque<struct task> tasks;
};

static std::vector<struct emulated_stream *> &streams = *new std::vector<struct emulated_stream *>();
static int depth; /* of tasks that run */

static struct emulated_stream *stream_of(cudaStream_t stream) {
    static struct emulated_stream *plain; /* stream 0 */
    if (stream) return stream;
    if (!plain) streams.push_back(plain = new struct emulated_stream());
    return plain;
}

static bool can_run(const struct emulated_stream *stream) {
    if (stream->tasks.empty()) return false;
    const struct task *next = &stream->tasks.front();
    if (next->ready && !faulted()) return next->ready();
    return !next->wait || next->wait->done >= next->count;
}

/* As on a card, a program may destroy an event that streams still wait for. */
static void drop(struct emulated_event *event) {
    if (event->destroyed && !event->waiting) delete event;
}

static void run_next(struct emulated_stream *stream) {
    struct task task = std::move(stream->tasks.front());
    stream->tasks.pop_front();
    if (task.record) task.record->done = std::max(task.record->done, task.count);
    if (task.wait) task.wait->waiting--, drop(task.wait);
    if (!task.work || faulted()) return;
    memory_open();
    depth++;
    running = task.name.c_str();
    task.work();
    running = NULL;
    depth--;
}

/* Back to the host, which has waited or asked. */
static cudaError_t back(void) {
    if (depth == 0) memory_close();
    return returned(faulted());
}

static bool early(void) {
    const char *order = getenv("GDN_EMULATED_ORDER");
    return order && strcmp(order, "early") == 0;
}

static void run_others(const struct emulated_stream *stream) {
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < streams.size(); i++)
            for (; streams[i] != stream && can_run(streams[i]); any = true) run_next(streams[i]);
    }
}

/* Does the next task of a stream, or of one that it waits for; where that waits for another process, what
 * else can be done, as that process may wait for it. */
static void advance(struct emulated_stream *stream) {
    if (early()) run_others(stream);
    while (!can_run(stream)) {
        const struct task *next = &stream->tasks.front();
        if (!next->wait) {
            run_others(stream);
            sched_yield();
            return;
        }
        stream = next->wait->stream;
    }
    run_next(stream);
}

bool queue_empty(cudaStream_t stream) {
    return stream->tasks.empty();
}

void emulated_rest(void) {
    run_others(NULL);
    back();
}

static void finish(struct emulated_stream *stream) {
    while (!stream->tasks.empty()) advance(stream);
}

cudaError_t emulated_enqueue(cudaStream_t stream, const char *name, std::function<void()> work) {
    if (faulted()) return returned(faulted());
    if (graph_captures(stream))
        graph_add(stream, name, nullptr, std::move(work));
    else
        stream_of(stream)->tasks.push_back({name, std::move(work), NULL, NULL, 0, nullptr});
    return cudaSuccess;
}

cudaError_t emulated_enqueue_when(cudaStream_t stream, const char *name, std::function<bool()> ready,
                                  std::function<void()> work) {
    if (faulted()) return returned(faulted());
    if (graph_captures(stream))
        graph_add(stream, name, std::move(ready), std::move(work));
    else
        stream_of(stream)->tasks.push_back({name, std::move(work), NULL, NULL, 0, std::move(ready)});
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    streams.push_back(*stream = new struct emulated_stream());
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    finish(stream);
    streams.erase(std::find(streams.begin(), streams.end(), stream));
    delete stream;
    return back();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (graph_refuses("cudaStreamSynchronize")) return returned(faulted());
    finish(stream_of(stream));
    return back();
}

/* Asking does a little of the work each time, so that a program that asks in a loop gets there. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    struct emulated_stream *s = stream_of(stream);
    if (faulted() || graph_refuses("cudaStreamQuery")) return returned(faulted());
    if (s->tasks.empty()) return cudaSuccess;
    advance(s);
    back();
    return cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (graph_waits(stream, event)) return returned(faulted());
    if (event->done < event->recorded) {
        stream_of(stream)->tasks.push_back({"an event", nullptr, NULL, event, event->recorded, nullptr});
        event->waiting++;
    }
    return returned(faulted());
}

cudaError_t cudaDeviceSynchronize(void) {
    for (size_t i = 0; i < streams.size(); i++) finish(streams[i]);
    return back();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    *event = new struct emulated_event();
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (!event->captured) cudaEventSynchronize(event);
    event->destroyed = true;
    drop(event);
    return returned(faulted());
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (graph_records(event, stream)) return returned(faulted());
    event->stream = stream_of(stream);
    event->recorded++;
    event->stream->tasks.push_back({"an event", nullptr, event, NULL, event->recorded, nullptr});
    return returned(faulted());
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (graph_refuses("cudaEventSynchronize") || graph_refuses_event("cudaEventSynchronize", event))
        return returned(faulted());
    while (event->done < event->recorded) advance(event->stream);
    return back();
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (faulted() || graph_refuses("cudaEventQuery") || graph_refuses_event("cudaEventQuery", event))
        return returned(faulted());
    if (event->done >= event->recorded) return cudaSuccess;
    advance(event->stream);
    back();
    return cudaErrorNotReady;
}
