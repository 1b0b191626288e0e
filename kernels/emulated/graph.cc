/* What is captured. A capture begins on one stream; another joins it where it waits for an event of the
 * capture, and must be waited for before the end. Whoever waits on the host meanwhile, or mixes events of a
 * capture with others, gets an error that stays, as on a GPU. */
#include "emulated.h"

#include <algorithm>
#include <array>

enum { STREAMS = 16 };

/* Of each stream the number of its last task, from 1 on, that is known to be done. */
typedef std::array<size_t, STREAMS> seen;

static struct capture {
    struct emulated_graph *graph;
    std::vector<cudaStream_t> stream;
    std::array<seen, STREAMS> at; /* where each stream is */
    std::vector<cudaEvent_t> event;
    std::vector<seen> recorded; /* where its stream was when it was recorded */
} * capture;

static unsigned captures; /* so far */

/* Where it is in the list; −1: nowhere. */
template <typename T> static int place_in(const std::vector<T> &list, T item) {
    auto found = std::find(list.begin(), list.end(), item);
    return found == list.end() ? -1 : (int)(found - list.begin());
}

static int number_of(cudaStream_t stream) {
    return place_in(capture->stream, stream);
}

bool graph_captures(cudaStream_t stream) {
    return capture && number_of(stream) >= 0;
}

static void add(int stream, struct emulated_node node) {
    node.stream = stream;
    capture->graph->nodes.push_back(std::move(node));
    capture->at[(size_t)stream][(size_t)stream] = capture->graph->nodes.size();
}

void graph_add(cudaStream_t stream, const char *name, std::function<bool()> ready,
               std::function<void()> work) {
    add(number_of(stream), {name, std::move(work), std::move(ready), 0, -1, -1});
}

bool graph_refuses(const char *call) {
    if (!capture) return false;
    fault(cudaErrorStreamCaptureUnsupported, "%s while work is captured", call);
    return true;
}

bool graph_refuses_event(const char *call, cudaEvent_t event) {
    if (!event->captured) return false;
    fault(cudaErrorCapturedEvent, "%s of an event that was captured", call);
    return true;
}

bool graph_records(cudaEvent_t event, cudaStream_t stream) {
    event->captured = 0;
    if (!graph_captures(stream)) return false;
    int n = place_in(capture->event, event);
    if (n < 0) {
        n = (int)capture->event.size();
        capture->event.push_back(event), capture->recorded.push_back(seen());
    }
    const int from = number_of(stream);
    add(from, {"an event", nullptr, nullptr, 0, n, -1});
    capture->recorded[(size_t)n] = capture->at[(size_t)from];
    event->captured = captures;
    return true;
}

bool graph_waits(cudaStream_t stream, cudaEvent_t event) {
    if (!event->captured && !graph_captures(stream)) return false;
    if (!capture || event->captured != captures) {
        fault(cudaErrorStreamCaptureIsolation, "a stream waits for an event on the other side of a capture");
        return true;
    }
    int to = number_of(stream);
    if (to < 0) {
        to = (int)capture->stream.size();
        if (to == STREAMS)
            return fault(cudaErrorInvalidValue, "more than %d streams are captured", STREAMS), true;
        capture->stream.push_back(stream);
    }
    const int n = place_in(capture->event, event);
    seen &known = capture->at[(size_t)to];
    for (size_t s = 0; s < STREAMS; s++) known[s] = std::max(known[s], capture->recorded[(size_t)n][s]);
    add(to, {"an event", nullptr, nullptr, 0, -1, n});
    return true;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (capture) return returned(cudaErrorInvalidValue);
    capture = new struct capture();
    capture->graph = new struct emulated_graph();
    capture->stream.push_back(stream);
    captures++;
    return returned(faulted());
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    if (!graph_captures(stream) || number_of(stream) != 0) return returned(cudaErrorInvalidValue);
    for (size_t s = 1; s < capture->stream.size(); s++)
        if (capture->at[0][s] < capture->at[s][s])
            fault(cudaErrorStreamCaptureUnjoined,
                  "a capture ends, and has not waited for another stream that joined it");
    *graph = capture->graph;
    capture->graph->streams = (int)capture->stream.size();
    capture->graph->events = (int)capture->event.size();
    delete capture;
    capture = nullptr;
    return returned(faulted());
}
