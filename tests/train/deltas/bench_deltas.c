/* The randomised factors of differences that a run has stored whole (delta_store.ratio 1), beside the best
 * that any factors of the same rank can be, LAPACK's full SVD: bench_deltas RUN [MOST]. A line a connection
 * and rank: both errors, their ratio, milliseconds, bytes beside the plain tensor's. Fails where an error is
 * more than MOST times the least. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/backends/backends.h"
#include "train/deltas/list.h"
#include "kernels/base/status.h"
#include "kernels/lowrank/lowrank.h"

static const double ratios[] = {0.05, 0.1, 0.25, 0.5};
enum { RATIOS = sizeof ratios / sizeof *ratios };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static real *take(struct arena *arena, long count) {
    return arena_take(arena, (size_t)count * sizeof(real));
}

struct bench {
    struct arena arena;
    struct lowrank w;
    real *x, *scaled;
    struct factors f;
    double worst; /* ratio of errors so far */
};

static void lay_out(struct bench *b, const struct ops *ops, long T, long D) {
    long side = T < D ? T : D;
    lowrank_lay_out(&b->w, &b->arena, ops, T, D, side, true);
    b->x = take(&b->arena, T * D);
    b->scaled = take(&b->arena, T * side);
    b->f = (struct factors){
        .u = take(&b->arena, T * side), .sigma = take(&b->arena, side), .vt = take(&b->arena, side * D)};
}

static int compare(struct bench *b, const struct delta_entry *entry, long T, long D, double ratio) {
    long rank = lowrank_of_ratio(T, D, ratio);
    double began = now();
    TRY(lowrank_factor(&b->w, T, D, b->x, rank, 1, &b->f));
    double took = now() - began, error = b->f.error;
    began = now();
    TRY(lowrank_full(&b->w, T, D, b->x, rank, NULL, &b->f));
    double full = now() - began, times = b->f.error > 0 ? error / b->f.error : 1;
    if (times > b->worst) b->worst = times;
    printf("| %lld | %d | %d | %ld x %ld | %ld | %.4f | %.4f | %.4f | %.1f | %.1f | %.1f%% |\n",
           (long long)entry->step, entry->layer, entry->distance, T, D, rank, error, b->f.error, times, took,
           full, 100.0 * (double)(rank * (T + D + 1)) / (double)(T * D));
    return 0;
}

static int measure(struct bench *b, const struct ops *ops, const struct delta_entry *entry) {
    struct delta_record record;
    TRY(delta_record_read(entry, &record));
    long T = record.factors.T, D = record.factors.D;
    b->arena = (struct arena){.name = "a stored difference"};
    lay_out(b, ops, T, D);
    int status = arena_reserve(&b->arena);
    if (!status) {
        lay_out(b, ops, T, D);
        lowrank_expand(ops, &record.factors, b->scaled, b->x);
        for (int i = 0; i < RATIOS && !status; i++) status = compare(b, entry, T, D, ratios[i]);
    }
    arena_free(&b->arena);
    delta_record_free(&record);
    return status;
}

static int run(const char *path, double max) {
    struct delta_list list;
    struct bench b = {.worst = 0};
    TRY(delta_list_open(path, &list));
    printf("| step | layer | distance | T x D | rank | error | least | ratio | ms | full SVD, ms | of the "
           "plain bytes |\n"
           "| ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    int status = 0;
    for (int i = 0; i < list.count && !status; i++) status = measure(&b, ops_find("cpu"), &list.entry[i]);
    delta_list_free(&list);
    if (!status && b.worst > max)
        status = gdn_fail(GDN_INTERNAL, "an error is %.4f times the least, more than %.4f", b.worst, max);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench_deltas RUN [MOST]\n");
        return GDN_INPUT;
    }
    int status = run(argv[1], argc > 2 ? atof(argv[2]) : 1e30);
    if (status) fprintf(stderr, "%s\n", gdn_failure());
    return status;
}
