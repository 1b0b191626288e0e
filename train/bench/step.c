/* Whole training steps and their floor (bench/products.h). */
#include <stdio.h>

#include "kernels/base/status.h"
#include "kernels/backends/backends.h"
#include "model/rules/rules.h"
#include "model/table/flops.h"
#include "model/params/edges.h"
#include "train/bench/bench.h"
#include "train/bench/model.h"
#include "train/bench/products.h"
#include "train/bench/time.h"

enum { MAX_SAMPLES = 2000 };

/* What was measured of a step. */
struct measured {
    double seconds;
    double floor, floor_flops; /* of its matrix products alone */
    double flops;              /* of the model: model_flops_per_token */
};

static void print_step(const struct bench_model *b, const struct ceilings *ceilings, const struct measured *x,
                       bool json) {
    const struct config *c = b->config;
    double tokens = (double)c->train.batch_size * c->train.sequence_length, rate = x->flops / x->seconds;
    const bool host = b->ops.device->host;
    if (json) {
        printf("{\"what\":\"step\",\"layers\":%d,\"width\":%d,\"heads\":%d,\"ffn\":%d,\"context\":%d,"
               "\"batch\":%d,"
               "\"vocab\":%d,\"connections\":%d,\"parameters\":%ld,\"threads\":%d,\"tokens_per_second\":%.1f,"
               "\"step_seconds\":%.6f,\"gemm_seconds\":%.6f,\"gemm_flops\":%.6g,\"peak_flops\":%.6g,"
               "\"device\":\"%s\",\"precision\":\"%s\",\"model_flops\":%.6g,\"gemm_utilization\":%.4f,"
               "\"model_flops_utilization\":",
               c->model.num_layers, c->model.hidden_size, c->model.num_heads, c->model.intermediate_size,
               c->train.sequence_length, c->train.batch_size, c->model.vocab_size,
               delta_most_into(&c->model.delta), b->table.total, ops_threads(), tokens / x->seconds, x->seconds,
               x->floor, x->floor_flops, ceilings->gemm, b->ops.name, precision_word[b->ops.precision],
               x->flops, rate / ceilings->gemm);
        if (ceilings->arithmetic > 0)
            printf("%.4f}\n", rate / ceilings->arithmetic);
        else
            printf("null}\n");
        return;
    }
    printf("\nTraining step: %d layers, width %d, context %d, batch %d, up to %d connections a layer, %.2fM parameters\n",
           c->model.num_layers, c->model.hidden_size, c->train.sequence_length, c->train.batch_size,
           delta_most_into(&c->model.delta), (double)b->table.total / 1e6);
    printf("  whole step              %9.3f ms   %.0f tokens/s   %.0f GFLOP/s, %.0f%% of peak\n",
           1e3 * x->seconds, tokens / x->seconds, rate / 1e9, 100 * rate / ceilings->gemm);
    if (!host && ceilings->arithmetic > 0)
        printf("  model-flops utilisation %9.1f %%    of the GPU's nominal %.0f GFLOP/s in %s\n",
               100 * rate / ceilings->arithmetic, ceilings->arithmetic / 1e9,
               precision_word[b->ops.precision]);
    printf("  its matrix products     %9.3f ms   alone, one by one: the floor (%.0f GFLOP/s)\n",
           1e3 * x->floor, x->floor_flops / x->floor / 1e9);
    printf("  step / floor            %9.3f\n", x->seconds / x->floor);
}

static int measure(struct bench_model *b, const struct ops *ops, const struct bench_seconds *spend,
                   struct measured *out) {
    static double seconds[MAX_SAMPLES];
    const struct config *c = b->config;
    TRY(bench_model_step(b)); /* pages and libraries' caches */
    products_record(ops, &b->ops);
    TRY(bench_model_step(b));
    products_stop(&b->ops);
    double spent = 0;
    int count = 0;
    for (; count < MAX_SAMPLES && (count < 3 || spent < spend->step); count++) {
        double start = bench_now();
        TRY(bench_model_step(b));
        spent += seconds[count] = bench_now() - start;
    }
    out->seconds = bench_median(seconds, count);
    struct edges edges;
    TRY(edges_create(&c->model, &edges));
    out->flops = model_flops_per_token(&c->model, &edges, NULL, c->train.sequence_length) *
                 (double)c->train.batch_size * c->train.sequence_length;
    edges_free(&edges);
    return products_time(spend->operation / 2, &out->floor, &out->floor_flops);
}

int bench_steps(const struct ops *ops, const struct config *config, const struct ceilings *ceilings,
                enum projection_way projection, const struct bench_seconds *spend, bool json) {
    struct bench_model b;
    TRY(bench_model_create(ops, config, NULL, &b));
    model_set_projection(b.model, projection);
    struct measured measured;
    int status = measure(&b, ops, spend, &measured);
    if (!status) print_step(&b, ceilings, &measured, json);
    bench_model_free(&b);
    return status ? status : ops->device->status();
}
