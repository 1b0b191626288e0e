/* Graphs that can be launched: on streams of their own, which a graph's events alone order, and those of a launch. Tasks
 * keep their arguments by value, so running one twice is running it twice. */
#include "emulated.h"

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    *exec = new struct emulated_graph(*graph);
    for (int s = 0; s < graph->streams; s++) {
        cudaStream_t own;
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
        (*exec)->own.push_back(own);
    }
    for (int e = 0; e <= graph->events; e++) (*exec)->event.push_back(new struct emulated_event());
    return returned(faulted());
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
    return returned(faulted());
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    for (cudaStream_t own : graph->own) cudaStreamDestroy(own);
    for (cudaEvent_t event : graph->event) cudaEventDestroy(event);
    delete graph;
    return returned(faulted());
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    return cudaGraphDestroy(exec);
}
