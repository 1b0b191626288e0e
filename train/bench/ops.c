/* The table of operations: each operation at the shapes that a model gives it, against the machine's
 * ceilings. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/bench/bench.h"
#include "train/bench/time.h"

/* Buffers and sizes that the operations below read. */
struct shapes {
    const struct ops *ops;
    long T, B, S, D, F, H, K, hd, V, n, Hd, G, wide;
    real *a, *b, *c, *d, *e, *f; /* [T, 3·largest row] each */
    real *w;                     /* [largest row, D] weights */
    real *row1, *row2, *row3;    /* [T·(n + H)] */
    int32_t *token;              /* [T] */
    const real *scale;           /* [n] on the host */
    double enough;               /* bench_seconds.operation */
};

struct operation {
    const char *name;
    void (*run)(const struct shapes *);
    double (*flops)(const struct shapes *);
    double (*elements)(const struct shapes *); /* read plus written */
};

#define RUN(name, call)                                                                                      \
    static void run_##name(const struct shapes *s) {                                                         \
        call;                                                                                                \
    }
#define COUNT(name, expression)                                                                              \
    static double count_##name(const struct shapes *s) {                                                     \
        return (double)(expression);                                                                         \
    }

RUN(qkv, s->ops->linear(0, 'N', 'T', s->T, s->wide, s->D, 1, s->a, s->D, s->w, s->D, 0, s->b, s->wide))
COUNT(qkv, 2 * s->T * s->wide * s->D)
RUN(gate_up, s->ops->linear(1, 'N', 'T', s->T, 2 * s->F, s->D, 1, s->a, s->D, s->w, s->D, 0, s->b, 2 * s->F))
COUNT(gate_up, 4 * s->T * s->F * s->D)
RUN(gate_up_in,
    s->ops->linear(1, 'N', 'N', s->T, s->D, 2 * s->F, 1, s->a, 2 * s->F, s->w, s->D, 0, s->b, s->D))
RUN(gate_up_weight,
    s->ops->linear(1, 'T', 'N', 2 * s->F, s->D, s->T, 1, s->a, 2 * s->F, s->b, s->D, 1, s->w, s->D))
RUN(down, s->ops->linear(2, 'N', 'T', s->T, s->D, s->F, 1, s->a, s->F, s->w, s->F, 0, s->b, s->D))
COUNT(down, 2 * s->T * s->F * s->D)
RUN(proj, s->ops->gemm('N', 'T', s->T, s->n * s->Hd, s->D, 1, s->a, s->D, s->w, s->D, 0, s->b, s->n * s->Hd))
COUNT(proj, 2 * s->T * s->n * s->Hd * s->D)
RUN(attention, s->ops->attention(s->B, s->S, s->H, s->K, s->hd, s->a, s->b, s->row1))
COUNT(attention, 2 * s->T * (s->S + 1) * s->D)
RUN(attention_back,
    s->ops->attention_back(s->B, s->S, s->H, s->K, s->hd, s->a, s->b, s->row1, s->c, s->d, s->row2))
COUNT(attention_back, 5 * s->T * (s->S + 1) * s->D)
RUN(rms_norm, s->ops->rms_norm(s->T, s->D, s->a, s->w, 1e-5, s->b, s->row1))
COUNT(rms_norm, 2 * s->T * s->D)
RUN(add_rms_norm, s->ops->add_rms_norm(s->T, s->D, s->a, s->b, s->w, 1e-5, s->c, s->d, s->row1))
COUNT(add_rms_norm, 4 * s->T * s->D)
RUN(rms_norm_back, s->ops->rms_norm_back(s->T, s->D, s->a, s->w, s->row1, s->b, s->c, s->w + s->D))
RUN(rope, s->ops->rope(s->T, s->S, 0, s->H + s->K, s->hd, s->e, s->f, 1, s->a, s->wide))
COUNT(rope, 2 * s->T * (s->H + s->K) * s->hd)
RUN(swiglu, s->ops->swiglu(s->T, s->F, s->a, s->b))
COUNT(swiglu, 3 * s->T * s->F)
RUN(swiglu_back, s->ops->swiglu_back(s->T, s->F, s->a, s->b, s->c, s->d))
COUNT(swiglu_back, 6 * s->T * s->F)
RUN(add_to, s->ops->add_to(s->T * s->D, s->a, s->b, s->c))
COUNT(add_to, 3 * s->T * s->D)
RUN(embed, s->ops->embed(s->T, s->D, s->token, 0, s->V, s->w, s->a))
COUNT(embed, 2 * s->T * s->D)
RUN(embed_back, s->ops->embed_back(s->T, s->D, s->token, 0, s->V, s->a, s->w))
RUN(cross_entropy, s->ops->cross_entropy(s->T, s->V, s->a, s->V, s->token, 1e-6, s->row1))
COUNT(cross_entropy, 2 * s->T * s->V)
RUN(adamw, s->ops->adamw(s->T * s->D, s->a, s->b, s->c, s->d, 1, 1e-4, 0.9, 0.95, 1e-8, 0.1, 0.5, 0.5))
COUNT(adamw, 7 * s->T * s->D)
RUN(add_squares, s->ops->add_squares(0, s->T * s->D, 1024, s->a, (double *)s->f))
COUNT(add_squares, s->T * s->D)
RUN(delta_mean, s->ops->delta_mean(s->T, s->D, s->a, s->b, s->c, s->d))
RUN(delta_inverse_norm, s->ops->delta_inverse_norm(s->T, s->D, s->a, s->b, 1e-3, s->row1))
RUN(delta_spread, s->ops->delta_spread(s->T, s->D, s->a, s->row1, s->b, s->c, s->d, s->e))
COUNT(delta_spread, 7 * s->T * s->D)
RUN(bias_silu, s->ops->bias_silu(s->T, s->n * s->G, s->w, s->a, s->b))
COUNT(bias_silu, 3 * s->T * s->n * s->G)
RUN(bottleneck_gate,
    s->ops->bottleneck_gate(s->T, s->n, s->Hd, s->w, s->a, NULL, s->scale, s->row1, s->b, s->c))
COUNT(bottleneck_gate, 4 * s->T * s->n * s->Hd)
RUN(bottleneck_gate_back, s->ops->bottleneck_gate_back(s->T, s->n, s->Hd, s->a, NULL, s->scale, s->row1, NULL,
                                                       0, s->b, s->c, s->row2, NULL))
COUNT(bottleneck_gate_back, 5 * s->T * s->n * s->Hd)
RUN(gated_delta, s->ops->gated_delta(s->T, s->D, s->D, s->a, s->b, s->c, s->D, NULL, 1, s->row1, 1, true,
                                     s->d, s->D, NULL))
COUNT(gated_delta, 5 * s->T * s->D)
RUN(gated_delta_back, s->ops->gated_delta_back(s->T, s->D, s->D, s->a, s->b, s->c, s->D, NULL, 1, s->row1, 1,
                                               s->d, s->D, NULL, 0, s->row2, 1, s->e, s->f, NULL))
COUNT(gated_delta_back, 6 * s->T * s->D)

static const struct operation trunk[] = {
    {"gemm qkv", run_qkv, count_qkv, NULL},
    {"gemm gate_up", run_gate_up, count_gate_up, NULL},
    {"gemm gate_up, input's gradient", run_gate_up_in, count_gate_up, NULL},
    {"gemm gate_up, weight's gradient", run_gate_up_weight, count_gate_up, NULL},
    {"gemm down", run_down, count_down, NULL},
    {"attention", run_attention, count_attention, NULL},
    {"attention_back", run_attention_back, count_attention_back, NULL},
    {"rms_norm", run_rms_norm, NULL, count_rms_norm},
    {"add_rms_norm", run_add_rms_norm, NULL, count_add_rms_norm},
    {"rms_norm_back", run_rms_norm_back, NULL, count_add_rms_norm},
    {"rope", run_rope, NULL, count_rope},
    {"swiglu", run_swiglu, NULL, count_swiglu},
    {"swiglu_back", run_swiglu_back, NULL, count_swiglu_back},
    {"add_to", run_add_to, NULL, count_add_to},
    {"embed", run_embed, NULL, count_embed},
    {"embed_back", run_embed_back, NULL, count_embed},
    {"cross_entropy", run_cross_entropy, NULL, count_cross_entropy},
    {"adamw", run_adamw, NULL, count_adamw},
    {"add_squares", run_add_squares, NULL, count_add_squares},
};

static const struct operation connections[] = {
    {"gemm delta_proj, all slots", run_proj, count_proj, NULL},
    {"delta_mean", run_delta_mean, NULL, count_add_rms_norm},
    {"delta_inverse_norm", run_delta_inverse_norm, NULL, count_embed},
    {"delta_spread", run_delta_spread, NULL, count_delta_spread},
    {"bias_silu", run_bias_silu, NULL, count_bias_silu},
    {"bottleneck_gate", run_bottleneck_gate, NULL, count_bottleneck_gate},
    {"bottleneck_gate_back", run_bottleneck_gate_back, NULL, count_bottleneck_gate_back},
    {"gated_delta (full)", run_gated_delta, NULL, count_gated_delta},
    {"gated_delta_back (full)", run_gated_delta_back, NULL, count_gated_delta_back},
};

/* What bench_time calls. */
struct call {
    const struct operation *operation;
    const struct shapes *shapes;
};

static void run(const void *context) {
    const struct call *c = context;
    c->operation->run(c->shapes);
}

static void print_operation(const struct operation *o, const struct shapes *s, const struct ceilings *c,
                            bool json) {
    const bool queued = !s->ops->device->host;
    struct call_time time = bench_time(s->ops->device, run, &(struct call){o, s}, s->enough);
    double rate = o->flops ? o->flops(s) : o->elements(s) * sizeof(real);
    rate /= time.seconds;
    double share = rate / (o->flops ? c->gemm : c->copy);
    const char *unit = o->flops ? "GFLOP/s" : "GB/s";
    if (json) {
        printf("{\"what\":\"operation\",\"name\":\"%s\",\"seconds\":%.3e,\"rate\":%.6g,\"unit\":\"%s\","
               "\"share\":%.4f",
               o->name, time.seconds, rate / 1e9, unit, share);
        if (queued) printf(",\"queue_seconds\":%.3e", time.queued);
        printf("}\n");
        return;
    }
    printf("  %-32s %10.1f us %9.1f %-7s %5.0f%%", o->name, 1e6 * time.seconds, rate / 1e9, unit,
           100 * share);
    if (queued) printf("   queued in %6.1f us", 1e6 * time.queued);
    printf("\n");
}

static void print_operations(const struct operation *o, int count, const struct shapes *s,
                             const struct ceilings *c, bool json) {
    for (int i = 0; i < count; i++) print_operation(&o[i], s, c, json);
}

static void lay_out(struct shapes *s, struct arena *arena) {
    long row = s->D * 3 > 2 * s->F ? s->D * 3 : 2 * s->F;
    if (row < s->V) row = s->V;
    if (row < s->n * s->Hd) row = s->n * s->Hd;
    if (row < s->n * s->G) row = s->n * s->G;
    real **buffers[] = {&s->a, &s->b, &s->c, &s->d, &s->e, &s->f};
    for (int i = 0; i < 6; i++) *buffers[i] = bench_take(arena, s->T * row);
    s->w = bench_take(arena, row * s->D);
    real **rows[] = {&s->row1, &s->row2, &s->row3};
    for (int i = 0; i < 3; i++) *rows[i] = bench_take(arena, s->T * (s->n + s->H + 1));
    s->token = arena_take(arena, (size_t)s->T * sizeof *s->token);
}

static struct shapes shapes_of(const struct ops *ops, const struct config *config) {
    const struct model_config *m = &config->model;
    const struct train_config *t = &config->train;
    struct shapes s = {.ops = ops,
                       .B = t->micro_batch_size ? t->micro_batch_size : t->batch_size,
                       .S = t->sequence_length,
                       .D = m->hidden_size,
                       .F = m->intermediate_size,
                       .H = m->num_heads,
                       .K = m->num_kv_heads,
                       .hd = m->hidden_size / m->num_heads,
                       .V = m->vocab_size,
                       .n = m->delta.num_distances,
                       .Hd = m->delta.hidden,
                       .G = m->delta.gate_hidden};
    s.T = s.B * s.S;
    s.wide = (s.H + 2 * s.K) * s.hd;
    return s;
}

/* Scattered tokens, and factors of the connections, which stay on the host. */
static int fill_lists(struct shapes *s) {
    static real scale[OPS_CONNECTIONS];
    int32_t *token = malloc((size_t)s->T * sizeof *token);
    if (!token) return gdn_fail(GDN_INTERNAL, "out of memory for %ld tokens", s->T);
    for (long t = 0; t < s->T; t++) token[t] = (int32_t)(t * 7 % s->V);
    s->ops->device->upload(s->token, token, (size_t)s->T * sizeof *token);
    free(token);
    for (int i = 0; i < OPS_CONNECTIONS; i++) scale[i] = (real)0.5;
    s->scale = scale;
    return GDN_OK;
}

int bench_operations(const struct ops *ops, const struct config *config, const struct ceilings *ceilings,
                     const struct bench_seconds *spend, bool json) {
    struct shapes s = shapes_of(ops, config);
    s.enough = spend->operation;
    struct arena arena = {.name = "the benchmark's buffers", .device = ops->device};
    lay_out(&s, &arena);
    TRY(arena_reserve(&arena));
    lay_out(&s, &arena);
    int status = fill_lists(&s);
    if (!status && !json)
        printf("\nOperations at T = %ld tokens, D = %ld, F = %ld (%% of the peak above; more than 100%% of "
               "copying: in cache)\n",
               s.T, s.D, s.F);
    if (!status) print_operations(trunk, sizeof trunk / sizeof *trunk, &s, ceilings, json);
    if (!status && s.n)
        print_operations(connections, sizeof connections / sizeof *connections, &s, ceilings, json);
    arena_free(&arena);
    return status ? status : ops->device->status();
}
