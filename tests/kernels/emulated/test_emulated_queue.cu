/* The emulated device's streams, events and memory: what is queued waits until somebody waits for it, only
 * events order streams, and memory is the device's. Each protection is seen to catch what it is there for. */
#include "tests/kernels/emulated/emulated.h"

#include <signal.h>

static __global__ void copy_one(const int *from, int *to) {
    *to = *from;
}

/* ------------------------------------------------------------------ laziness */

static void work_waits_for_a_wait(void **) {
    int *x = managed<int>(1), value = 5, there = 0;
    cudaStream_t stream = new_stream();
    RUN_ON(stream, put, value, x);
    value = 6; /* the launch has its own copy */
    cudaMemcpyAsync(&there, x, sizeof there, cudaMemcpyDeviceToHost, stream);
    assert_int_equal(*x, -1);
    assert_int_equal(there, 0);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_int_equal(there, 5);
    cudaStreamDestroy(stream);
}

static void host_memory_is_read_late(void **) {
    int *x = managed<int>(1), host = 1;
    cudaMemcpyAsync(x, &host, sizeof host, cudaMemcpyHostToDevice, NULL);
    host = 2; /* too early */
    synchronize();
    assert_int_equal(*x, 2);
}

static void asking_gets_there(void **) {
    int *x = managed<int>(1), asked = 0;
    cudaEvent_t event = new_event();
    assert_int_equal(cudaEventQuery(event), cudaSuccess); /* never recorded */
    for (int i = 0; i < 10; i++) RUN_ON(NULL, put, i, x);
    cudaEventRecord(event, NULL);
    while (cudaEventQuery(event) == cudaErrorNotReady) asked++;
    assert_true(asked >= 1 && asked < 100);
    assert_int_equal(*x, 9);
    cudaEventDestroy(event);
}

/* ------------------------------------------------------------------ order among streams */

/* One stream puts 1, another reads it, and the first then puts 2. Returns what was read: it is 1 if events
 * order each step, and in one order or the other it is not where one of them is left out. */
static int relay(const char *order, bool wait_before, bool wait_after) {
    setenv("GDN_EMULATED_ORDER", order, 1);
    int *x = managed<int>(2);
    cudaStream_t writer = new_stream(), reader = new_stream();
    cudaEvent_t written = new_event(), taken = new_event();
    x[0] = 0;
    RUN_ON(writer, put, 1, x);
    cudaEventRecord(written, writer);
    if (wait_before) cudaStreamWaitEvent(reader, written);
    RUN_ON(reader, copy_one, x, x + 1);
    cudaEventRecord(taken, reader);
    if (wait_after) cudaStreamWaitEvent(writer, taken);
    RUN_ON(writer, put, 2, x);
    cudaStreamSynchronize(writer);
    cudaStreamSynchronize(reader);
    synchronize();
    cudaStreamDestroy(writer);
    cudaStreamDestroy(reader);
    cudaEventDestroy(written);
    cudaEventDestroy(taken);
    unsetenv("GDN_EMULATED_ORDER");
    return x[1];
}

static void events_order_streams(void **) {
    assert_int_equal(relay("late", true, true), 1);
    assert_int_equal(relay("early", true, true), 1);
    assert_int_equal(relay("early", false, true), 0); /* read too early */
    assert_int_equal(relay("late", true, false), 2);  /* read too late */
}

/* A wait is for what was recorded before it, whatever the event is recorded for later. */
static void events_are_recorded_again(void **) {
    int *x = managed<int>(2);
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t event = new_event();
    RUN_ON(a, put, 1, x);
    cudaEventRecord(event, a);
    cudaStreamWaitEvent(b, event);
    RUN_ON(b, copy_one, x, x + 1);
    RUN_ON(a, put, 2, x);
    cudaEventRecord(event, a);
    cudaStreamSynchronize(b);
    assert_int_equal(x[1], 1);
    assert_int_equal(x[0], 1); /* late: nobody waits for the second record */
    cudaEventSynchronize(event);
    assert_int_equal(x[0], 2);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    cudaEventDestroy(event);
}

/* ------------------------------------------------------------------ memory */

/* Two pieces of a size, of which the first is written before the second is taken. */
static void new_memory_holds_nan(void **) {
    const size_t counts[] = {100, 2 << 20, (3 << 20) + 100};
    for (int each = 0; each < 3; each++) {
        size_t bytes = counts[each] * sizeof(float);
        float *x = (float *)malloc(bytes);
        void *memory[2];
        for (int piece = 0; piece < 2; piece++) {
            assert_int_equal(cudaMalloc(&memory[piece], bytes), cudaSuccess);
            assert_int_equal((uintptr_t)memory[piece] % 256, 0);
            cudaMemcpyAsync(x, memory[piece], bytes, cudaMemcpyDeviceToHost, NULL);
            synchronize();
            for (size_t i = 0; i < counts[each]; i++) assert_true(isnan(x[i]));
            cudaMemsetAsync(memory[piece], 0, bytes, NULL);
            synchronize();
        }
        for (int piece = 0; piece < 2; piece++) cudaFree(memory[piece]);
        free(x);
    }
}

static void memory_ends(void **) {
    setenv("GDN_EMULATED_MEMORY", "100000000", 1);
    size_t free, total, after;
    void *memory, *more;
    cudaMemGetInfo(&free, &total);
    assert_int_equal(total, 100000000);
    assert_int_equal(cudaMalloc(&memory, free / 2), cudaSuccess);
    cudaMemGetInfo(&after, &total);
    assert_true(after <= free - free / 2);
    assert_int_equal(cudaMalloc(&more, free / 2 + 10000), cudaErrorMemoryAllocation);
    assert_null(more);
    cudaFree(memory);
    cudaMemGetInfo(&after, &total);
    assert_int_equal(after, free);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    synchronize(); /* it goes on */
    unsetenv("GDN_EMULATED_MEMORY");
}

static __global__ void write_at(char *memory, long at) {
    memory[at] = 1;
}

static char *device_memory(size_t bytes) {
    void *memory = NULL;
    cudaMalloc(&memory, bytes);
    return (char *)memory;
}

static void writes_elsewhere_are_faults(void **) {
    expect_fault([] { RUN_ON(NULL, write_at, device_memory(100), 99); }, "no error", "");
    expect_fault([] { RUN_ON(NULL, write_at, device_memory(100), 100); }, "write_at", "around a piece");
    expect_fault([] { RUN_ON(NULL, write_at, device_memory(100), -1); }, "write_at", "around a piece");
#ifndef __SANITIZE_ADDRESS__
    expect_fault([] { RUN_ON(NULL, write_at, device_memory(100), 256); }, "write_at",
                 "illegal memory access");
    expect_fault([] { RUN_ON(NULL, write_at, (char *)NULL, 0); }, "write_at", "illegal memory access");
#endif
}

static __global__ void diverge(int) {
    if (threadIdx.x)
        __syncthreads();
    else
        __syncwarp();
}

static void nothing_gets_past_a_fault(void **) {
    expect_fault(
        [] {
            int *x = managed<int>(1);
            RUN_ON(NULL, put, 1, x);
            launch_on(NULL, "diverge", diverge, 1, 2, 0, 0);
            static int two = 2;
            cudaMemcpyAsync(x, &two, sizeof two, cudaMemcpyHostToDevice, NULL);
            cudaStreamSynchronize(NULL);
            fprintf(stderr, "x %d, ", *x);
            fprintf(stderr, "launch %d, ", RUN_ON(NULL, put, 3, x) != cudaSuccess);
            fprintf(stderr, "free %d, ", cudaFree(x) != cudaSuccess);
            for (int i = 0; i < 2; i++) fprintf(stderr, "last %d, ", cudaGetLastError() != cudaSuccess);
        },
        "x 1, launch 1, free 1, last 1, last 1, ", "diverge: in block (0, 0, 0) thread 0 waits");
}

/* ------------------------------------------------------------------ the strict mode */

static void host_touches(void) {
    setenv("GDN_EMULATED_STRICT", "1", 1);
    char *memory = device_memory(100);
    RUN_ON(NULL, write_at, memory, 5);
    cudaDeviceSynchronize();
    fprintf(stderr, "%d", *(volatile char *)memory);
}

static void host_touches_new(void) {
    setenv("GDN_EMULATED_STRICT", "1", 1);
    fprintf(stderr, "%d", *(volatile char *)device_memory(100));
}

static void host_asks(void) {
    setenv("GDN_EMULATED_STRICT", "1", 1);
    int *x = (int *)device_memory(sizeof *x), there = 0;
    int *both = managed<int>(1);
    RUN_ON(NULL, put, 5, x);
    cudaMemcpyAsync(&there, x, sizeof there, cudaMemcpyDeviceToHost, NULL);
    RUN_ON(NULL, put, 6, both);
    cudaDeviceSynchronize();
    fprintf(stderr, "%d and %d; ", there, *both);
}

static void host_may_not_touch_device_memory(void **) {
    for (void (*touch)(void) : {host_touches, host_touches_new}) {
        char text[1000];
        int status = in_child(touch, text, sizeof text);
#ifdef __SANITIZE_ADDRESS__
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
#else
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        assert_non_null(strstr(text, "the host touched device memory"));
#endif
    }
    expect_fault(host_asks, "5 and 6; ", "no error");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_waits_for_a_wait),
        cmocka_unit_test(host_memory_is_read_late),
        cmocka_unit_test(asking_gets_there),
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(events_are_recorded_again),
        cmocka_unit_test(new_memory_holds_nan),
        cmocka_unit_test(memory_ends),
        cmocka_unit_test(writes_elsewhere_are_faults),
        cmocka_unit_test(nothing_gets_past_a_fault),
        cmocka_unit_test(host_may_not_touch_device_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
