/* The head of a run's output. */
#include "train/run/run.h"

#include "kernels/backends/backends.h"
#include "train/config/batch.h"
#include "train/config/no_effect.h"
#include "train/plan/rule_counts.h"
#include "train/plan/text.h"
#include "train/run/backend.h"
#include "train/run/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void describe_model(const struct run *run, FILE *out) {
    const struct model_config *model = &run->config.model;
    struct rule_counts rules;
    char count[32];
    fprintf(out, "model     %d layers, hidden %d, %d heads, vocabulary %d: %s parameters", model->num_layers,
            model->hidden_size, model->num_heads, model->vocab_size,
            plan_grouped(run_parameters(run), count));
    if (rule_counts_of(model, &run->part.global, &rules)) rules.count = 0;
    rule_counts_print(&rules, out);
}

static void describe_data(const struct run *run, FILE *out) {
    const struct data_config *data = &run->config.data;
    char count[32], tokens[32], name[256];
    bool mixed = data->train.count == 0;
    long length = run->config.train.sequence_length, samples = sampler_epoch(run->data.sampler);
    const struct train_config *train = &run->config.train;
    const int64_t more = batch_tokens(train, run->position.step, train->steps);
    const int64_t reads = more < INT64_MAX - run->position.tokens ? run->position.tokens + more : INT64_MAX;
    fprintf(out, "data      %s%s: %s sequences of %ld tokens a pass; the run reads %s tokens\n",
            path_list_name(mixed ? &data->sources[0].path : &data->train, name, sizeof name),
            mixed ? " and others" : "", plan_grouped(samples, count), length, plan_grouped(reads, tokens));
    for (int i = 0; i < run->data.validation.sets; i++)
        fprintf(out, "          %s%s on %s sequences\n", run->data.validation.set[i].name,
                strcmp(run->data.validation.set[i].name, VALIDATION_NAME) ? ": validation" : "",
                plan_grouped(validation_sequences(&run->data.validation, i), count));
}

static void describe_pruning(const struct run *run, FILE *out) {
    const struct prune_config *prune = &run->config.train.prune;
    const struct importance *row = pruning_importance(prune);
    char on[64] = "", count[32];
    int left = 0;
    if (row->left_out) snprintf(on, sizeof on, " on %s sequences", plan_grouped(validation_sequences(&run->data.few, 0), count));
    for (int e = 0; prune->by && e < run->pruning.edges->count; e++)
        left += run->pruning.edges->edge[e].measured && run->pruning.has[e];
    if (prune->by)
        fprintf(out, "pruning   by %s%s, before steps %ld to %ld, every %ld; %d of %d connections are left, and %ld are to stay%s\n",
                row->words, on, prune->begin, prune->end, prune->interval, left, run->pruning.connections,
                lround(prune->keep * run->pruning.connections), prune->regrow > 0 ? "; some that have gone come back" : "");
}

static void describe_mesh(const struct run *run, FILE *out) {
    const struct mesh *mesh = &run->mesh;
    char batches[256], axes[AXES_TEXT];
    batch_text(&run->config.train, batches, sizeof batches);
    fprintf(out, "mesh      %s; batches of %s, %ld at a time on each rank%s\n",
            axes_text(mesh->sizes.size, axes), batches, run->part.micro_batch,
            run->part.layout->wire == WIRE_BF16 ? "; activations travel in bf16" : "");
    if (mesh->axis[AXIS_PIPELINE].size > 1) {
        int ranks = run->part.layout->size[AXIS_PIPELINE], micro_batches = run->part.pipeline.micro_batches;
        fprintf(out, "stages    layers");
        for (int r = 0; r < ranks; r++) {
            for (int c = 0; c < run->part.layout->chunks; c++) {
                struct span span = run->part.layout->stage[layout_stage(run->part.layout, r, c)];
                fprintf(out, span.end - span.first > 1 ? " %d-%d" : " %d", span.first, span.end - 1);
            }
            fputs(r < ranks - 1 ? " |" : ";", out);
        }
        fprintf(out, " %d micro-batch%s%s\n", micro_batches, micro_batches == 1 ? "" : "es",
                run->part.layout->v ? ", in a V" : run->part.layout->chunks > 1 ? ", interleaved" : "");
    }
}

static void describe_saving(const struct run *run, FILE *out) {
    if (run->plan.foreground)
        fprintf(out, "saving    training waits for each checkpoint: %s\n", run->plan.foreground);
}

static void describe_memory(const struct run *run, const struct run_max_memory *max, FILE *out) {
    char text[400];
    double unit = 1048576;
    memory_text(&max->reserved, unit, text);
    fprintf(out, "memory    %.2f MiB", (double)memory_sum(&max->reserved) / unit);
    double available = (double)max->available / unit;
    if (max->available)
        fprintf(out, available < 100 ? " of the %.2f available" : " of the %.0f available", available);
    if (run->mesh.size > 1) fprintf(out, ", on the rank that needs most");
    fprintf(out, ": %s\n", text);
    recompute_text(run->plan.policy, run->config.model.num_layers, text, sizeof text);
    if (strcmp(text, "nothing") || run->plan.ratio > 0) fprintf(out, "recompute %s\n", text);
    if (run->plan.ratio > 0) {
        recompute_rule_text(run->plan.ratio, text, sizeof text);
        fprintf(out, "          %s\n", text);
    }
}

int run_describe(const struct run *run, const char *directory, FILE *out) {
    struct run_max_memory max;
    TRY(run_measure_memory(run, &max));
    if (out) {
        describe_model(run, out);
        groups_print(&run->config.train, &run->part.groups, out);
        describe_data(run, out);
        describe_mesh(run, out);
        describe_pruning(run, out);
        no_effect_print(&run->config, run->mesh.sizes.size, out);
        backend_note(run->ops, "note      ", out);
    }
    if (run->mesh.size > 1) ranks_describe(&run->mesh, out);
    if (!out) return 0;
    describe_memory(run, &max, out);
    describe_saving(run, out);
    fprintf(out, "backend   %s", ops_describe(run->ops));
    if (!run->ops->device->host || run->ops->precision != PRECISION_FP32)
        fprintf(out, "; %s", precision_word[run->ops->precision]);
    if (!run->ops->device->host && run->mesh.size > 1) fprintf(out, "; transport %s", run->mesh.transport);
    fputc('\n', out);
    fprintf(out, "run       %s, %s step %lld of %ld\n", directory,
            run->origin.resumed ? "going on after" : "from", (long long)run->position.step,
            run->config.train.steps);
    fflush(out);
    return 0;
}
