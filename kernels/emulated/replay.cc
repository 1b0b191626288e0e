/* Graphs that can be launched: on streams of their own, which a graph's events alone order, and those of a launch. Tasks
 * keep their arguments by value, so running one twice is running it twice. */
#include "emulated.h"

#include <algorithm>

static std::vector<cudaGraphExec_t> &destroyed = *new std::vector<cudaGraphExec_t>(); /* that may still run */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    *exec = new struct emulated_graph(*graph);
    for (int s = 0; s < graph->streams; s++) {
        cudaStream_t own;
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
        (*exec)->own.push_back(own);
    }
    for (int e = 0; e < graph->events + 2; e++) (*exec)->event.push_back(new struct emulated_event());
    return returned(faulted());
}

/* Recorded behind all of a launch. */
static cudaEvent_t end_of(cudaGraphExec_t exec) {
    return exec->event.end()[-2];
}

/* The first of its streams stands for that which it is launched on. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    if (graph_refuses("cudaGraphLaunch")) return returned(faulted());
    cudaEvent_t start = exec->event.back();
    cudaEventRecord(start, stream);
    for (size_t s = 1; s < exec->own.size(); s++) cudaStreamWaitEvent(exec->own[s], start);
    for (const struct emulated_node &node : exec->nodes) {
        cudaStream_t on = node.stream ? exec->own[(size_t)node.stream] : stream;
        if (node.record >= 0)
            cudaEventRecord(exec->event[(size_t)node.record], on);
        else if (node.wait >= 0)
            cudaStreamWaitEvent(on, exec->event[(size_t)node.wait]);
        else if (node.ready)
            emulated_enqueue_when(on, node.name.c_str(), node.ready, node.work);
        else
            emulated_enqueue(on, node.name.c_str(), node.work);
    }
    cudaEventRecord(end_of(exec), stream);
    return returned(faulted());
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    for (cudaStream_t own : graph->own) cudaStreamDestroy(own);
    for (cudaEvent_t event : graph->event) cudaEventDestroy(event);
    delete graph;
    return returned(faulted());
}

static bool runs(cudaGraphExec_t exec) {
    cudaEvent_t end = end_of(exec);
    return end->done < end->recorded || !std::all_of(exec->own.begin(), exec->own.end(), queue_empty);
}

/* One that runs is released when it is over, which is seen at the next of these calls. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    exec->nodes.clear();
    destroyed.push_back(exec);
    for (size_t i = destroyed.size(); i-- > 0;) {
        if (runs(destroyed[i])) continue;
        cudaGraphDestroy(destroyed[i]);
        destroyed.erase(destroyed.begin() + (long)i);
    }
    return returned(faulted());
}
