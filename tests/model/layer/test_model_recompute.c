/* Layers that compute again what they have not kept give the losses and gradients of layers that keep all,
 * to the bit: same operations, same shapes, same order. Every kind, aggregate and normalize, with and
 * without regulariser, policies alike and mixed, several micro-batches in flight. Runs on any number of
 * ranks that divides 12, which are then tensor ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/model/tensor_ranks.h"

enum {
    B = FIXTURE_BATCH,
    S = FIXTURE_LENGTH,
    T = B * S,
    LAYERS = 6,
    D = 48,
    ACTIVATION_SETS = 3,
    PLAYED = 6
};

/* What is divided divides by 12; widths are no multiples of a vector, so that loops have tails. */
static struct model_config model_of(int combination, bool regularize) {
    struct model_config c = small_model();
    c.num_layers = LAYERS;
    c.hidden_size = D;
    c.num_heads = c.num_kv_heads = 12;
    c.intermediate_size = 36;
    memcpy(c.delta.distances, (int[]){1, 2, 4}, 3 * sizeof(int));
    c.delta.embedding_source = true;
    c.delta.hidden = 36;
    c.delta.gate_hidden = 12;
    c.delta.attention_heads = 12;
    c.delta.kind = combination % 3;
    c.delta.aggregate = combination / 3 % 4;
    c.delta.normalize = combination / 12;
    c.delta.regularizer = regularize ? REGULARIZER_FIXED : REGULARIZER_NONE;
    if (combination % 6 == 4) c.head_dim = 6, c.attention_bias = BIAS_ALL, c.qk_norm = QK_NORM_HEAD;
    return c;
}

/* Choice i < 9: all layers have the same policies; beyond: each layer its own. */
static void policies_of(int i, struct recompute policies[LAYERS]) {
    fixture_random_policies(policies, LAYERS, 11, (uint64_t)i);
    for (int l = 0; l < LAYERS && i < 9; l++)
        policies[l] = (struct recompute){(unsigned char)(i % 3), (unsigned char)(i / 3)};
}

/* What training computed. */
struct result {
    struct loss_sums sums[PLAYED];
    real *gradient;
};

/* The pass of a micro-batch, of which the last is smaller than the others. */
static struct pass pass_of(int micro_batch, int activation_set, const struct loss_options *o) {
    static int32_t rows[B * (S + 1)];
    static real gradient[T * D];
    bool small = micro_batch == PLAYED - 1;
    fixture_rows(rows, 13);
    for (int i = 0; i < B * (S + 1); i++) rows[i] = (rows[i] + micro_batch) % 13;
    return (struct pass){.activation_set = activation_set,
                         .rows = rows,
                         .batch = small ? B - 1 : B,
                         .length = small ? S - 2 : S,
                         .sequence = micro_batch * B,
                         .options = o,
                         .gradient = gradient};
}

static void forward(struct part *p, int micro_batch, int activation_set, bool evaluate,
                    const struct loss_options *o, struct loss_sums *sums) {
    struct pass pass = pass_of(micro_batch, activation_set, o);
    pass.evaluate = evaluate;
    model_stage_forward(p->model, &pass, sums);
}

/* In calls of `step` layers; 0: in one. */
static void backward(struct part *p, int micro_batch, int activation_set, int step,
                     const struct loss_options *o, struct loss_sums *sums) {
    struct pass pass = pass_of(micro_batch, activation_set, o);
    for (int layer = LAYERS; layer >= -1;) {
        int end = step && layer - step + 1 > -1 ? layer - step + 1 : -1;
        model_stage_backward(p->model, &pass, layer, end, sums);
        layer = end - 1;
    }
}

/* Six micro-batches as pipelines interleave them, evaluations in between, the last two in the same activation
 * set. */
static void play(struct part *p, const struct loss_options *o, struct result *r) {
    struct loss_sums *s = r->sums, unused = {0};
    memset(s, 0, sizeof r->sums);
    memset(p->state.gradient, 0, (size_t)p->table.total * sizeof(real));
    forward(p, 0, 0, false, o, &s[0]);
    forward(p, 1, 1, false, o, &s[1]);
    forward(p, 4, 2, true, o, &unused);
    backward(p, 0, 0, 0, o, &s[0]);
    forward(p, 2, 0, false, o, &s[2]);
    backward(p, 1, 1, 3, o, &s[1]);
    forward(p, 3, 1, false, o, &s[3]);
    backward(p, 3, 1, 1, o, &s[3]); /* finds its last layer as it left it */
    backward(p, 2, 0, 0, o, &s[2]);
    forward(p, 4, 0, true, o, &s[4]);
    forward(p, 4, 0, false, o, &s[4]);
    forward(p, 5, 1, false, o, &s[5]);
    backward(p, 5, 1, 0, o, &s[5]);
    backward(p, 4, 0, 2, o, &s[4]);
    failures += model_status(p->model) != 0 ? printf("%s\n", gdn_failure()) : 0;
    r->gradient = malloc((size_t)p->table.total * sizeof(real));
    memcpy(r->gradient, p->state.gradient, (size_t)p->table.total * sizeof(real));
}

static void compare(const struct part *p, const struct result *a, const struct result *b, const char *what) {
    for (int m = 0; m < PLAYED; m++)
        if (memcmp(&a->sums[m], &b->sums[m], sizeof a->sums[m]) != 0)
            failures += printf("%s: other losses of micro-batch %d\n", what, m);
    for (int i = 0; i < p->table.rows; i++) {
        const struct row *row = &p->table.row[i];
        if (memcmp(a->gradient + row->offset, b->gradient + row->offset, (size_t)row->count * sizeof(real)))
            failures += printf("%s: another gradient of %s\n", what, row->name);
    }
}

static struct model_memory memory_of(const struct part *p) {
    struct model_memory memory;
    model_memory(p->model, &memory);
    return memory;
}

/* Real and planned memory are alike, byte for byte. */
static void compare_planned(const struct part *p, const struct model_config *c,
                            const struct recompute *policies, const int *activation_sets, const char *what) {
    struct axis planned = axis_planned("tensor", tensor.size, tensor.index);
    struct model_part of = {.layout = &p->layout,
                            .tensor = &planned,
                            .activation_sets = activation_sets,
                            .recompute = policies,
                            .bf16_activations = fixture_bf16_activations()};
    struct model *model;
    assert_int_equal(model_create_planned(c, &p->table, &of, B, S, true, &model), 0);
    struct model_memory real_memory = memory_of(p), planned_memory;
    model_memory(model, &planned_memory);
    if (memcmp(&real_memory, &planned_memory, sizeof real_memory) != 0)
        failures += printf("%s: other memory planned than taken\n", what);
    model_free(model);
}

/* Every `every`-th of these choices, beginning with `first`. */
static void check(const struct model_config *c, const struct loss_options *o, int way, const struct ops *ops,
                  int first, int every, const char *what) {
    const int activation_sets[1] = {ACTIVATION_SETS};
    struct fixture full;
    struct result wanted;
    struct part p;
    struct layout layout = divided_layout(way);
    fixture_create(&full, c, ops, B, S, 3, 0.2);
    part_create(&p, &full, &layout, &tensor, activation_sets, ops, B, S);
    play(&p, o, &wanted);
    part_free(&p);
    for (int i = first; i < 13; i += every) {
        struct recompute policies[LAYERS];
        struct result found;
        char text[200];
        policies_of(i, policies);
        snprintf(text, sizeof text, "%s, policies %d", what, i);
        part_create_policies(&p, &full, &layout, &tensor, activation_sets, policies, ops, B, S);
        play(&p, o, &found);
        compare(&p, &wanted, &found, text);
        compare_planned(&p, c, policies, activation_sets, text);
        free(found.gradient);
        part_free(&p);
    }
    free(wanted.gradient);
    fixture_free(&full);
}

/* With the argument `few`: every kind with every aggregate, half of them with `normalize`. */
static bool left_out(int combination) {
    return test_argument(1) && (combination + combination / 12) % 2;
}

static void test_bits(void **state) {
    (void)state;
    int v = 0;
    for (int combination = 0; combination < 24; combination++)
        for (int regularize = 0; regularize < 2; regularize++)
            for (int b = 0; test_backends()[b]; b++)
                for (int way = 0; way < (tensor.size > 1 ? WAYS : 1); way++, v++) {
                    if (left_out(combination)) continue;
                    if (tensor.size > 1 && (b != v / 8 % 2 || (way + combination) % 2)) continue; /* time */
                    struct model_config c = model_of(combination, regularize);
                    if (combination % 5 == 1)
                        c.dropout = (struct dropout_config){.residual = 0.2, .gate = 0.3};
                    struct loss_options o = fixture_options(&c, v % 5 == 3 ? 2 : -1, regularize);
                    o.measure = combination % 4 == 2;
                    c.logit_softcap = combination % 3 == 1 ? 0.6 : 0, o.z_weight = combination % 2 ? 0.2 : 0;
                    char text[120];
                    snprintf(text, sizeof text, "%s, kind %d, aggregate %d, normalize %d, %s, way %d",
                             test_backends()[b]->name, c.delta.kind, c.delta.aggregate, c.delta.normalize,
                             regularize ? "regularized" : "plain", way);
                    check(&c, &o, way, test_backends()[b], b ? v % 6 : 0, b ? 6 : 1, text);
                }
    no_failures();
}

/* The memory of a model with one pair of policies for these layers and none for the others. */
static struct model_memory memory_at(const struct model_config *c, struct span layers, int layer, int delta) {
    struct recompute policies[LAYERS] = {0};
    for (int l = layers.first; l < layers.end; l++)
        policies[l] = (struct recompute){(unsigned char)layer, (unsigned char)delta};
    struct layout layout = divided_layout(0);
    struct axis planned = axis_planned("tensor", tensor.size, tensor.index);
    struct model_part of = {.layout = &layout, .tensor = &planned, .recompute = policies};
    struct table table;
    struct model *model;
    struct model_memory memory;
    assert_int_equal(params_create(c, &layout, &table), 0);
    assert_int_equal(model_create_planned(c, &table, &of, 64, 64, true, &model), 0);
    model_memory(model, &memory);
    model_free(model);
    params_free(&table);
    return memory;
}

/* Each policy keeps less than the one below it, of layers and of connections, in any pair. Outputs of nodes
 * stay. What is shared is less than what is saved. Layers count one by one. */
static void test_memory(void **state) {
    (void)state;
    const struct span all = {0, LAYERS};
    for (int combination = 0; combination < 24; combination++) {
        struct model_config c = model_of(combination, combination % 2);
        struct model_memory none = memory_at(&c, all, 0, 0);
        for (int layer = 0; layer < 3; layer++)
            for (int delta = 0; delta < 3; delta++) {
                struct model_memory m = memory_at(&c, all, layer, delta),
                                    up = memory_at(&c, all, layer + 1, delta),
                                    right = memory_at(&c, all, layer, delta + 1);
                assert_true(layer == 2 || up.activations < m.activations);
                assert_true(delta == 2 || right.activations < m.activations);
                assert_true(m.sources == none.sources);
                long saved = none.activations - m.activations, more = m.workspace - none.workspace;
                assert_true(saved == 0 ? more == 0 : more > 0 && more < saved / 2);
                long sum = 0;
                for (int l = 0; l < LAYERS; l++) {
                    struct model_memory one = memory_at(&c, (struct span){l, l + 1}, layer, delta);
                    assert_true(saved == 0 || one.activations < none.activations);
                    sum += none.activations - one.activations;
                }
                assert_true(sum == saved);
            }
    }
}

/* The most nodes that are owed a gradient at once: each is from the highest layer that any rule reads it in
 * down to the layer above it. */
static long most_owed(const struct model_config *c) {
    struct edges edges;
    long most = 0;
    assert_int_equal(edges_create(c, &edges), 0);
    for (int l = 0; l < c->num_layers; l++) {
        long owed = 0;
        for (int node = -1; node < l; node++) {
            bool read = false;
            for (int e = 0; e < edges.count; e++)
                read |= edges.edge[e].source == node && edges.edge[e].target >= l;
            owed += read;
        }
        if (owed > most) most = owed;
    }
    edges_free(&edges);
    return most;
}

/* Source gradients of far more nodes than the longest edge is long take turns in as few buffers as that
 * length asks for, and the edges of other rules. */
static void test_source_gradients(void **state) {
    (void)state;
    struct model_config few = model_of(0, false), many;
    few.delta.embedding_source = false;
    memcpy(few.delta.distances, (int[]){1, 2, 3}, 3 * sizeof(int));
    few.num_layers = 4; /* three sources, all read by the last layer */
    many = few;
    many.num_layers = 64;
    struct layout layout = layout_full();
    struct axis alone = axis_alone("tensor");
    struct model_part of = {.layout = &layout, .tensor = &alone};
    long workspace[2];
    for (int i = 0; i < 2; i++) {
        const struct model_config *c = i ? &many : &few;
        struct table table;
        struct model *model;
        struct model_memory memory;
        assert_int_equal(params_create(c, NULL, &table), 0);
        assert_int_equal(model_create_planned(c, &table, &of, B, S, true, &model), 0);
        model_memory(model, &memory);
        workspace[i] = memory.workspace;
        model_free(model);
        params_free(&table);
    }
    long more = most_owed(&many) - most_owed(&few);
    assert_true(few.num_rules || more == 0);
    assert_int_equal(workspace[1] - workspace[0], more * T * D * (long)sizeof(real));
}

/* A sparsity weight has nowhere to leave its gradient where the configuration has no regulariser. */
static void test_unexpected_weight(void **state) {
    (void)state;
    struct model_config c = model_of(0, false);
    struct fixture full;
    struct part p;
    struct loss_sums sums;
    int32_t rows[B * (S + 1)];
    struct loss_options o = fixture_options(&c, -1, true);
    struct layout layout = divided_layout(0);
    fixture_rows(rows, c.vocab_size);
    fixture_create(&full, &c, test_backends()[0], B, S, 3, 0.2);
    part_create(&p, &full, &layout, &tensor, NULL, test_backends()[0], B, S);
    model_train(p.model, rows, B, S, &o, &sums);
    assert_int_equal(model_status(p.model), GDN_INTERNAL);
    assert_non_null(strstr(gdn_failure(), "regularizer is none"));
    gdn_failure_clear();
    part_free(&p);
    fixture_free(&full);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_source_gradients),
        cmocka_unit_test(test_unexpected_weight),
    };
    return run_on_ranks(tests, tensor_create, tensor_free);
}
