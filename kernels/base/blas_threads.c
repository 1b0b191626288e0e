#include "kernels/base/blas_threads.h"

#include <omp.h>
#include <stdbool.h>
#include <stddef.h>

/* Only OpenBLAS has these, and only the BLAS found at run time tells whether they are there. The second is
 * what it calls itself before a fork; asked for one thread, it keeps the others waiting. */
void openblas_set_num_threads(int threads) __attribute__((weak));
int blas_thread_shutdown_(void) __attribute__((weak));

__attribute__((constructor)) void blas_one_thread(void) {
    static bool done; /* asked for a number of threads once more, it would start them again */
    if (done || !openblas_set_num_threads) return;
    done = true;
    int threads = omp_get_max_threads(); /* an OpenBLAS built on OpenMP sets this too */
    openblas_set_num_threads(1);
    omp_set_num_threads(threads);
    if (blas_thread_shutdown_) blas_thread_shutdown_();
}
