/* Generation: one token at a time through the same layers, with keys and values kept. */
#include "kernels/base/status.h"
#include "model/pass/private.h"

#include <stdlib.h>

struct decoder {
    struct model *model; /* for one sequence of one token */
    struct cache cache;
    struct arena arena;
    long capacity;
    real *logits; /* [vocab] on the host */
};

static void lay_out(struct decoder *d, long width) {
    for (int l = 0; l < d->model->config.num_layers; l++) {
        size_t bytes = (size_t)(d->capacity * width) * sizeof(real);
        d->cache.keys[l] = arena_take(&d->arena, bytes);
        d->cache.values[l] = arena_take(&d->arena, bytes);
    }
}

int decoder_create(const struct model_config *config, const struct table *table, const struct state *state,
                   const struct ops *ops, long capacity, struct decoder **out) {
    struct decoder *d = calloc(1, sizeof *d);
    *out = NULL;
    if (!d) return gdn_fail(GDN_INTERNAL, "out of memory for a decoder");
    *d = (struct decoder){.capacity = capacity,
                          .arena = {.name = "the key/value cache", .device = ops->device}};
    int status = model_build(config, table, state, ops, NULL, 1, 1, capacity, false, &d->model);
    d->cache.keys = calloc((size_t)config->num_layers, sizeof *d->cache.keys);
    d->cache.values = calloc((size_t)config->num_layers, sizeof *d->cache.values);
    d->logits = calloc((size_t)config->vocab_size, sizeof *d->logits);
    if (!status && !(d->cache.keys && d->cache.values && d->logits))
        status = gdn_fail(GDN_INTERNAL, "out of memory for a decoder of %d layers", config->num_layers);
    if (!status) {
        long width = (long)config->hidden_size / config->num_heads * config->num_kv_heads;
        lay_out(d, width);
        status = arena_reserve(&d->arena);
        if (!status) lay_out(d, width);
    }
    if (status) {
        decoder_free(d);
        return status;
    }
    d->model->attention->cache = &d->cache;
    *out = d;
    return 0;
}

void decoder_free(struct decoder *d) {
    if (!d) return;
    model_free(d->model);
    arena_free(&d->arena);
    free(d->cache.keys);
    free(d->cache.values);
    free(d->logits);
    free(d);
}

void decoder_reset(struct decoder *d) {
    d->cache.length = 0;
}

const real *decoder_step(struct decoder *d, int32_t token, int active) {
    struct model *m = d->model;
    struct loss_options options = {.active = active};
    struct pass pass = {.batch = 1, .length = 1, .options = &options};
    begin_pass(m, &pass);
    m->ops->device->upload(m->trunk->input, &token, sizeof token);
    chunk_forward(m, m->passes->sums_of_pass);
    head_norm(m, node_rows(m, m->config.num_layers - 1));
    head_logits(m, 0, 1);
    d->cache.length++;
    m->ops->device->download(d->logits, m->trunk->logits, (size_t)m->config.vocab_size * sizeof *d->logits);
    return d->logits;
}
