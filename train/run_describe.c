/* The head of a run's output. */
#include "train/run.h"

#include "model/edges.h"

#include <stdlib.h>
#include <string.h>

/* 1234567 as "1,234,567"; `out` holds at least 32 bytes. */
static const char *grouped(long value, char *out) {
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%ld", value), at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

static void describe_model(const struct run *run, FILE *out) {
    const struct model_config *model = &run->config.model;
    char count[32];
    long connected = 0;
    for (int i = 0; i < run->table.rows; i++) {
        const struct row *row = &run->table.row[i];
        if (row->distance || row->select) connected += row->count;
    }
    fprintf(out, "model     %d layers, hidden %d, %d heads, vocabulary %d: %s parameters", model->num_layers,
            model->hidden_size, model->num_heads, model->vocab_size, grouped(run->table.total, count));
    struct edges edges;
    if (connected && !edges_create(model, &edges)) {
        fprintf(out, ", %s of them for %d delta connections", grouped(connected, count), edges.count);
        edges_free(&edges);
    }
    fputc('\n', out);
}

static void describe_data(const struct run *run, FILE *out) {
    const struct data_config *data = &run->config.data;
    char count[32], tokens[32];
    long length = run->config.train.sequence_length, samples = sampler_epoch(run->data);
    fprintf(out, "data      %s%s: %s sequences of %ld tokens a pass; the run reads %s tokens\n",
            data->train[0] ? data->train : data->sources[0].path, data->train[0] ? "" : " and others",
            grouped(samples, count), length,
            grouped(run->config.train.steps * run->config.train.batch_size * length, tokens));
    if (run->validation)
        fprintf(out, "          validation on %s sequences\n", grouped(run->evaluation.sequences, count));
}

void run_describe(const struct run *run, const char *directory, FILE *out) {
    const struct mesh *mesh = &run->mesh;
    describe_model(run, out);
    describe_data(run, out);
    fprintf(
        out,
        "mesh      data %d x tensor %d x pipeline %d; batches of %d sequences, %ld at a time on each rank\n",
        mesh->data, mesh->tensor, mesh->pipeline, run->config.train.batch_size, run->micro);
    fprintf(out, "backend   %s\n", ops_describe(run->ops));
    fprintf(out, "run       %s, %s step %lld of %ld\n", directory, run->resumed ? "going on after" : "from",
            (long long)run->step, run->config.train.steps);
    fflush(out);
}
