/* on_processor COMMAND…: runs a test as on another processor, which the environment names: GDN_ISA
 * (kernels/ops.h) or OPENBLAS_CORETYPE. Where this processor or this BLAS cannot, says why and leaves with
 * 77, a skipped test. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "kernels/lowrank/lapack.h"

char *openblas_get_corename(void) __attribute__((weak));

enum { N = 64, WORK = 64 * N };

static void skip(int signal) {
    (void)signal;
    static const char text[] = "processor: it lacks instructions of these kernels\n";
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0) _exit(1);
    _exit(77);
}

/* A product, by the CPU backend, and a factorisation, by the BLAS, which end by SIGILL or not. */
static void compute(const struct ops *ops) {
    static real a[N * N], b[N * N], triangle[N * N], tau[N], work[WORK];
    for (int i = 0; i < N * N; i++) a[i] = (real)((i * 37 % 101) / 101.0);
    ops->gemm('N', 'T', N, N, N, 1, a, N, a, N, 0, b, N);
    long wanted = lapack_basis_work(N, N);
    lapack_basis(N, N, b, triangle, tau, work, wanted < WORK ? wanted : WORK);
}

int main(int argc, char **argv) {
    const char *core = getenv("OPENBLAS_CORETYPE");
    if (argc < 2) return 2;
    if (core && !openblas_get_corename) {
        printf("processor: OPENBLAS_CORETYPE is %s, but the BLAS here is not OpenBLAS\n", core);
        return 77;
    }
    if (core && strcasecmp(core, openblas_get_corename())) {
        printf("processor: this OpenBLAS has no kernels for %s and takes those for %s\n", core,
               openblas_get_corename());
        return 77;
    }
    const struct ops *ops = ops_find("cpu");
    if (!ops) {
        printf("processor: %s\n", gdn_failure());
        return 77;
    }
    signal(SIGILL, skip);
    compute(ops);
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 1;
}
