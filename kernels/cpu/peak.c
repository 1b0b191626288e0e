/* The arithmetic peak of this machine, measured: multiply-adds between vector registers and nothing else, on
 * all threads. What the matrix products reach is told as a share of it. */
#include <omp.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"

enum { CHAINS = 12, ROUNDS = 1 << 22 }; /* enough sums in flight to hide the latency of a multiply-add */

/* Multiply-adds of one thread; the result is returned so that no compiler drops them. */
static real run(real start) {
    tile_vector sum[CHAINS], factor, term;
    for (int l = 0; l < TILE_LANES; l++) factor[l] = (real)0.999, term[l] = (real)0.001;
    for (int i = 0; i < CHAINS; i++) sum[i] = factor * start + (real)i;
    for (long round = 0; round < ROUNDS; round++)
        for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * factor + term;
    real total = 0;
    for (int i = 0; i < CHAINS; i++)
        for (int l = 0; l < TILE_LANES; l++) total += sum[i][l];
    return total;
}

double ISA_NAME(cpu_peak)(void) {
    double best = 0;
    for (int repeat = 0; repeat < 5; repeat++) {
        real total = 0;
        double start = omp_get_wtime();
#pragma omp parallel reduction(+ : total)
        total += run((real)omp_get_thread_num());
        double rate = 2.0 * ROUNDS * CHAINS * TILE_LANES * omp_get_max_threads() / (omp_get_wtime() - start);
        if (rate > best && total == total) best = rate;
    }
    return best;
}
