#include "train/bench/products.h"

#include <string.h>

#include "kernels/base/arena.h"
#include "kernels/base/status.h"
#include "train/bench/bench.h"
#include "train/bench/time.h"

enum { NO_WEIGHT_ID = -1 };

struct product {
    int weight_id; /* NO_WEIGHT_ID: of the operation gemm, else of the operation linear the first weight of
                      this shape */
    char ta, tb;
    long m, n, k, lda, ldb, ldc;
    bool add; /* beta is not 0 */
    long count;
};

enum { MAX_PRODUCTS = 512 };

/* The recorder stands in the table's operations, which have no room for a context of their own. */
static struct {
    const struct ops *ops;
    struct product product[MAX_PRODUCTS];
    int products;
} record;

static bool same(const struct product *p, const struct product *q) {
    return (p->weight_id == NO_WEIGHT_ID) == (q->weight_id == NO_WEIGHT_ID) && p->ta == q->ta &&
           p->tb == q->tb && p->m == q->m && p->n == q->n && p->k == q->k && p->lda == q->lda &&
           p->ldb == q->ldb && p->ldc == q->ldc && p->add == q->add;
}

static void note(const struct product *p) {
    int i = 0;
    while (i < record.products && !same(p, &record.product[i])) i++;
    if (i == record.products && i < MAX_PRODUCTS) record.product[record.products++] = *p;
    if (i < MAX_PRODUCTS) record.product[i].count++;
}

static void record_gemm(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                        const real *b, long ldb, real beta, real *c, long ldc) {
    note(&(struct product){NO_WEIGHT_ID, ta, tb, m, n, k, lda, ldb, ldc, beta != 0, 0});
    record.ops->gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void record_linear(int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                          long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    note(&(struct product){weight_id, ta, tb, m, n, k, lda, ldb, ldc, beta != 0, 0});
    record.ops->linear(weight_id, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void products_record(const struct ops *ops, struct ops *table) {
    memset(&record, 0, sizeof record);
    record.ops = ops;
    table->gemm = record_gemm;
    table->linear = record_linear;
}

void products_stop(struct ops *table) {
    table->gemm = record.ops->gemm;
    table->linear = record.ops->linear;
}

/* What bench_time calls. */
struct call {
    const struct product *product;
    real *a, *b, *c;
};

static void run(const void *context) {
    const struct call *x = context;
    const struct product *p = x->product;
    if (p->weight_id == NO_WEIGHT_ID)
        record.ops->gemm(p->ta, p->tb, p->m, p->n, p->k, 1, x->a, p->lda, x->b, p->ldb, p->add, x->c, p->ldc);
    else
        record.ops->linear(p->weight_id, p->ta, p->tb, p->m, p->n, p->k, 1, x->a, p->lda, x->b, p->ldb,
                           p->add, x->c, p->ldc);
}

/* Called once to count and once to hand out. */
static void lay_out(struct call *call, struct arena *arena) {
    const struct product *p = call->product;
    call->a = bench_take(arena, (p->ta == 'N' ? p->m : p->k) * p->lda);
    call->b = bench_take(arena, (p->tb == 'N' ? p->k : p->n) * p->ldb);
    call->c = bench_take(arena, p->m * p->ldc);
}

int products_time(double enough, double *seconds, double *flops) {
    *seconds = *flops = 0;
    for (int i = 0; i < record.products; i++) {
        const struct product *p = &record.product[i];
        struct arena arena = {.name = "timing a matrix product", .device = record.ops->device};
        struct call call = {.product = p};
        lay_out(&call, &arena);
        TRY(arena_reserve(&arena));
        lay_out(&call, &arena);
        *seconds += (double)p->count * bench_time(record.ops->device, run, &call, enough).seconds;
        *flops += 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->count;
        arena_free(&arena);
    }
    return GDN_OK;
}
