/* Errors: the first fault stays, as CUDA's do. */
#include "emulated.h"

#include <stdarg.h>
#include <stdio.h>

const char *running;
static cudaError_t first_fault, last;
static char text[512];

void fault(cudaError_t error, const char *format, ...) {
    if (first_fault) return;
    first_fault = error;
    int used = snprintf(text, sizeof text, "%s: ", running ? running : "the host");
    va_list list;
    va_start(list, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, list);
    va_end(list);
}

cudaError_t faulted(void) {
    return first_fault;
}

cudaError_t returned(cudaError_t error) {
    if (error) last = error;
    return error;
}

const char *cudaGetErrorString(cudaError_t error) {
    if (error && error == first_fault) return text;
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureUnjoined:
        return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:
        return "dependency created on uncaptured work in another stream";
    case cudaErrorCapturedEvent:
        return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    }
    return "unknown error";
}

cudaError_t cudaPeekAtLastError(void) {
    return first_fault ? first_fault : last;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = cudaPeekAtLastError();
    last = cudaSuccess;
    return error;
}
