/* The ceilings that operations and steps are held against, and the line about the machine. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/base/status.h"
#include "kernels/backends/backends.h"
#include "train/bench/bench.h"
#include "train/bench/nominal.h"
#include "train/bench/time.h"

enum { PATTERN = 1 << 16 };

/* Reproducible mantissas without order: what a GPU needs for a product depends on the bits that change in
 * it. */
static void fill(const struct device *device, real *x, long count) {
    static real pattern[PATTERN];
    for (uint32_t i = 0; i < PATTERN; i++)
        pattern[i] = (real)(0.01 + 0.03 * (double)(i * 2654435761u) / 4294967296.0);
    for (long at = 0; at < count; at += PATTERN)
        device->upload(x + at, pattern, (size_t)(count - at < PATTERN ? count - at : PATTERN) * sizeof(real));
}

real *bench_take(struct arena *arena, long count) {
    real *x = arena_take(arena, (size_t)count * sizeof(real));
    if (x) fill(arena->device, x, count);
    return x;
}

/* Sizes that make a device busy and pass its caches by far, but leave an emulated one in reach: numbers of
 * that mean nothing anyhow. */
struct sizes {
    long min, step, max; /* of square products */
    long half;           /* elements copied: on the host 96 MiB of float32, on a GPU 512 MiB */
};

static bool is_emulated(const struct ops *ops) {
    return !strcmp(ops->device->name, "emulated");
}

static struct sizes sizes_for(const struct ops *ops) {
    if (ops->device->host) return (struct sizes){512, 512, 1536, 24L << 20};
    if (is_emulated(ops)) return (struct sizes){64, 64, 128, 1L << 18};
    return (struct sizes){2048, 2048, 8192, 128L << 20};
}

struct square {
    const struct ops *ops;
    long n;
    real *a, *b, *c; /* [n, n] each */
};

static void multiply(const void *context) {
    const struct square *s = context;
    s->ops->linear(0, 'N', 'T', s->n, s->n, s->n, 1, s->a, s->n, s->b, s->n, 0, s->c, s->n);
}

static void copy(const void *context) {
    const struct square *s = context;
    s->ops->copy(s->n, s->a, s->b);
}

/* `memory` is enough for the largest of all. */
static void measure(const struct ops *ops, real *memory, const struct bench_seconds *spend,
                    struct ceilings *out) {
    const struct sizes sizes = sizes_for(ops);
    for (long n = sizes.min; n <= sizes.max; n += sizes.step) {
        struct square s = {ops, n, memory, memory + n * n, memory + 2 * n * n};
        fill(ops->device, memory, 3 * n * n);
        double seconds = bench_time(ops->device, multiply, &s, 3 * spend->operation).best;
        out->gemm = fmax(out->gemm, 2.0 * (double)n * (double)n * (double)n / seconds);
    }
    struct square halves = {ops, sizes.half, memory, memory + sizes.half, NULL};
    fill(ops->device, memory, 2 * sizes.half);
    out->copy = 2.0 * (double)sizes.half * sizeof(real) /
                bench_time(ops->device, copy, &halves, spend->operation).best;
}

int bench_ceilings(const struct ops *ops, const struct bench_seconds *spend, struct ceilings *out) {
    const struct sizes sizes = sizes_for(ops);
    const char *text = ops->device->describe();
    struct arena arena = {.name = "measuring the device", .device = ops->device};
    *out = (struct ceilings){
        .arithmetic = !ops->device->host                 ? nominal_flops(text, ops->precision)
                      : ops->precision == PRECISION_FP32 ? ops_peak()
                                                         : 0, /* of bf16's units not known */
        .memory = ops->device->host ? 0 : nominal_copy(text),
    };
    long squares = 3 * sizes.max * sizes.max, count = squares > 2 * sizes.half ? squares : 2 * sizes.half;
    arena_take(&arena, (size_t)count * sizeof(real));
    TRY(arena_reserve(&arena));
    measure(ops, arena_take(&arena, (size_t)count * sizeof(real)), spend, out);
    arena_free(&arena);
    return ops->device->status();
}

static const char *const no_speed = "emulated: a stand-in for tests; times say nothing about a GPU";

/* A number or null. */
static void print_rate(const char *key, double rate) {
    if (rate > 0)
        printf(",\"%s\":%.6g", key, rate);
    else
        printf(",\"%s\":null", key);
}

static void print_json(const struct ops *ops, const struct ceilings *c) {
    const char *text = ops->device->describe(), *driver = strstr(text, ", driver ");
    int name = driver ? (int)(driver - text) : (int)strlen(text);
    printf("{\"what\":\"machine\",\"device\":\"%s\",\"precision\":\"%s\"", ops->name,
           precision_word[ops->precision]);
    if (!ops->device->host) printf(",\"card\":\"%.*s\"", name, text);
    if (driver) printf(",\"driver\":\"%s\"", driver + strlen(", driver "));
    print_rate("gemm_flops", c->gemm);
    print_rate("copy_bytes", c->copy);
    print_rate(ops->device->host ? "measured_peak_flops" : "nominal_flops", c->arithmetic);
    if (!ops->device->host) print_rate("nominal_bytes", c->memory);
    if (is_emulated(ops)) printf(",\"note\":\"%s\"", no_speed);
    printf("}\n");
}

void bench_print_machine(const struct ops *ops, const struct ceilings *c, bool json) {
    if (json) {
        print_json(ops, c);
        return;
    }
    if (ops->device->host) {
        printf("%s\nmatrix products reach %.1f", ops_describe(ops), c->gemm / 1e9);
        if (c->arithmetic > 0)
            printf(" of %.1f GFLOP/s, %.0f%% of the processor's measured peak", c->arithmetic / 1e9,
                   100 * c->gemm / c->arithmetic);
        else
            printf(" GFLOP/s in %s", precision_word[ops->precision]);
        printf("; copying %.1f GB/s\n", c->copy / 1e9);
        return;
    }
    printf("%s: %s; %s\nmatrix products reach %.1f GFLOP/s", ops->name, ops->device->describe(),
           precision_word[ops->precision], c->gemm / 1e9);
    if (c->arithmetic > 0)
        printf(", %.0f%% of the GPU's nominal %.0f", 100 * c->gemm / c->arithmetic, c->arithmetic / 1e9);
    printf("; copying %.1f GB/s", c->copy / 1e9);
    if (c->memory > 0) printf(", %.0f%% of its nominal %.0f", 100 * c->copy / c->memory, c->memory / 1e9);
    if (c->arithmetic <= 0) printf("; nominal peaks of this GPU are not known here");
    printf("\n");
    if (is_emulated(ops)) printf("%s\n", no_speed);
}
