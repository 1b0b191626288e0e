/* Of a layer's edges any may be active: a model that does not use some of its edges has the losses and
 * gradients of one that has only the others, and of its tensors. Every gate, aggregate and normalize, direct
 * and split maps, all backends. On several tensor ranks (any number that divides 12) each has its channels of
 * both models. */
#include <math.h>
#include <stdio.h>

#include "tests/model/tensor_ranks.h"
#include "tests/rows/rows.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH, T = B * S, LAYERS = 8, D = 24 };

/* Everything that is divided divides by 12. */
static bool variant(int v, struct model_config *c, struct loss_options *o) {
    if (!fixture_variant(v, c, o)) return false;
    c->num_layers = LAYERS;
    c->hidden_size = D;
    c->num_heads = c->num_kv_heads = c->intermediate_size = 12;
    c->delta.hidden = c->delta.gate_hidden = c->delta.attention_heads = 12;
    *o = fixture_options(c, v == 25 ? 1 : c->delta.num_distances, v % 3 != 1);
    return true;
}

/* A model, or one rank's part of it, and what training it by a micro-batch gives. */
struct trained {
    struct fixture whole;
    struct part part; /* on several ranks */
    const struct table *table;
    const real *gradient;
    const struct edge_set *active;
    struct loss_sums sums;
};

static void train_part(struct trained *x, int way, enum projection_way projection, const int32_t *rows,
                       const struct loss_options *o) {
    const struct layout layout = divided_layout(way);
    static real gradient[T * D];
    struct part *part = &x->part;
    part_create(part, &x->whole, &layout, &tensor, NULL, x->whole.ops, B, S);
    model_set_projection(part->model, projection);
    struct pass pass = {.rows = rows, .batch = B, .length = S, .options = o, .gradient = gradient};
    model_stage_forward(part->model, &pass, &x->sums);
    model_stage_backward(part->model, &pass, LAYERS, -1, &x->sums);
    failures += model_status(part->model) != 0;
    x->table = &part->table, x->gradient = part->state.gradient;
}

static void train(struct trained *x, const char *edges, int v, int way, enum projection_way projection,
                  const struct ops *ops) {
    struct model_config c;
    struct loss_options o;
    static int32_t rows[B * (S + 1)];
    choose_edges(edges);
    *x = (struct trained){.sums = {0}};
    variant(v, &c, &o);
    x->active = o.active;
    fixture_rows(rows, c.vocab_size);
    fixture_create(&x->whole, &c, ops, B, S, 3, 0.2);
    if (tensor.size > 1) {
        train_part(x, way, projection, rows, &o);
        return;
    }
    model_set_projection(x->whole.model, projection);
    fixture_loss(&x->whole, rows, B, S, &o, true, &x->sums);
    x->table = &x->whole.table, x->gradient = x->whole.state.gradient;
}

static void end(struct trained *x) {
    if (tensor.size > 1) part_free(&x->part);
    fixture_free(&x->whole);
}

/* What is computed is the same, in products that read weights in fewer pieces: rounding, of 10000 units in
 * double and, as for direct and split maps in test_model.c, of 1700 in float: terms cancel in scalars. */
static bool near(double a, double b, double size) {
    return fabs(a - b) <= (sizeof(real) == 8 ? 1e-12 : 1e-4) * (size + 1e-3);
}

static void compare(const struct trained *some, const struct trained *only, const char *text) {
    if (!near(some->sums.ce, only->sums.ce, only->sums.ce) ||
        !near(some->sums.sparsity, only->sums.sparsity, only->sums.sparsity) ||
        !near(some->sums.entropy, only->sums.entropy, only->sums.entropy))
        failures += printf("%s: sums %.17g %.17g %.17g, not %.17g %.17g %.17g\n", text, some->sums.ce,
                           some->sums.sparsity, some->sums.entropy, only->sums.ce, only->sums.sparsity,
                           only->sums.entropy);
    for (int i = 0; i < some->table->rows; i++) {
        const struct row *row = &some->table->row[i], *same = params_find(only->table, row->name);
        const real *got = some->gradient + row->offset;
        double norm = 0, error = 0;
        if (params_active(row, some->active) != (same && params_active(same, only->active)))
            failures += printf("%s: %s is trained with one set alone\n", text, row->name);
        for (long j = 0; j < row->count; j++) {
            double wanted = same ? (double)only->gradient[same->offset + j] : 0;
            norm += wanted * wanted, error += pow((double)got[j] - wanted, 2);
        }
        if (same ? !near(sqrt(error), 0, sqrt(norm)) : error != 0)
            failures +=
                printf("%s: gradient of %s is off by %g of %g\n", text, row->name, sqrt(error), sqrt(norm));
    }
}

static void test_as_without_the_others(void **state) {
    (void)state;
    struct model_config c;
    struct loss_options o;
    for (int v = 0; variant(v, &c, &o); v++)
        for (int k = 0; test_backends()[k / 4]; k++) {
            struct trained some, only;
            if (tensor.size == 1 && k & 2) continue;
            if (!test_backends()[k / 4]->device->host && v % 10) continue; /* emulated ones take their time */
            const int way = k & 2;                                         /* rows whole or divided */
            const enum projection_way projection = k & 1 ? PROJECTION_SPLIT : PROJECTION_DIRECT;
            const struct ops *ops = test_backends()[k / 4];
            char text[80];
            snprintf(text, sizeof text, "variant %d on %s, way %d, projection %d", v, ops->name, way,
                     projection);
            train(&some, "some", v, way, projection, ops);
            train(&only, "only", v, way, projection, ops);
            compare(&some, &only, text);
            end(&some);
            end(&only);
        }
    choose_edges("");
    no_failures();
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_without_the_others)};
    return run_on_ranks(tests, tensor_create, tensor_free);
}
