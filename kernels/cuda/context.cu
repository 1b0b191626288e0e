/* What every file of the backend stands on: the two streams, graphs of their work, scratch memory, the first failure. */
#include "kernels/cuda/cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "kernels/base/status.h"
}

#ifdef GDN_EMULATED
const char *const cuda_name = "emulated";
static const char *const advice = ""; /* a fault names its kernel */
#else
const char *const cuda_name = "cuda";
static const char *const advice = " (CUDA_LAUNCH_BLOCKING=1 in the environment makes this name the kernel)";
#endif

static gdn_fail_function *fail_text;
static bool failed;
static cudaStream_t compute, talk;
void (*cuda_watch)(void);
void (*cuda_repeated)(void);
static void *scratch; /* [WORKSPACE_BYTES] */

void cuda_begin(gdn_fail_function *fail) {
    fail_text = fail;
}

int cuda_fail(const char *format, ...) {
    char text[600];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    failed = true;
    return fail_text(GDN_INTERNAL, "device %s: %s", cuda_name, text);
}

bool cuda_failed(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return false;
    cudaGetLastError();
    bool fault = error == cudaErrorIllegalAddress || error == cudaErrorLaunchFailure;
    if (!failed) cuda_fail("%s: %s%s", what, cudaGetErrorString(error), fault ? advice : "");
    return true;
}

static uint64_t queued;

uint64_t cuda_queued(void) {
    return queued;
}

cudaStream_t cuda_stream(void) {
    queued++;
    return compute;
}

cudaStream_t cuda_talk(void) {
    return talk;
}

bool cuda_has_failed(void) {
    return failed;
}

void *workspace(size_t bytes) {
    if (bytes > WORKSPACE_BYTES)
        cuda_fail("an operation asks for %zu bytes of scratch memory of %zu", bytes, WORKSPACE_BYTES);
    return scratch;
}

static bool shared_memory(void) {
    const char *asked = getenv("GDN_SHARED_DEVICE_MEMORY");
    return asked && asked[0] && strcmp(asked, "0") != 0;
}

void *cuda_reserve(size_t bytes) {
    void *memory = NULL;
    if (bytes == 0) bytes = 1;
    cudaError_t error = shared_memory() ? cudaMallocManaged(&memory, bytes) : cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return NULL;
    }
    if (cuda_failed(error, "reserving memory")) return NULL;
    cuda_failed(cudaMemsetAsync(memory, 0, bytes, cuda_stream()), "clearing memory");
    cuda_failed(cudaStreamSynchronize(compute), "clearing memory"); /* for the other stream, and the host */
    return memory;
}

bool cuda_make_streams(void) {
    return !cuda_failed(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking), "creating a stream") &&
           !cuda_failed(cudaStreamCreateWithFlags(&talk, cudaStreamNonBlocking), "creating a stream") &&
           !cuda_failed(cudaMalloc(&scratch, WORKSPACE_BYTES), "reserving scratch memory");
}

struct recording {
    cudaGraphExec_t exec; /* NULL: dropped */
    struct recording *next;
};

static struct recording *recordings;
static bool recording, capturing; /* until `recorded`; and while the stream captures */

bool cuda_recording(void) {
    return recording;
}

/* Operations that are recorded once and repeated as one call: a CUDA graph. What the host would spend on each
 * launch is spent once. Kernels keep the arguments that they were recorded with. A capture of this thread's
 * alone lets the one in which NCCL queues exchanges do what it likes. */
void cuda_record(void) {
    recording = true;
    capturing = !cuda_failed(cudaStreamBeginCapture(cuda_stream(), cudaStreamCaptureModeThreadLocal),
                             "recording a graph");
}

void *cuda_recorded(void) {
    cudaGraph_t graph = NULL;
    const bool ends = capturing;
    recording = capturing = false;
    if (!ends || cuda_failed(cudaStreamEndCapture(cuda_stream(), &graph), "recording a graph")) return NULL;
    struct recording *made = (struct recording *)calloc(1, sizeof *made);
    if (!made) cuda_fail("out of memory for a recording");
    if (made && !cuda_failed(cudaGraphInstantiate(&made->exec, graph, 0), "making a graph")) {
        made->next = recordings;
        recordings = made;
    } else {
        free(made);
        made = NULL;
    }
    cuda_failed(cudaGraphDestroy(graph), "making a graph");
    return made;
}

void cuda_repeat(void *made) {
    const struct recording *r = (const struct recording *)made;
    if (!r->exec) return;
    cuda_failed(cudaGraphLaunch(r->exec, cuda_stream()), "running a graph");
    if (cuda_repeated) cuda_repeated();
}

/* A graph that runs goes on, and is released at its end. */
static void drop(struct recording *r) {
    if (r->exec) cuda_failed(cudaGraphExecDestroy(r->exec), "releasing a graph");
    r->exec = NULL;
}

void cuda_discard(void *made) {
    for (struct recording **at = &recordings; *at; at = &(*at)->next)
        if (*at == made) {
            *at = (*at)->next;
            break;
        }
    if (made) drop((struct recording *)made);
    free(made);
}

void cuda_drop_recordings(void) {
    cudaGraph_t graph = NULL;
    if (capturing && cudaStreamEndCapture(compute, &graph) == cudaSuccess) cudaGraphDestroy(graph);
    capturing = false;
    cudaGetLastError(); /* the capture was cut short */
    for (struct recording *r = recordings; r; r = r->next) drop(r);
}
