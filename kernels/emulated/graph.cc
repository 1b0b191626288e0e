/* Captured work and graphs: a list of tasks that can be queued again. Tasks keep their arguments by value, so
 * running one twice is running it twice. A capture allows nothing but work: whoever waits, or records an
 * event, gets an error that stays, as on a GPU. */
#include "emulated.h"

static cudaStream_t captured; /* stream; NULL: none */
static struct emulated_graph *capture;

bool graph_captures(cudaStream_t stream) {
    return capture && stream == captured;
}

void graph_add(const char *name, std::function<void()> work) {
    capture->nodes.push_back({name, std::move(work)});
}

bool graph_refuses(const char *call) {
    if (!capture) return false;
    fault(cudaErrorStreamCaptureUnsupported, "%s while work is captured", call);
    return true;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (capture) return returned(cudaErrorInvalidValue);
    captured = stream;
    capture = new struct emulated_graph();
    return returned(faulted());
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    if (!graph_captures(stream)) return returned(cudaErrorInvalidValue);
    *graph = capture;
    capture = nullptr;
    return returned(faulted());
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    *exec = new struct emulated_graph(*graph);
    return returned(faulted());
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return returned(faulted());
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    return cudaGraphDestroy(exec);
}
