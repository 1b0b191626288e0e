/* Generation: one token at a time, or a few, through the same layers, with what their mixers and rules keep
 * of the tokens so far. */
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "model/pass/private.h"

#include <math.h>
#include <stdlib.h>

struct decoder {
    struct model *model;              /* for one sequence of `rows` tokens */
    const struct activation_set *set; /* its only one */
    struct arena arena;
    struct state state; /* the caller's, with a copy of the weights of its own where the caller has none */
    struct arena copy;
    long capacity, rows;
    long length;  /* tokens fed, without drafts */
    bool drafts;  /* some layers have some beyond these */
    real *logits; /* [rows, vocab] on the host */
    /* The pass in progress. */
    struct loss_options options;
    struct pass pass;
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
    d->logits = calloc((size_t)(d->rows * config->vocab_size), sizeof *d->logits);
    if (!there || !d->logits)
        return gdn_fail(GDN_INTERNAL, "out of memory for a decoder of %d layers", config->num_layers);
    lay_out(d);
    TRY(arena_reserve(&d->arena));
    lay_out(d);
    decoder_reset(d);
    return 0;
}

/* Training on the host has no copy of the weights, as it multiplies many rows by each. */
static int find_copy(struct decoder *d, const struct table *table, const struct ops *ops) {
    const size_t bytes = (size_t)(table->total * ops_weight_copy(ops));
    if (!bytes || d->state.copy) return 0;
    arena_take(&d->copy, bytes);
    TRY(arena_reserve(&d->copy));
    d->state.copy = arena_take(&d->copy, bytes);
    return 0;
}

int decoder_create(const struct model_config *config, const struct table *table, const struct state *state,
                   const struct ops *ops, long capacity, long rows, struct decoder **out) {
    struct decoder *d = calloc(1, sizeof *d);
    const struct ops *by_rows =
        ops_by_rows(ops); /* for single tokens, too: theirs are the bits that several have */
    *out = NULL;
    if (!d) return gdn_fail(GDN_INTERNAL, "out of memory for a decoder");
    if (by_rows) ops = by_rows;
    *d = (struct decoder){.capacity = capacity,
                          .rows = rows,
                          .state = *state,
                          .copy = {.name = "what products read of the weights", .device = ops->device},
                          .arena = {.name = "the key/value cache", .device = ops->device}};
    int status = find_copy(d, table, ops);
    if (!status)
        status = model_build(config, table, &d->state, ops, NULL, 1, rows, capacity, false, &d->model);
    if (!status) model_hold(d->model);
    if (!status) status = create(d);
    if (status)
        decoder_free(d);
    else
        *out = d;
    return status;
}

void decoder_free(struct decoder *d) {
    if (!d) return;
    if (d->model) model_release(d->model);
    model_free(d->model);
    arena_free(&d->copy);
    arena_free(&d->arena);
    free(d->logits);
    free(d);
}

void decoder_reset(struct decoder *d) {
    for (int l = 0; l < d->model->config.num_layers; l++)
        d->set->layer[l].mixing.row->reset(d->model, &d->set->layer[l].mixing);
    rules_reset(d->model, d->set);
    d->length = 0;
    d->drafts = false;
}

static void rewind_layers(struct decoder *d) {
    for (int l = 0; l < d->model->config.num_layers; l++) {
        const struct mixing *x = &d->set->layer[l].mixing;
        if (x->row->rewind) x->row->rewind(x, d->length);
    }
    d->drafts = false;
}

void decoder_take_back(struct decoder *d, long count) {
    d->length -= count;
    rewind_layers(d);
}

/* A pass of so many tokens begins, with their embedding. */
static void begin_tokens(struct decoder *d, const int32_t *token, long count, const struct edge_set *active) {
    struct model *m = d->model;
    d->options = (struct loss_options){.active = active};
    d->pass = (struct pass){.batch = 1, .length = count, .options = &d->options};
    begin_pass(m, &d->pass);
    m->ops->device->upload(m->trunk->input, token, (size_t)count * sizeof *token);
    rules_begin(m, m->passes->sums_of_pass);
    embed_forward(m);
}

/* The same of tokens that stay, in place of drafts. */
static void begin_feeding(struct decoder *d, const int32_t *token, long count,
                          const struct edge_set *active) {
    if (d->drafts) rewind_layers(d);
    begin_tokens(d, token, count, active);
    d->length += count;
}

/* From a node's output what a head says. */
static void read_head(struct decoder *d, struct tensor norm, int node) {
    struct model *m = d->model;
    head_norm(m, norm, node_rows(m, node));
    head_logits(m, 0, m->T);
    m->ops->device->download(d->logits, m->trunk->logits,
                             (size_t)(m->T * m->config.vocab_size) * sizeof *d->logits);
}

static void read_exit(struct decoder *d, int layer) {
    read_head(d, d->model->layer[layer].exit_norm, layer);
}

/* The probability of the likeliest token. */
static double confidence(const struct decoder *d) {
    const long vocab = d->model->config.vocab_size;
    double sum = 0;
    real most = d->logits[0];
    for (long v = 1; v < vocab; v++) most = d->logits[v] > most ? d->logits[v] : most;
    for (long v = 0; v < vocab; v++) sum += exp((double)(d->logits[v] - most));
    return 1 / sum;
}

/* Layers up to where the token leaves; their number. */
static int climb(struct decoder *d, const double *threshold) {
    struct model *m = d->model;
    const struct exit_config *exit = &m->config.exit;
    const int layers = m->config.num_layers;
    int done = 0;
    for (int e = 0; threshold && e < exit->num_layers; e++) {
        const int layer = exit->layers[e];
        if (threshold[e] > 1) continue;
        layers_forward(m, done, layer + 1, m->passes->sums_of_pass);
        done = layer + 1;
        read_exit(d, layer);
        if (confidence(d) >= threshold[e]) return done;
    }
    layers_forward(m, done, layers, m->passes->sums_of_pass);
    read_head(d, m->trunk->norm, layers - 1);
    return layers;
}

const real *decoder_leave(struct decoder *d, int32_t token, const struct edge_set *active,
                          const double *threshold, int *layers) {
    struct model *m = d->model;
    begin_feeding(d, &token, 1, active);
    *layers = climb(d, threshold);
    for (int l = *layers; l < m->config.num_layers; l++) layer_pass_by(m, l, node_rows(m, *layers - 1));
    rules_begin(m, NULL);
    return d->logits;
}

const real *decoder_step(struct decoder *d, int32_t token, const struct edge_set *active) {
    int layers;
    return decoder_leave(d, token, active, NULL, &layers);
}

const real *decoder_feed(struct decoder *d, const int32_t *token, long count, const struct edge_set *active) {
    struct model *m = d->model;
    begin_feeding(d, token, count, active);
    climb(d, NULL);
    rules_begin(m, NULL);
    return d->logits;
}

const real *decoder_draft(struct decoder *d, int32_t token, int exit, const struct edge_set *active) {
    struct model *m = d->model;
    const int layer = m->config.exit.layers[exit];
    begin_tokens(d, &token, 1, active);
    d->drafts = true;
    layers_forward(m, 0, layer + 1, m->passes->sums_of_pass);
    read_exit(d, layer);
    rules_begin(m, NULL);
    return d->logits;
}

static int validate_exits(const struct model_config *config) {
    if (config->exit.num_layers) return 0;
    return gdn_fail(GDN_INPUT, "the model has no exits: model.exit.layers is []");
}

int decoder_validate_drafts(const struct model_config *config, const struct ops *ops) {
    struct rule_entry rule[MAX_RULES];
    TRY(validate_exits(config));
    if (!ops_by_rows(ops) || ops->precision != PRECISION_FP32)
        return gdn_fail(
            GDN_INPUT,
            "on device %s in the precision of the run: drafts are verified on the cpu in fp32 alone",
            ops->name);
    for (int l = 0; l < config->num_layers; l++)
        if (!mixer_of(config, l)->rewind)
            return gdn_fail(GDN_INPUT, "the mixer %s of layer %d cannot take tokens back",
                            mixer_of(config, l)->name, l);
    for (int r = 0, count = rules_of(config, rule); r < count; r++)
        if (rule[r].row->decode_bytes)
            return gdn_fail(GDN_INPUT,
                            "the rule %s keeps something of the tokens so far and cannot take them back",
                            rule[r].row->name);
    return 0;
}

int decoder_validate_leave(const struct model_config *config) {
    TRY(validate_exits(config));
    if (config->num_rules)
        return gdn_fail(GDN_INPUT, "model.rules has %d entries, of which layers that are left out would lack what "
                                   "they add to keys and values: tokens leave early of models without such",
                        config->num_rules);
    for (int l = 0; l < config->num_layers; l++)
        if (!mixer_of(config, l)->pass_by)
            return gdn_fail(GDN_INPUT, "the mixer %s of layer %d cannot leave tokens out", mixer_of(config, l)->name, l);
    return 0;
}
