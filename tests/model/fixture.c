#include "kernels/backends/backends.h"
#include "tests/model/fixture.h"
#include "kernels/base/marks.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/params/exits.h"
#include "model/params/stream.h"
#include "tests/rows/rows.h"

#undef NDEBUG /* what is asserted here is done here, in builds of every type */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void state_of(const struct ops *ops, const struct table *table, struct state *state) {
    size_t bytes = (size_t)table->total * sizeof(real);
    *state = (struct state){.weight = ops->device->reserve(bytes), .gradient = ops->device->reserve(bytes)};
    assert(state->weight && state->gradient);
}

void fixture_create_part(struct fixture *f, const struct model_config *config, const struct ops *ops,
                         long batch, long length, uint64_t seed, double noise,
                         const struct model_part *part) {
    f->config = *config;
    f->ops = ops;
    assert(!params_create(config, NULL, &f->table));
    state_of(ops, &f->table, &f->state);
    for (int i = 0; i < f->table.rows; i++) {
        const struct row *row = &f->table.row[i];
        real *w = f->state.weight + row->offset;
        params_init(row, seed, w);
        for (long j = 0; j < row->count; j++)
            w[j] += (real)(noise * random_normal(seed + 1, random_name(row->name), (uint64_t)j));
    }
    f->layout = layout_full(), f->alone = axis_alone("tensor"), f->alone.ops = ops;
    struct model_part full = {.layout = &f->layout, .tensor = &f->alone};
    if (part) full.documents = part->documents, full.padding = part->padding;
    assert(!model_create(config, &f->table, &f->state, ops, part ? &full : NULL, batch, length, true,
                         &f->model));
}

void fixture_create(struct fixture *f, const struct model_config *config, const struct ops *ops, long batch,
                    long length, uint64_t seed, double noise) {
    fixture_create_part(f, config, ops, batch, length, seed, noise, NULL);
}

void fixture_free(struct fixture *f) {
    model_free(f->model);
    f->ops->device->release(f->state.weight);
    f->ops->device->release(f->state.gradient);
    params_free(&f->table);
}

static bool asked_bf16(const char *variable) {
    const char *asked = getenv(variable);
    return asked && strcmp(asked, "bf16") == 0;
}

struct model_config small_model(void) {
    struct model_config c = {.vocab_size = 13,
                             .hidden_size = 12,
                             .num_layers = 4,
                             .num_heads = 2,
                             .num_kv_heads = 1,
                             .intermediate_size = 10,
                             .rope_theta = 10000,
                             .norm_eps = 1e-5,
                             .delta = {.distances = {1, 2, 3},
                                       .num_distances = 3,
                                       .hidden = 5,
                                       .gate_hidden = 3,
                                       .decay = 0.1,
                                       .epsilon = 1e-3,
                                       .temperature = 1,
                                       .attention_dim = 3,
                                       .attention_heads = 2,
                                       .regularizer = REGULARIZER_FIXED},
                             .residual = asked_bf16("GDN_TEST_RESIDUAL") ? RESIDUAL_BF16 : RESIDUAL_FP32};
    rows_of_mixers();
    choose_mixers(&c);
    rows_of_rules();
    choose_rules(&c);
    rows_of_edges();
    if (getenv("GDN_TEST_EXITS"))
        c.exit = (struct exit_config){.layers = {0, 2}, .num_layers = 2, .weights = {0.3, 0.7}, .num_weights = 2};
    return c;
}

double fixture_loss(struct fixture *f, const int32_t *rows, long batch, long length,
                    const struct loss_options *options, bool train, struct loss_sums *sums) {
    if (train) {
        memset(f->state.gradient, 0, (size_t)f->table.total * sizeof(real));
        model_train(f->model, rows, batch, length, options, sums);
    } else {
        model_loss(f->model, rows, batch, length, options, sums);
    }
    const double connections = (double)model_measured(f->model, options->active),
                 each = connections > 0 ? options->token_weight / connections : 1;
    double exits = 0;
    for (int e = 0; e < f->config.exit.num_layers; e++) exits += options->exit_weight[e] * sums->exits[e];
    return (sums->ce + exits + options->z_weight * sums->z) * options->target_weight +
           (options->sparsity_weight * sums->sparsity - options->entropy_weight * sums->entropy) * each;
}

void fixture_rows(int32_t *rows, int vocab) {
    for (int i = 0; i < FIXTURE_BATCH * (FIXTURE_LENGTH + 1); i++)
        rows[i] = (int32_t)(random_bits(7, 7, (uint64_t)i) % (uint64_t)vocab);
}

double fixture_uncount(int32_t *rows) {
    long counted = 0;
    for (int i = 0; i < FIXTURE_BATCH * (FIXTURE_LENGTH + 1); i++) {
        const bool counts = i > FIXTURE_LENGTH && i % 3;
        if (!counts) rows[i] |= MARK_UNCOUNTED;
        counted += counts && i % (FIXTURE_LENGTH + 1);
    }
    return 1 / (double)counted;
}

double fixture_pad(int32_t *rows) {
    enum { PADDING = 2 };
    for (int t = FIXTURE_LENGTH - PADDING; t < FIXTURE_LENGTH; t++)
        rows[FIXTURE_LENGTH + 1 + t] |= MARK_PADDING;
    return 1.0 / (FIXTURE_BATCH * FIXTURE_LENGTH - PADDING);
}

const struct edge_set *fixture_active(const struct model_config *c, int active) {
    static struct made {
        struct edge_set set;
        struct made *before;
    } * last;
    if (active < 0 && !getenv("GDN_TEST_EDGES")) return NULL;
    if (active < 0) active = c->delta.num_distances;
    struct made *made = calloc(1, sizeof *made);
    struct edges edges;
    if (!made || edges_create(c, &edges) || edges_introduced(&edges, active, &made->set)) abort();
    edges_free(&edges);
    made->before = last;
    last = made;
    return &made->set;
}

struct loss_options fixture_options(const struct model_config *c, int active, bool regularize) {
    struct loss_options options = {.active = fixture_active(c, active),
                                   .target_weight = 1.0 / (FIXTURE_BATCH * FIXTURE_LENGTH),
                                   .token_weight = 1.0 / (FIXTURE_BATCH * FIXTURE_LENGTH),
                                   .sparsity_weight = regularize ? 0.3 : 0,
                                   .entropy_weight = regularize ? 0.2 : 0,
                                   .masks = dropout_key(1, 3),
                                   .measure = true};
    exit_weights(&c->exit, 0, 1, options.exit_weight);
    return options;
}

void fixture_policies(struct recompute *policies, int layers, int policy) {
    for (int l = 0; l < layers; l++)
        policies[l] = (struct recompute){(unsigned char)policy, (unsigned char)policy};
}

void fixture_random_policies(struct recompute *policies, int layers, uint64_t seed, uint64_t index) {
    for (int l = 0; l < layers; l++) {
        uint64_t bits = random_bits(seed, index, (uint64_t)l);
        policies[l] = (struct recompute){(unsigned char)(bits % 3), (unsigned char)(bits / 3 % 3)};
    }
}

void fixture_widen(struct model_config *c) {
    c->vocab_size = 37;
    c->hidden_size = 16;
    c->num_heads = 8;
    c->num_kv_heads = 4;
    c->intermediate_size = 12;
    c->delta.hidden = 8;
    c->delta.gate_hidden = 4;
    c->delta.attention_heads = 4;
}

/* Heads that are narrower together than the hidden states, or so wide that more than a neighbouring buffer of
 * these would be written over. */
static void vary_trunk(int i, struct model_config *c) {
    c->head_dim = i % 2 ? 40 : 4;
    c->delta.num_distances = i % 2;
    c->attention_bias = i == 31 ? BIAS_QKV : BIAS_ALL;
    c->qk_norm = i == 31 ? QK_NORM_NONE : QK_NORM_HEAD;
    c->rope_scaling = (struct rope_scaling){.kind = i - 31, /* none, linear, llama3 */
                                            .factor = 4,
                                            .low_freq_factor = 0.05,
                                            .high_freq_factor = 0.5,
                                            .original_max_position_embeddings = 3};
}

bool fixture_variant(int i, struct model_config *c, struct loss_options *o) {
    if (i >= 34) return false;
    *c = small_model();
    int active = -1;
    bool regularize = i % 3 != 1;
    if (i < 24) {
        c->delta.kind = i % 3;
        c->delta.aggregate = i / 3 % 4;
        c->delta.normalize = i / 12;
        c->delta.embedding_source = i % 2;
        c->delta.distance_scale = i % 5 % 3;
        c->tie_embeddings = i % 4 == 1;
        c->delta.temperature = i % 5 ? 1 : 0.7;
    } else if (i == 24) {
        c->delta.num_distances = 0;
    } else if (i == 25) {
        memcpy(c->delta.distances, (int[]){1, 3}, 2 * sizeof(int));
        c->delta.num_distances = 2;
        active = 1;
    } else if (i > 30) {
        vary_trunk(i, c);
    } else if (i > 26) { /* each gate, and multihead */
        c->delta.kind = i % 3;
        c->delta.aggregate = i % 4;
        c->delta.normalize = i == 28;
        c->dropout = (struct dropout_config){
            .residual = 0.2, .attention = 0.25, .gate = 0.3, .layer = getenv("GDN_TEST_EXITS") ? 0.9 : 0};
        regularize = true;
    } else {
        memcpy(c->delta.distances, (int[]){2, 4}, 2 * sizeof(int));
        c->delta.num_distances = 2;
        c->delta.embedding_source = true;
        c->delta.kind = KIND_FULL;
    }
    if (stream_count(c) > 1) c->delta.num_distances = 0;
    c->logit_softcap = i % 5 == 1 || i == 24 ? 0.6 : 0;
    rows_of_gates();
    choose_gate(c);
    rows_of_aggregates();
    choose_aggregate(c);
    *o = fixture_options(c, active, regularize);
    o->z_weight = i % 4 < 2 ? 0.2 : 0;
    return true;
}

long part_place(const struct row *row, long i) {
    if (row->transposed) {
        long in = i / row->local[0], out = i % row->local[0];
        return (row->start[1] + in) * row->shape[0] + row->start[0] + out;
    }
    return (row->start[0] + i / row->local[1]) * row->shape[1] + row->start[1] + i % row->local[1];
}

bool fixture_bf16_activations(void) {
    return asked_bf16("GDN_TEST_ACTIVATIONS");
}

void part_create(struct part *p, const struct fixture *full, const struct layout *layout, struct axis *tensor,
                 const int *activation_sets, const struct ops *ops, long batch, long length) {
    part_create_policies(p, full, layout, tensor, activation_sets, NULL, ops, batch, length);
}

void part_create_policies(struct part *p, const struct fixture *full, const struct layout *layout,
                          struct axis *tensor, const int *activation_sets, const struct recompute *recompute,
                          const struct ops *ops, long batch, long length) {
    *p = (struct part){.layout = *layout, .ops = ops};
    assert(!params_create(&full->config, layout, &p->table));
    state_of(ops, &p->table, &p->state);
    for (int i = 0; i < p->table.rows; i++) {
        const struct row *row = &p->table.row[i], *from = params_find(&full->table, row->name);
        for (long j = 0; j < row->count; j++)
            p->state.weight[row->offset + j] = full->state.weight[from->offset + part_place(row, j)];
    }
    struct model_part part = {.layout = &p->layout,
                              .tensor = tensor,
                              .activation_sets = activation_sets,
                              .recompute = recompute,
                              .bf16_activations = fixture_bf16_activations()};
    assert(!model_create(&full->config, &p->table, &p->state, ops, &part, batch, length, true, &p->model));
}

void part_free(struct part *p) {
    model_free(p->model);
    p->ops->device->release(p->state.weight);
    p->ops->device->release(p->state.gradient);
    params_free(&p->table);
}
