/* Measures what recomputation saves and costs: training steps of one model with each value of
 * train.recompute in turn, so that other load on the machine affects all of them equally. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "train/bench/bench.h"
#include "train/bench/model.h"
#include "train/bench/time.h"
#include "train/plan/rank_plan.h"
#include "train/plan/recompute_auto.h"

enum { SETTINGS = 4, MAX_ROUNDS = 400 };

static const char *const names[SETTINGS] = {"none", "selective", "full", "auto"};

struct setting {
    struct config config; /* the bench's, with this train.recompute; shares its pointers */
    struct recompute *policy;
    struct memory memory; /* planned */
    struct bench_model bench;
    bool created;
    double seconds[MAX_ROUNDS];
};

struct comparison {
    struct pipeline pipeline;
    struct setting setting[SETTINGS];
    int64_t budget; /* bytes that `auto` may use */
};

static struct rank_work work_of(const struct comparison *c, const struct config *config) {
    const struct train_config *train = &config->train;
    long micro_batch = train->micro_batch_size ? train->micro_batch_size : train->batch_size;
    struct rank_work work = {
        .config = config, .pipeline = &c->pipeline, .share = train->batch_size, .micro_batch = micro_batch};
    for (int a = 0; a < axes_count(); a++) work.size[a] = 1;
    return work;
}

static int plan_memory(const struct rank_work *work, struct setting *s) {
    struct rank_plan plan;
    struct pass_costs passes;
    TRY(rank_plan_create(work, 0, 0, &plan));
    int status = rank_plan_costs(&plan, s->policy, &passes);
    if (!status) {
        status = rank_plan_memory(&plan, &passes, &s->memory);
        pass_costs_free(&passes);
    }
    rank_plan_free(&plan);
    return status;
}

/* Without train.memory `auto` may have what lies in the middle between keeping all and computing all
 * again. */
static void set_budget(struct comparison *c, const struct config *config) {
    c->budget = memory_given(config).bytes;
    if (!c->budget) c->budget = (memory_sum(&c->setting[0].memory) + memory_sum(&c->setting[2].memory)) / 2;
}

static int prepare(struct comparison *c, int i, const struct ops *ops, const struct config *config) {
    struct setting *s = &c->setting[i];
    int layers = config->model.num_layers;
    s->config = *config;
    s->config.train.recompute = i == 3 ? RECOMPUTE_AUTO : i == 2 ? RECOMPUTE_FULL : i;
    s->policy = calloc((size_t)layers, sizeof *s->policy);
    if (!s->policy) return gdn_fail(GDN_INTERNAL, "out of memory for %d layers", layers);
    struct rank_work work = work_of(c, &s->config);
    recompute_fixed(&s->config.train, layers, s->policy);
    if (i == 3) {
        double ratio;
        set_budget(c, config);
        TRY(recompute_auto(&work, 0, c->budget, s->policy, &ratio));
    }
    TRY(plan_memory(&work, s));
    TRY(bench_model_create(ops, &s->config, s->policy, &s->bench));
    s->created = true;
    return bench_model_step(&s->bench); /* pages and libraries' caches */
}

static int64_t kept(const struct setting *s) {
    return s->memory.bytes[MEMORY_ACTIVATIONS] + s->memory.bytes[MEMORY_SOURCES];
}

static void print(struct comparison *c, int rounds, bool json) {
    double mebi = 1048576, first = 0;
    if (!json)
        printf("\nRecomputation: %d layers, width %d, context %d, micro-batch %ld, up to %d connections a layer; %d rounds\n"
               "  %-10s %12s %10s %10s %10s %12s %10s  %s\n",
               c->setting[0].config.model.num_layers, c->setting[0].config.model.hidden_size,
               c->setting[0].config.train.sequence_length, c->setting[0].bench.micro_batch,
               delta_most_into(&c->setting[0].config.model.delta), rounds, "recompute", "activations", "of none",
               "workspace", "total", "step", "of none", "computes again");
    for (int i = 0; i < SETTINGS; i++) {
        struct setting *s = &c->setting[i];
        struct model_memory held;
        char text[160];
        double seconds = bench_median(s->seconds, rounds);
        model_memory(s->bench.model, &held);
        recompute_text(s->policy, s->config.model.num_layers, text, sizeof text);
        if (!i) first = seconds;
        if (json)
            printf("{\"what\":\"recompute\",\"setting\":\"%s\",\"activations\":%ld,\"sources\":%ld,"
                   "\"workspace\":%ld,\"planned\":%lld,\"step_seconds\":%.6f,\"budget\":%lld,"
                   "\"device\":\"%s\",\"precision\":\"%s\"}\n",
                   names[i], held.activations, held.sources, held.workspace,
                   (long long)memory_sum(&s->memory), seconds, i == 3 ? (long long)c->budget : 0LL,
                   s->bench.ops.name, precision_word[s->bench.ops.precision]);
        else
            printf("  %-10s %8.1f MiB %9.1f%% %6.1f MiB %6.1f MiB %9.2f ms %9.3f  %s\n", names[i],
                   (double)(held.activations + held.sources) / mebi,
                   100.0 * (double)kept(s) / (double)kept(&c->setting[0]), (double)held.workspace / mebi,
                   (double)memory_sum(&s->memory) / mebi, 1e3 * seconds, seconds / first, text);
    }
    if (!json)
        printf(
            "  Activations are what is kept for the backward pass, outputs of layers included; the total is "
            "the plan's.\n  auto may use %.1f MiB in total.\n",
            (double)c->budget / mebi);
}

static int compare(struct comparison *c, const struct ops *ops, const struct config *config, double limit,
                   bool json) {
    for (int i = 0; i < SETTINGS; i++) TRY(prepare(c, i, ops, config));
    double began = bench_now();
    int rounds = 0;
    for (; rounds < MAX_ROUNDS && (rounds < 3 || bench_now() - began < limit); rounds++)
        for (int i = 0; i < SETTINGS; i++) {
            double start = bench_now();
            TRY(bench_model_step(&c->setting[i].bench));
            c->setting[i].seconds[rounds] = bench_now() - start;
        }
    print(c, rounds, json);
    return GDN_OK;
}

int bench_recompute(const struct ops *ops, const struct config *config, const struct bench_seconds *spend,
                    bool json) {
    struct comparison *c = calloc(1, sizeof *c);
    if (!c) return gdn_fail(GDN_INTERNAL, "out of memory for a benchmark");
    const struct train_config *train = &config->train;
    long micro_batch = train->micro_batch_size ? train->micro_batch_size : train->batch_size;
    const struct partition_place alone = {.copies = 1, .batch_parts = 1};
    int status = pipeline_create(config, &alone, (int)(train->batch_size / micro_batch), true, &c->pipeline);
    if (!status) {
        status = compare(c, ops, config, spend->step, json);
        for (int i = 0; i < SETTINGS; i++) {
            if (c->setting[i].created) bench_model_free(&c->setting[i].bench);
            free(c->setting[i].policy);
        }
        pipeline_free(&c->pipeline);
    }
    free(c);
    return status;
}
