/* Whole training steps and their floor: the matrix products of a step, recorded as it runs and timed one by
 * one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/base/status.h"
#include "train/bench.h"
#include "train/bench_model.h"

double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *seconds, int count) {
    qsort(seconds, (size_t)count, sizeof *seconds, ascending);
    return seconds[count / 2];
}

/* ------------------------------------------------------------------------------ recorded matrix products */

struct product {
    char ta, tb;
    long m, n, k, lda, ldb, ldc;
    bool add; /* beta is not 0 */
    long count;
};

enum { MOST_PRODUCTS = 512, MOST_SAMPLES = 2000 };

/* The recorder stands in the table's slot, which has no room for a context of its own. */
static struct {
    const struct ops *ops;
    struct product product[MOST_PRODUCTS];
    int products;
    double seconds; /* inside matrix products */
} record;

static void record_gemm(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                        const real *b, long ldb, real beta, real *c, long ldc) {
    struct product p = {
        .ta = ta, .tb = tb, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc, .add = beta != 0};
    int i = 0;
    while (i < record.products) {
        struct product *q = &record.product[i];
        if (q->ta == ta && q->tb == tb && q->m == m && q->n == n && q->k == k && q->lda == lda &&
            q->ldb == ldb && q->ldc == ldc && q->add == p.add)
            break;
        i++;
    }
    if (i == record.products && i < MOST_PRODUCTS) record.product[record.products++] = p;
    if (i < MOST_PRODUCTS) record.product[i].count++;
    double start = bench_now();
    record.ops->gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    record.seconds += bench_now() - start;
}

/* Seconds of one recorded product alone: the middle of several, on buffers of its own. */
static double time_product(const struct ops *ops, const struct product *p, real *buffer[3]) {
    double seconds[64], spent = 0;
    int count = 0;
    for (; count < 64 && (count < 5 || spent < 0.05); count++) {
        double start = bench_now();
        ops->gemm(p->ta, p->tb, p->m, p->n, p->k, 1, buffer[0], p->lda, buffer[1], p->ldb, p->add, buffer[2],
                  p->ldc);
        spent += seconds[count] = bench_now() - start;
    }
    return bench_median(seconds, count);
}

/* Seconds of all of a step's products, and their arithmetic. Negative without memory. */
static double time_products(const struct ops *ops, double *flops) {
    double total = 0;
    *flops = 0;
    for (int i = 0; i < record.products; i++) {
        const struct product *p = &record.product[i];
        size_t sizes[3] = {(size_t)((p->ta == 'N' ? p->m : p->k) * p->lda),
                           (size_t)((p->tb == 'N' ? p->k : p->n) * p->ldb), (size_t)(p->m * p->ldc)};
        real *buffer[3];
        for (int b = 0; b < 3; b++) {
            buffer[b] = malloc(sizes[b] * sizeof(real));
            for (size_t j = 0; buffer[b] && j < sizes[b]; j++)
                buffer[b][j] = (real)(0.001 * (double)(j % 17));
        }
        bool have = buffer[0] && buffer[1] && buffer[2];
        if (have) total += (double)p->count * time_product(ops, p, buffer);
        *flops += 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->count;
        for (int b = 0; b < 3; b++) free(buffer[b]);
        if (!have) return -1;
    }
    return total;
}

/* ---------------------------------------------------------------------------------------------- steps */

static void print_step(const struct config *c, const struct bench_model *b, const struct ceilings *ceilings,
                       double seconds, double floor, double flops, bool json) {
    double tokens = (double)c->train.batch_size * c->train.sequence_length;
    double all = model_flops_per_token(&c->model, c->train.sequence_length, b->active) * tokens;
    if (json) {
        printf("{\"what\":\"step\",\"layers\":%d,\"width\":%d,\"heads\":%d,\"ffn\":%d,\"context\":%d,"
               "\"batch\":%d,"
               "\"vocab\":%d,\"connections\":%d,\"parameters\":%ld,\"threads\":%d,\"tokens_per_second\":%.1f,"
               "\"step_seconds\":%.6f,\"gemm_seconds\":%.6f,\"gemm_flops\":%.6g,\"peak_flops\":%.6g}\n",
               c->model.num_layers, c->model.hidden_size, c->model.num_heads, c->model.intermediate_size,
               c->train.sequence_length, c->train.batch_size, c->model.vocab_size,
               c->model.delta.num_distances, b->table.total, ops_threads(), tokens / seconds, seconds, floor,
               flops, ceilings->gemm);
        return;
    }
    printf("\nTraining step: %d layers, width %d, context %d, batch %d, %d distances, %.2fM parameters\n",
           c->model.num_layers, c->model.hidden_size, c->train.sequence_length, c->train.batch_size,
           c->model.delta.num_distances, (double)b->table.total / 1e6);
    printf("  whole step              %9.3f ms   %.0f tokens/s   %.0f GFLOP/s, %.0f%% of peak\n",
           1e3 * seconds, tokens / seconds, all / seconds / 1e9, 100 * all / seconds / ceilings->gemm);
    printf("  its matrix products     %9.3f ms   alone, one by one: the floor (%.0f GFLOP/s)\n", 1e3 * floor,
           flops / floor / 1e9);
    printf("  step / floor            %9.3f\n", seconds / floor);
}

static int measure(struct bench_model *b, const struct ops *ops, const struct ceilings *ceilings,
                   double limit, bool json) {
    static double seconds[MOST_SAMPLES];
    TRY(bench_model_step(b)); /* pages and libraries' caches */
    memset(&record, 0, sizeof record);
    record.ops = ops;
    b->ops.gemm = record_gemm;
    TRY(bench_model_step(b));
    b->ops.gemm = ops->gemm;
    double spent = 0;
    int count = 0;
    for (; count < MOST_SAMPLES && (count < 3 || spent < limit); count++) {
        double start = bench_now();
        TRY(bench_model_step(b));
        spent += seconds[count] = bench_now() - start;
    }
    double flops, floor = time_products(ops, &flops);
    if (floor < 0) return gdn_fail(GDN_INTERNAL, "out of memory for timing single matrix products");
    print_step(b->config, b, ceilings, bench_median(seconds, count), floor, flops, json);
    return GDN_OK;
}

int bench_steps(const struct ops *ops, const struct config *config, const struct ceilings *ceilings,
                enum form form, double seconds, bool json) {
    struct bench_model b;
    TRY(bench_model_create(ops, config, NULL, &b));
    model_set_form(b.model, form);
    int status = measure(&b, ops, ceilings, seconds, json);
    bench_model_free(&b);
    return status;
}
