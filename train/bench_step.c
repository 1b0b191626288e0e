/* Whole training steps and their floor: the matrix products of a step, recorded as it runs and timed one by
 * one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/base/arena.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/edges.h"
#include "model/params.h"
#include "train/bench.h"
#include "train/optimizer.h"
#include "train/state.h"

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

struct bench {
    const struct config *config;
    struct ops recording; /* the backend's table with the recorder in it */
    struct mesh mesh;     /* of this process alone */
    struct table table;
    struct shards shards;
    struct arena memory; /* what `state` points into */
    struct state state;
    struct model *model;
    struct optimizer optimizer;
    int32_t *rows; /* [batch, length + 1] */
    int active;
};

static int step(struct bench *b) {
    const struct train_config *t = &b->config->train;
    struct loss_options options = {.active = b->active,
                                   .token_weight = 1.0 / ((double)t->batch_size * t->sequence_length)};
    struct loss_sums sums;
    long micro = t->micro_batch_size ? t->micro_batch_size : t->batch_size;
    b->recording.zero(b->table.total, b->state.gradient);
    for (long at = 0; at < t->batch_size; at += micro)
        model_train(b->model, b->rows + at * (t->sequence_length + 1), micro, t->sequence_length, &options,
                    &sums);
    double norm;
    TRY(optimizer_norm(&b->optimizer, b->active, &norm));
    optimizer_begin(&b->optimizer, b->active);
    for (int i = 0; i < b->shards.buckets; i++)
        optimizer_update(&b->optimizer, i, b->active, 1e-4, optimizer_clip(&b->optimizer, norm));
    return GDN_OK;
}

static int prepare(struct bench *b, enum form form) {
    const struct config *c = b->config;
    TRY(params_create(&c->model, NULL, &b->table));
    TRY(shards_create(&b->table, 1, 0, c->mesh.bucket, &b->shards));
    TRY(state_reserve(&b->memory, &b->table, true, b->shards.moments, &b->state));
    size_t tokens = (size_t)c->train.batch_size * (size_t)(c->train.sequence_length + 1);
    b->rows = malloc(tokens * sizeof *b->rows);
    if (!b->rows) return gdn_fail(GDN_INTERNAL, "out of memory for a batch of %zu tokens", tokens);
    for (int i = 0; i < b->table.rows; i++)
        params_init(&c->model, &b->table.row[i], c->train.seed, b->state.weight + b->table.row[i].offset);
    for (size_t i = 0; i < tokens; i++)
        b->rows[i] = (int32_t)(random_bits(c->train.seed, 1, i) % (uint64_t)c->model.vocab_size);
    long micro = c->train.micro_batch_size ? c->train.micro_batch_size : c->train.batch_size;
    TRY(model_create(&c->model, &b->table, &b->state, &b->recording, NULL, micro, c->train.sequence_length,
                     true, &b->model));
    model_set_form(b->model, form);
    b->optimizer = (struct optimizer){.ops = &b->recording,
                                      .model = &c->model,
                                      .train = &c->train,
                                      .table = &b->table,
                                      .shards = &b->shards,
                                      .mesh = &b->mesh,
                                      .state = &b->state};
    TRY(optimizer_reserve(&b->optimizer));
    b->active = c->model.delta.num_distances;
    return GDN_OK;
}

static void release(struct bench *b) {
    model_free(b->model);
    arena_free(&b->memory);
    free(b->rows);
    optimizer_free(&b->optimizer);
    shards_free(&b->shards);
    params_free(&b->table);
}

static void print_step(const struct config *c, const struct bench *b, const struct ceilings *ceilings,
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

static int measure(struct bench *b, const struct ops *ops, const struct ceilings *ceilings, enum form form,
                   double limit, bool json) {
    static double seconds[MOST_SAMPLES];
    TRY(prepare(b, form));
    TRY(step(b)); /* pages and libraries' caches */
    memset(&record, 0, sizeof record);
    record.ops = ops;
    b->recording.gemm = record_gemm;
    TRY(step(b));
    b->recording.gemm = ops->gemm;
    double spent = 0;
    int count = 0;
    for (; count < MOST_SAMPLES && (count < 3 || spent < limit); count++) {
        double start = bench_now();
        TRY(step(b));
        spent += seconds[count] = bench_now() - start;
    }
    double flops, floor = time_products(ops, &flops);
    if (floor < 0) return gdn_fail(GDN_INTERNAL, "out of memory for timing single matrix products");
    print_step(b->config, b, ceilings, bench_median(seconds, count), floor, flops, json);
    return GDN_OK;
}

int bench_steps(const struct ops *ops, const struct config *config, const struct ceilings *ceilings,
                enum form form, double seconds, bool json) {
    struct bench b = {.config = config,
                      .recording = *ops,
                      .mesh = mesh_alone(),
                      .memory.name = "the benchmark's training state"};
    int status = measure(&b, ops, ceilings, form, seconds, json);
    release(&b);
    return status;
}
