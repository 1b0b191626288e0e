/* The emulated device's blocks: indices, barriers, warps, shared memory, limits; and that each broken rule is
 * reported as a fault that names the kernel. Every kernel runs in blocks and launches enough to see threads
 * in both orders. */
#include "tests/kernels/emulated/emulated.h"

enum { BLOCKS = 4, THREADS = 96 };

/* ------------------------------------------------------------------ indices */

static __global__ void count_visits(int *visits) {
    dim3 g = gridDim, b = blockDim;
    unsigned block = (blockIdx.z * g.y + blockIdx.y) * g.x + blockIdx.x;
    unsigned thread = (threadIdx.z * b.y + threadIdx.y) * b.x + threadIdx.x;
    visits[block * b.x * b.y * b.z + thread]++;
}

static void every_thread_runs_once(void **) {
    int *visits = managed<int>(2 * 3 * 4 * 5 * 6 * 7);
    cudaMemsetAsync(visits, 0, 2 * 3 * 4 * 5 * 6 * 7 * sizeof *visits, NULL);
    RUN(count_visits, dim3(2, 3, 4), dim3(5, 6, 7), 0, visits);
    synchronize();
    for (int i = 0; i < 2 * 3 * 4 * 5 * 6 * 7; i++) assert_int_equal(visits[i], 1);
}

static __global__ void take_number(int *next, int *number) {
    number[blockIdx.x] = atomicAdd(next, 1);
}

static void blocks_have_no_order(void **) {
    int *next = managed<int>(1), *number = managed<int>(2 * BLOCKS);
    *next = 0;
    RUN(take_number, BLOCKS, 1, 0, next, number);
    RUN(take_number, BLOCKS, 1, 0, next, number + BLOCKS);
    synchronize();
    assert_true((number[0] < number[1]) != (number[BLOCKS] < number[BLOCKS + 1]));
}

/* ------------------------------------------------------------------ barriers */

/* y [BLOCKS, THREADS]: each thread takes what its neighbour `by` further put down. */
static __global__ void neighbour(int by, bool wait, int *y) {
    __shared__ int x[THREADS];
    x[threadIdx.x] = (int)threadIdx.x;
    if (wait) __syncthreads();
    y[blockIdx.x * THREADS + threadIdx.x] = x[(threadIdx.x + THREADS + by) % THREADS];
}

static int wrong_neighbours(int by, bool wait) {
    int *y = managed<int>(BLOCKS * THREADS), wrong = 0;
    RUN(neighbour, BLOCKS, THREADS, 0, by, wait, y);
    synchronize();
    for (int i = 0; i < BLOCKS * THREADS; i++) wrong += y[i] != (i % THREADS + by + THREADS) % THREADS;
    return wrong;
}

static void barrier(void **) {
    assert_int_equal(wrong_neighbours(1, true), 0);
    assert_int_equal(wrong_neighbours(-1, true), 0);
}

static void missing_barrier_shows(void **) {
    enum { MANY = BLOCKS / 2 * (THREADS - 1) }; /* all in half of the blocks, but one that runs last */
    assert_true(wrong_neighbours(1, false) >= MANY);
    assert_true(wrong_neighbours(-1, false) >= MANY);
}

static __global__ void some_end(int *y) {
    __shared__ int x;
    if (threadIdx.x == 70) x = 7;
    if (threadIdx.x % 2) return;
    __syncthreads();
    y[threadIdx.x] = x;
}

static void threads_that_ended_are_not_waited_for(void **) {
    int *y = managed<int>(THREADS);
    RUN(some_end, 1, THREADS, 0, y);
    synchronize();
    for (int i = 0; i < THREADS; i++) assert_int_equal(y[i], i % 2 ? -1 : 7);
}

static __global__ void two_barriers(int) {
    if (threadIdx.x < 40)
        __syncthreads();
    else
        __syncthreads();
}

static __global__ void barrier_or_warp(int) {
    if (threadIdx.x < 40)
        __syncthreads();
    else
        __syncwarp(0xffffffffu);
}

static void different_places_are_a_fault(void **) {
    expect_fault([] { RUN(two_barriers, 1, THREADS, 0, 0); }, "two_barriers",
                 "thread 0 waits at __syncthreads");
    expect_fault([] { RUN(barrier_or_warp, 1, THREADS, 0, 0); }, "barrier_or_warp", "__syncwarp");
}

/* ------------------------------------------------------------------ warps */

/* y [5, 64] */
static __global__ void shuffles(int *y) {
    int me = (int)threadIdx.x;
    y[me] = __shfl_xor_sync(0xffffffffu, me, 5);
    y[64 + me] = __shfl_down_sync(0xffffffffu, me, 3u);
    y[128 + me] = __shfl_up_sync(0xffffffffu, me, 3u);
    y[192 + me] = __shfl_sync(0xffffffffu, me, 9);
    y[256 + me] = __shfl_down_sync(0xffffffffu, me, 3u, 8);
}

static void shuffles_move_values(void **) {
    int *y = managed<int>(5 * 64);
    RUN(shuffles, 1, 64, 0, y);
    synchronize();
    for (int i = 0; i < 64; i++) {
        int lane = i % 32, first = i - lane;
        assert_int_equal(y[i], first + (lane ^ 5));
        assert_int_equal(y[64 + i], lane + 3 < 32 ? i + 3 : i);
        assert_int_equal(y[128 + i], lane >= 3 ? i - 3 : i);
        assert_int_equal(y[192 + i], first + 9);
        assert_int_equal(y[256 + i], lane % 8 + 3 < 8 ? i + 3 : i);
    }
}

/* Halves of a warp go separate ways; doubles are 8 bytes. */
static __global__ void halves(double *y) {
    double x = 1.0 / (1 + threadIdx.x);
    if (threadIdx.x < 16)
        for (int flip = 8; flip; flip /= 2) x += __shfl_xor_sync(0x0000ffffu, x, flip);
    else
        for (int flip = 1; flip < 16; flip *= 2) x = fmax(x, __shfl_xor_sync(0xffff0000u, x, flip));
    y[threadIdx.x] = x;
}

static void parts_of_a_warp(void **) {
    double *y = managed<double>(32), sum = 0;
    RUN(halves, 1, 32, 0, y);
    synchronize();
    for (int i = 0; i < 16; i++) sum += 1.0 / (1 + i);
    for (int i = 0; i < 16; i++) assert_true(fabs(y[i] - sum) < 1e-14);
    for (int i = 16; i < 32; i++) assert_true(y[i] == 1.0 / 17);
}

/* y [4] */
static __global__ void votes(unsigned *y) {
    unsigned odd = __ballot_sync(0xffffffffu, threadIdx.x % 2);
    int some = __any_sync(0xffffffffu, threadIdx.x == 31), all = __all_sync(0xffffffffu, threadIdx.x < 31),
        none = __any_sync(0xffffffffu, threadIdx.x > 31);
    if (threadIdx.x) return;
    y[0] = odd;
    y[1] = some, y[2] = all, y[3] = none;
}

static void votes_are_counted(void **) {
    unsigned *y = managed<unsigned>(4);
    RUN(votes, 1, 32, 0, y);
    synchronize();
    assert_int_equal(y[0], 0xaaaaaaaau);
    assert_int_equal(y[1], 1);
    assert_int_equal(y[2], 0);
    assert_int_equal(y[3], 0);
}

/* Each lane takes what another of its warp put down. */
static int wrong_in_warp(bool wait) {
    static const auto kernel = [](bool waits, int *y) {
        __shared__ int x[32];
        x[threadIdx.x] = (int)threadIdx.x;
        if (waits) __syncwarp();
        y[blockIdx.x * 32 + threadIdx.x] = x[threadIdx.x ^ 1];
    };
    int *y = managed<int>(BLOCKS * 32), wrong = 0;
    launch_on(NULL, "kernel", +kernel, BLOCKS, 32, 0, wait, y);
    synchronize();
    for (int i = 0; i < BLOCKS * 32; i++) wrong += y[i] != (i % 32 ^ 1);
    return wrong;
}

static void missing_warp_barrier_shows(void **) {
    assert_int_equal(wrong_in_warp(true), 0);
    assert_int_not_equal(wrong_in_warp(false), 0);
}

static __global__ void reads_ended(int) {
    if (threadIdx.x == 3) return;
    __shfl_sync(0xffffffffu, threadIdx.x, 3);
}

static __global__ void not_in_mask(int) {
    __shfl_sync(0xffu, threadIdx.x, 0);
}

static __global__ void absent_lane(int) {
    if (threadIdx.x == 3)
        __syncthreads();
    else
        __shfl_sync(0xffffffffu, threadIdx.x, 0);
}

static void missing_lanes_are_a_fault(void **) {
    expect_fault([] { RUN(reads_ended, 1, 32, 0, 0); }, "reads_ended",
                 "reads from lane 3, which takes no part");
    expect_fault([] { RUN(not_in_mask, 1, 32, 0, 0); }, "not_in_mask", "lanes that never come");
    expect_fault([] { RUN(absent_lane, 1, 32, 0, 0); }, "absent_lane",
                 "while thread 3 waits at __syncthreads");
}

/* ------------------------------------------------------------------ shared memory */

/* seen [BLOCKS]: whether a block found anything but NaN in shared memory. */
static __global__ void fresh(int *seen) {
    __shared__ float x[32];
    float *y = (float *)emulated_dynamic_shared();
    if (threadIdx.x == 0) {
        seen[blockIdx.x] = 0;
        for (int i = 0; i < 32; i++) seen[blockIdx.x] += !isnan(x[i]) + !isnan(y[i]);
    }
    __syncthreads();
    x[threadIdx.x] = y[threadIdx.x] = 1;
}

static void shared_memory_holds_nan(void **) {
    int *seen = managed<int>(BLOCKS);
    for (int again = 0; again < 2; again++) {
        RUN(fresh, BLOCKS, 32, 32 * sizeof(float), seen);
        synchronize();
        for (int i = 0; i < BLOCKS; i++) assert_int_equal(seen[i], 0);
    }
}

static __global__ void beyond(int at) {
    ((char *)emulated_dynamic_shared())[at] = 1;
}

static void beyond_dynamic_shared_memory(void **) {
    RUN(beyond, 1, 1, 100, 99);
    synchronize();
    expect_fault([] { RUN(beyond, 1, 1, 100, 100); }, "beyond", "behind its 100 bytes");
#ifndef __SANITIZE_ADDRESS__
    expect_fault([] { RUN(beyond, 1, 1, 100, 112); }, "beyond", "an illegal memory access");
#endif
}

/* ------------------------------------------------------------------ limits */

static __global__ void nothing(int) {}
static __global__ void much_shared(int) {}

static void limits(void **) {
    assert_int_equal(RUN(nothing, 1, 1024, 48 << 10, 0), cudaSuccess);
    assert_int_equal(RUN(nothing, dim3(1, 65535, 1), 1, 0, 0), cudaSuccess);
    assert_int_equal(RUN(nothing, 1, 1025, 0, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(RUN(nothing, 1, dim3(32, 33), 0, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(RUN(nothing, dim3(1, 65536, 1), 1, 0, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(RUN(nothing, dim3(1, 1, 65536), 1, 0, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(RUN(nothing, 0, 1, 0, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(RUN(nothing, 1, 1, (48 << 10) + 1, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(
        cudaFuncSetAttribute(much_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10),
        cudaSuccess);
    assert_int_equal(RUN(much_shared, 1, 1, 100 << 10, 0), cudaSuccess);
    assert_int_equal(RUN(much_shared, 1, 1, (100 << 10) + 1, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(RUN(nothing, 1, 1, 100 << 10, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue); /* such errors go away */
    synchronize();
}

/* ------------------------------------------------------------------ atomics */

static __global__ void add_up(int *count, unsigned *most, unsigned long long *big) {
    atomicAdd(count, 2);
    atomicMax(most, threadIdx.x);
    atomicAdd(big, 1ull << 40);
}

static void atomics(void **) {
    int *count = managed<int>(1);
    unsigned *most = managed<unsigned>(1);
    unsigned long long *big = managed<unsigned long long>(1);
    *count = 0, *most = 0, *big = 0;
    RUN(add_up, BLOCKS, THREADS, 0, count, most, big);
    synchronize();
    assert_int_equal(*count, 2 * BLOCKS * THREADS);
    assert_int_equal(*most, THREADS - 1);
    assert_true(*big == (unsigned long long)BLOCKS * THREADS << 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_runs_once),
        cmocka_unit_test(blocks_have_no_order),
        cmocka_unit_test(barrier),
        cmocka_unit_test(missing_barrier_shows),
        cmocka_unit_test(threads_that_ended_are_not_waited_for),
        cmocka_unit_test(different_places_are_a_fault),
        cmocka_unit_test(shuffles_move_values),
        cmocka_unit_test(parts_of_a_warp),
        cmocka_unit_test(votes_are_counted),
        cmocka_unit_test(missing_warp_barrier_shows),
        cmocka_unit_test(missing_lanes_are_a_fault),
        cmocka_unit_test(shared_memory_holds_nan),
        cmocka_unit_test(beyond_dynamic_shared_memory),
        cmocka_unit_test(limits),
        cmocka_unit_test(atomics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
