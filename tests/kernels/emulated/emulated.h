/* For tests of the emulated device: launches, streams and events, and faults, which end a device's life and
 * so happen in a child. */
#ifndef GDN_TEST_EMULATED_H
#define GDN_TEST_EMULATED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include <cuda_runtime.h>

template <typename... P, typename... A>
static inline cudaError_t launch_on(cudaStream_t stream, const char *name, void (*kernel)(P...), dim3 grid,
                                    dim3 block, size_t shared, A... arguments) {
    cudaLaunchConfig_t config = {grid, block, shared, stream, NULL, 0};
    emulated_name(name);
    return cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...);
}

#define RUN(kernel, grid, block, shared, ...)                                                                \
    launch_on(NULL, #kernel, kernel, grid, block, shared, __VA_ARGS__)

#define RUN_ON(stream, kernel, ...) launch_on(stream, #kernel, kernel, 1, 1, 0, __VA_ARGS__)

static inline cudaStream_t new_stream(void) {
    cudaStream_t stream;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

static inline cudaEvent_t new_event(void) {
    cudaEvent_t event;
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    return event;
}

static inline __global__ void put(int value, int *at) {
    *at = value;
}

/* Memory that the host sees as well; 0xff in every byte. */
template <typename T> static inline T *managed(size_t count) {
    void *memory;
    assert_int_equal(cudaMallocManaged(&memory, count * sizeof(T)), cudaSuccess);
    return (T *)memory;
}

static inline void synchronize(void) {
    if (cudaDeviceSynchronize() != cudaSuccess) fail_msg("%s", cudaGetErrorString(cudaGetLastError()));
}

/* Runs `body` in a child, and puts what it writes to standard error in words; returns the status of
 * waitpid. */
static inline int in_child(void (*body)(void), char *text, size_t size) {
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        body();
        fprintf(stderr, "%s", cudaGetErrorString(cudaDeviceSynchronize()));
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n; used + 1 < size && (n = read(ends[0], text + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Checks that the device ends with a fault whose words hold both. */
static inline void expect_fault(void (*body)(void), const char *kernel, const char *what) {
    char text[1000];
    int status = in_child(body, text, sizeof text);
    if (!WIFEXITED(status) || !strstr(text, kernel) || !strstr(text, what))
        fail_msg("'%s' and '%s' are expected, not '%s', status %d", kernel, what, text, status);
}

#endif
