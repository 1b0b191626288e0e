#include "train/bench/model.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/table/params.h"
#include "train/optimizer/groups.h"
#include "train/optimizer/update.h"

int bench_model_step(struct bench_model *b) {
    const struct train_config *t = &b->config->train;
    const double scale = b->loss_scale.scale;
    const double weight = scale / ((double)t->batch_size * t->sequence_length);
    struct loss_options options = {.target_weight = weight, .token_weight = weight};
    struct loss_sums sums;
    b->ops.zero(b->table.total, b->state.gradient);
    model_hold(b->model);
    for (long at = 0; at < t->batch_size; at += b->micro_batch)
        model_train(b->model, b->rows + at * (t->sequence_length + 1), b->micro_batch, t->sequence_length,
                    &options, &sums);
    model_release(b->model);
    TRY(model_status(b->model));
    double norm;
    TRY(optimizer_norm(&b->optimizer, NULL, &norm));
    if (!isfinite(norm) && loss_scale_lower(&b->loss_scale)) return GDN_OK; /* as training does: no update */
    const struct rates rates = {
        .lr = 1e-4, .decay = 1, .gscale = optimizer_clip(&b->optimizer, norm / scale) / scale};
    TRY(optimizer_begin(&b->optimizer, NULL, rates.gscale));
    for (int i = 0; i < b->shards.buckets; i++) optimizer_update(&b->optimizer, i, NULL, &rates);
    return b->ops.device->wait();
}

/* As in a run (train/run/start.c): drawn on the host, then copied to where they are trained. */
static int draw_weights(struct bench_model *b) {
    const struct config *c = b->config;
    const bool host = b->ops.device->host;
    struct state_memory drawn = {0};
    struct state on_host = b->state;
    int status = host ? GDN_OK : state_reserve(&drawn, NULL, 0, &b->table, STATE_WEIGHTS, NULL, &on_host);
    if (!status) params_init_all(&b->table, c->train.seed, on_host.weight);
    if (!status && !host) status = state_copy(&b->memory, &drawn);
    state_free(&drawn);
    return status;
}

static int create_state(struct bench_model *b) {
    const struct config *c = b->config;
    TRY(params_create(&c->model, NULL, &b->table));
    optimizer_treat(&c->train, &b->table);
    TRY(shards_create(&b->table, 1, 0, 1, c->mesh.bucket, &b->shards));
    TRY(state_reserve(&b->memory, b->ops.device, ops_weight_copy(&b->ops), &b->table, STATE_TRAINING,
                      &b->shards, &b->state));
    return draw_weights(b);
}

static int create_rows(struct bench_model *b) {
    const struct config *c = b->config;
    size_t tokens = (size_t)c->train.batch_size * (size_t)(c->train.sequence_length + 1);
    b->rows = malloc(tokens * sizeof *b->rows);
    if (!b->rows) return gdn_fail(GDN_INTERNAL, "out of memory for a batch of %zu tokens", tokens);
    for (size_t i = 0; i < tokens; i++)
        b->rows[i] = (int32_t)(random_bits(c->train.seed, 1, i) % (uint64_t)c->model.vocab_size);
    return GDN_OK;
}

static int create(struct bench_model *b, const struct recompute *recompute) {
    const struct config *c = b->config;
    const struct model_part part = {.layout = &b->layout,
                                    .tensor = &b->mesh.axis[AXIS_TENSOR],
                                    .recompute = recompute,
                                    .bf16_activations = c->train.activations == ACTIVATIONS_BF16};
    TRY(mesh_use(&b->mesh, &b->ops, MESH_AUTO, 0));
    TRY(create_state(b));
    TRY(create_rows(b));
    TRY(model_create(&c->model, &b->table, &b->state, &b->ops, &part, b->micro_batch,
                     c->train.sequence_length, true, &b->model));
    b->optimizer = (struct optimizer){.ops = &b->ops,
                                      .model = &c->model,
                                      .train = &c->train,
                                      .table = &b->table,
                                      .shards = &b->shards,
                                      .mesh = &b->mesh,
                                      .state = &b->state};
    return optimizer_reserve(&b->optimizer);
}

int bench_model_create(const struct ops *ops, const struct config *config, const struct recompute *recompute,
                       struct bench_model *out) {
    *out = (struct bench_model){
        .config = config,
        .ops = *ops,
        .layout = layout_full(),
        .mesh = mesh_alone(),
        .loss_scale = loss_scale_start(ops->precision),
        .micro_batch =
            config->train.micro_batch_size ? config->train.micro_batch_size : config->train.batch_size,
    };
    int status = create(out, recompute);
    if (status) bench_model_free(out);
    return status;
}

void bench_model_free(struct bench_model *b) {
    model_free(b->model);
    state_free(&b->memory);
    free(b->rows);
    optimizer_free(&b->optimizer);
    shards_free(&b->shards);
    params_free(&b->table);
    mesh_free(&b->mesh);
}
