/* Operations that are recorded once and repeated as one call: a CUDA graph. What the host would spend on each
 * launch is spent once. Kernels keep the arguments that they were recorded with. */
#include "kernels/cuda/cuda.h"

void cuda_record(void) {
    cuda_failed(cudaStreamBeginCapture(cuda_stream(), cudaStreamCaptureModeThreadLocal), "recording a graph");
}

void *cuda_recorded(void) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t recording = NULL;
    if (cuda_failed(cudaStreamEndCapture(cuda_stream(), &graph), "recording a graph")) return NULL;
    cuda_failed(cudaGraphInstantiate(&recording, graph, 0), "making a graph");
    cuda_failed(cudaGraphDestroy(graph), "making a graph");
    return recording;
}

void cuda_repeat(void *recording) {
    cuda_failed(cudaGraphLaunch((cudaGraphExec_t)recording, cuda_stream()), "running a graph");
}

void cuda_discard(void *recording) {
    if (recording) cuda_failed(cudaGraphExecDestroy((cudaGraphExec_t)recording), "releasing a graph");
}
