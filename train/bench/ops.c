/* The table of operations: the model's matrix products, and each operation that is to be timed
 * (kernels/operations.h), at the shapes that a model gives it, against the machine's ceilings. */
#include <stdio.h>

#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "train/bench/bench.h"
#include "train/bench/made_up.h"
#include "train/bench/time.h"

/* What all rows share. */
struct measuring {
    const struct ops *ops;
    const struct ceilings *ceilings;
    double enough; /* bench_seconds.operation */
    bool json;
};

static void print_row(const struct measuring *t, const char *name, struct call_time time, double flops,
                      double elements) {
    const bool queued = !t->ops->device->host;
    double rate = flops > 0 ? flops : elements * sizeof(real);
    rate /= time.seconds;
    double share = rate / (flops > 0 ? t->ceilings->gemm : t->ceilings->copy);
    const char *unit = flops > 0 ? "GFLOP/s" : "GB/s";
    if (t->json) {
        printf("{\"what\":\"operation\",\"name\":\"%s\",\"seconds\":%.3e,\"rate\":%.6g,\"unit\":\"%s\","
               "\"share\":%.4f",
               name, time.seconds, rate / 1e9, unit, share);
        if (queued) printf(",\"queue_seconds\":%.3e", time.queued);
        printf("}\n");
        return;
    }
    printf("  %-32s %10.1f us %9.1f %-7s %5.0f%%", name, 1e6 * time.seconds, rate / 1e9, unit, 100 * share);
    if (queued) printf("   queued in %6.1f us", 1e6 * time.queued);
    printf("\n");
}

/* ------------------------------------------------------------------------------- the model's products */

struct product {
    const char *name;
    int weight_id; /* below 0: of the operation gemm, else of linear */
    char ta, tb;
    long m, n, k;
};

struct product_call {
    const struct ops *ops;
    const struct product *product;
    real *a, *b, *c;
};

/* The gradient of a weight is added. */
static void call_product(const void *context) {
    const struct product_call *x = context;
    const struct product *p = x->product;
    long lda = p->ta == 'N' ? p->k : p->m, ldb = p->tb == 'N' ? p->n : p->k;
    real beta = p->ta == 'T';
    if (p->weight_id < 0)
        x->ops->gemm(p->ta, p->tb, p->m, p->n, p->k, 1, x->a, lda, x->b, ldb, beta, x->c, p->n);
    else
        x->ops->linear(p->weight_id, p->ta, p->tb, p->m, p->n, p->k, 1, x->a, lda, x->b, ldb, beta, x->c,
                       p->n);
}

static void lay_out(struct product_call *x, struct arena *arena) {
    const struct product *p = x->product;
    x->a = bench_take(arena, p->m * p->k);
    x->b = bench_take(arena, p->n * p->k);
    x->c = bench_take(arena, p->m * p->n);
}

static int time_product(const struct measuring *t, const struct product *p) {
    struct arena arena = {.name = "the benchmark's buffers", .device = t->ops->device};
    struct product_call x = {.ops = t->ops, .product = p};
    lay_out(&x, &arena);
    TRY(arena_reserve(&arena));
    lay_out(&x, &arena);
    print_row(t, p->name, bench_time(t->ops->device, call_product, &x, t->enough),
              2.0 * (double)p->m * (double)p->n * (double)p->k, 0);
    arena_free(&arena);
    return GDN_OK;
}

static int time_trunk_products(const struct measuring *t, const struct sizes *z) {
    long T = z->B * z->S, D = z->D, F = z->F, wide = (z->H + 2 * z->K) * z->hd;
    const struct product products[] = {
        {"gemm qkv", 0, 'N', 'T', T, wide, D},
        {"gemm gate_up", 1, 'N', 'T', T, 2 * F, D},
        {"gemm gate_up, input's gradient", 1, 'N', 'N', T, D, 2 * F},
        {"gemm gate_up, weight's gradient", 1, 'T', 'N', 2 * F, D, T},
        {"gemm down", 2, 'N', 'T', T, D, F},
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) TRY(time_product(t, &products[i]));
    return GDN_OK;
}

/* ------------------------------------------------------------------------------- the list's operations */

static int time_operation(const struct measuring *t, const struct operation *o, const struct sizes *sizes) {
    struct made_up m;
    int status = made_up_prepare(&m, t->ops, o, sizes);
    if (!status)
        print_row(t, o->timed, bench_time(t->ops->device, made_up_call, &m, t->enough),
                  m.flops * (1 + o->again), m.elements);
    made_up_free(&m);
    return status;
}

static int time_operations(const struct measuring *t, bool delta, const struct sizes *sizes) {
    for (int i = 0; i < operations_count; i++)
        if (operations[i].timed && operations[i].delta == delta)
            TRY(time_operation(t, &operations[i], sizes));
    return GDN_OK;
}

static struct sizes sizes_of(const struct config *config) {
    const struct model_config *m = &config->model;
    const struct train_config *t = &config->train;
    return (struct sizes){.B = t->micro_batch_size ? t->micro_batch_size : t->batch_size,
                          .S = t->sequence_length,
                          .D = m->hidden_size,
                          .F = m->intermediate_size,
                          .V = m->vocab_size,
                          .H = m->num_heads,
                          .K = m->num_kv_heads,
                          .hd = head_width(m),
                          .G = m->delta.gate_hidden,
                          .n = delta_most_into(&m->delta),
                          .Hd = m->delta.hidden,
                          .a = m->delta.gate_hidden,
                          .heads = m->num_heads};
}

int bench_operations(const struct ops *ops, const struct config *config, const struct ceilings *ceilings,
                     const struct bench_seconds *spend, bool json) {
    const struct measuring m = {ops, ceilings, spend->operation, json};
    const struct sizes z = sizes_of(config);
    if (!json)
        printf("\nOperations at T = %ld tokens, D = %ld, F = %ld (%% of the peak above; more than 100%% of "
               "copying: in cache)\n",
               z.B * z.S, z.D, z.F);
    TRY(time_trunk_products(&m, &z));
    TRY(time_operations(&m, false, &z));
    if (z.n) {
        TRY(time_product(
            &m, &(struct product){"gemm delta_proj, all slots", -1, 'N', 'T', z.B * z.S, z.n * z.Hd, z.D}));
        TRY(time_operations(&m, true, &z));
    }
    return ops->device->status();
}
