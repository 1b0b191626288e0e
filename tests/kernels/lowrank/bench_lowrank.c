/* Speed of the randomised factors beside LAPACK's full SVD, and what they lose: bench_lowrank [SECONDS a
 * measurement]. Matrices have singular values 1/i, about as fast as those of activations fall. The ceiling is
 * that of one product of the same shape as those with the sketch, in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/backends/backends.h"
#include "matrices.h"

#include "kernels/base/status.h"

static double limit = 1; /* seconds to repeat for; at least once */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct job {
    struct workplace *place;
    long T, D, rank;
    real *x, *q, *b;
    int status;
};

static void randomised(struct job *j) {
    j->status |= lowrank_factor(&j->place->w, j->T, j->D, j->x, j->rank, 1, &j->place->f);
}
static void full(struct job *j) {
    j->status |= lowrank_full(&j->place->w, j->T, j->D, j->x, j->rank, NULL, &j->place->f);
}
static void split(struct job *j) {
    lowrank_split(&j->place->w, j->T, j->D, j->x, j->rank, 1, j->q, j->b);
}
static void join(struct job *j) {
    lowrank_join(j->place->w.ops, j->T, j->D, j->rank, j->q, j->b, j->place->w.copy);
}
static void product(struct job *j) {
    j->place->w.ops->gemm('N', 'N', j->T, j->rank, j->D, 1, j->x, j->D, j->b, j->rank, 0, j->q, j->rank);
}

/* The least of as many times as fit: others use this machine too. */
static double seconds(void (*run)(struct job *), struct job *job) {
    double begin = now(), min = 1e30;
    do {
        double before = now();
        run(job);
        double took = now() - before;
        if (took < min) min = took;
    } while (now() - begin < limit);
    return min;
}

/* Multiplications and additions of lowrank_factor: products with x, and QR of [T, k] and [D, k] with their
 * bases. */
static double arithmetic(long T, long D, long rank) {
    double k = (double)rank + LOWRANK_OVERSAMPLE, t = (double)T, d = (double)D,
           passes = 2 * (LOWRANK_POWER + 1);
    return passes * 2 * t * d * k + (LOWRANK_POWER + 1) * 4 * (t + d) * k * k +
           2 * (t + d) * k * (double)rank;
}

static int measure(const struct ops *ops, long T, long D) {
    static const double ratios[] = {0.05, 0.1, 0.25};
    struct workplace place;
    real *x = make_matrix(spectrum_find("slow"), T, D, 1);
    set_up(&place, ops, T, D, lowrank_of_ratio(T, D, 0.25), true);
    struct job job = {
        &place, T, D, 0, x, calloc((size_t)(T * D), sizeof *x), calloc((size_t)(T * D), sizeof *x), 0};
    double whole = 0;
    for (int i = 0; i < 3; i++) {
        long rank = job.rank = lowrank_of_ratio(T, D, ratios[i]);
        if (i == 0) whole = seconds(full, &job);
        double took = seconds(randomised, &job), error = place.f.error, min = 0;
        min = min_error(spectrum_find("slow"), T, D, rank);
        double split_took = seconds(split, &job), join_took = seconds(join, &job);
        double ceiling = 2e-9 * (double)(T * D * rank) / seconds(product, &job);
        double rate = 1e-9 * arithmetic(T, D, rank) / took;
        printf("[%ld, %ld] rank %4ld: %8.2f ms, full SVD %8.1f ms (%5.1f times); error %.4f, %.4f of the "
               "least; %5.1f "
               "GFLOP/s of %5.1f (%.0f%%); split %.2f ms, join %.2f ms\n",
               T, D, rank, 1e3 * took, 1e3 * whole, whole / took, error, error / min, rate, ceiling,
               100 * rate / ceiling, 1e3 * split_took, 1e3 * join_took);
        fflush(stdout);
    }
    clean_up(&place);
    free(job.q), free(job.b), free(x);
    return job.status;
}

int main(int argc, char **argv) {
    static const struct shape sizes[] = {{1024, 256}, {4096, 512}, {4096, 1024}, {8192, 1024}};
    const struct ops *ops = ops_find("cpu");
    int status = ops ? 0 : 1;
    if (argc > 1) limit = atof(argv[1]);
    if (ops) printf("%s\n", ops_describe(ops));
    for (int i = 0; i < 4 && !status; i++) status = measure(ops, sizes[i].T, sizes[i].D);
    if (status) fprintf(stderr, "%s\n", gdn_failure());
    return status;
}
