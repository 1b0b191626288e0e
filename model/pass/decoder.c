/* Generation: one token at a time through the same layers, with what their mixers and rules keep of the
 * tokens so far. */
#include "kernels/base/status.h"
#include "model/pass/private.h"

#include <stdlib.h>

struct decoder {
    struct model *model; /* for one sequence of one token */
    const struct activation_set *set; /* its only one */
    struct arena arena;
    long capacity;
    real *logits; /* [vocab] on the host */
};

static void lay_out(struct decoder *d) {
    for (int l = 0; l < d->model->config.num_layers; l++) {
        const struct mixing *x = &d->set->layer[l].mixing;
        x->row->lay_out_decode(d->model, x, &d->arena, d->capacity);
    }
    rules_lay_out_decode(d->model, d->set, &d->arena, d->capacity);
}

static int create(struct decoder *d) {
    const struct model_config *config = &d->model->config;
    d->set = &d->model->passes->chunk[0].activation_set[0];
    bool there = rules_create_decode(d->model, d->set);
    for (int l = 0; l < config->num_layers; l++) {
        struct mixing *x = &d->set->layer[l].mixing;
        x->decode = calloc(1, x->row->decode_bytes);
        there = there && x->decode;
    }
    d->logits = calloc((size_t)config->vocab_size, sizeof *d->logits);
    if (!there || !d->logits)
        return gdn_fail(GDN_INTERNAL, "out of memory for a decoder of %d layers", config->num_layers);
    lay_out(d);
    TRY(arena_reserve(&d->arena));
    lay_out(d);
    decoder_reset(d);
    return 0;
}

int decoder_create(const struct model_config *config, const struct table *table, const struct state *state,
                   const struct ops *ops, long capacity, struct decoder **out) {
    struct decoder *d = calloc(1, sizeof *d);
    *out = NULL;
    if (!d) return gdn_fail(GDN_INTERNAL, "out of memory for a decoder");
    *d = (struct decoder){.capacity = capacity,
                          .arena = {.name = "the key/value cache", .device = ops->device}};
    int status = model_build(config, table, state, ops, NULL, 1, 1, capacity, false, &d->model);
    if (!status) status = create(d);
    if (status)
        decoder_free(d);
    else
        *out = d;
    return status;
}

void decoder_free(struct decoder *d) {
    if (!d) return;
    model_free(d->model);
    arena_free(&d->arena);
    free(d->logits);
    free(d);
}

void decoder_reset(struct decoder *d) {
    for (int l = 0; l < d->model->config.num_layers; l++)
        d->set->layer[l].mixing.row->reset(d->model, &d->set->layer[l].mixing);
    rules_reset(d->model, d->set);
}

const real *decoder_step(struct decoder *d, int32_t token, const struct edge_set *active) {
    struct model *m = d->model;
    struct loss_options options = {.active = active};
    struct pass pass = {.batch = 1, .length = 1, .options = &options};
    begin_pass(m, &pass);
    m->ops->device->upload(m->trunk->input, &token, sizeof token);
    chunk_forward(m, m->passes->sums_of_pass);
    head_norm(m, m->trunk->norm, node_rows(m, m->config.num_layers - 1));
    head_logits(m, 0, 1);
    m->ops->device->download(d->logits, m->trunk->logits, (size_t)m->config.vocab_size * sizeof *d->logits);
    return d->logits;
}
