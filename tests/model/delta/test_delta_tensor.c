/* Delta connections over the tensor axis, divided by channel or by connection, against the whole model
 * computed on the same rank: loss sums and every gradient. Runs on any number of ranks that divides 12.
 * Sources that travel narrow between two stages, walked by hand, are compared likewise. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "model/delta/aggregate.h"
#include "tests/model/tensor_ranks.h"
#include "tests/rows/rows.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH, T = B * S, LAYERS = 4, NODES = LAYERS + 1 };

/* Of the initial weights: enough that every gradient counts, and no more, since it multiplies rounding
 * too. */
static const double NOISE = 0.1;

static char text[160];

/* Everything that is divided divides by 12. T does not: own rows differ in number. */
static struct model_config divisible(void) {
    struct model_config c = small_model();
    c.num_layers = LAYERS;
    c.hidden_size = 48;
    c.num_heads = c.num_kv_heads = c.intermediate_size = 12;
    c.delta.hidden = 12;
    c.delta.gate_hidden = 4;
    c.delta.attention_heads = 12;
    return c;
}

/* A sum in another order: rounding, about √(terms) of it, with a factor of ten for what cancels. Some
 * tensors' gradients are themselves what is left of larger terms: hence a little of the global norm. */
static double tolerance(double own, double global) {
    return sizeof(real) == 8 ? 1e-12 * own + 1e-15 * global : 1e-5 * (own + 1e-3 * global);
}

static double sum_tolerance(void) {
    return sizeof(real) == 8 ? 1e-12 : 1e-5;
}

static double global_norm(const struct fixture *full) {
    double squares = 0;
    for (int i = 0; i < full->table.rows; i++) {
        const struct row *row = &full->table.row[i];
        for (long j = 0; j < row->count; j++) squares += pow(full->state.gradient[row->offset + j], 2);
    }
    return sqrt(squares);
}

/* Compares this rank's part of a gradient with the same elements of the whole tensor's. */
static void compare_row(const struct fixture *full, const struct row *row, const real *gradient,
                        double global) {
    const struct row *all = params_find(&full->table, row->name);
    const real *expected = full->state.gradient + all->offset;
    double norm = 0, error = 0;
    for (long j = 0; j < all->count; j++) norm += pow(expected[j], 2);
    for (long j = 0; j < row->count; j++) error += pow(gradient[j] - (double)expected[part_place(row, j)], 2);
    if (!(sqrt(error) <= tolerance(sqrt(norm), global)))
        failures += printf("%s, rank %d: gradient of %s is off by %g, its norm is %g, that of all %g\n", text,
                           tensor.index, row->name, sqrt(error), sqrt(norm), global);
    if (norm == 0 && error != 0)
        failures += printf("%s, rank %d: gradient of %s is not 0\n", text, tensor.index, row->name);
}

static void compare_sums(const struct loss_sums *full, struct loss_sums *part) {
    double *ours[] = {&part->ce, &part->sparsity, &part->entropy};
    const double theirs[] = {full->ce, full->sparsity, full->entropy};
    static const char *const names[] = {"cross entropy", "sparsity", "entropy"};
    axis_sum_doubles(&tensor, &part->ce, 3); /* neighbours */
    for (int i = 0; i < 3; i++)
        if (!(fabs(*ours[i] - theirs[i]) <= sum_tolerance() * fabs(theirs[i])))
            failures += printf("%s: %s is %.17g, expected %.17g\n", text, names[i], *ours[i], theirs[i]);
}

/* Sums what is partial over the ranks and compares all. */
static void compare_gradients(const struct fixture *full, const struct part *part) {
    double global = global_norm(full);
    for (int i = 0; i < part->table.rows; i++) {
        const struct row *row = &part->table.row[i];
        real *gradient = part->state.gradient + row->offset;
        if (row->partial) axis_sum(&tensor, gradient, row->count);
        compare_row(full, row, gradient, global);
    }
}

/* One micro-batch through the whole model and through this rank's part of it. */
static void check(const struct model_config *c, const struct loss_options *o, const struct layout *layout,
                  enum projection_way projection) {
    struct fixture full;
    struct part part;
    struct loss_sums expected, sums;
    int32_t rows[B * (S + 1)];
    fixture_rows(rows, c->vocab_size);
    fixture_create(&full, c, test_backends()[0], B, S, 3, NOISE);
    part_create(&part, &full, layout, &tensor, NULL, test_backends()[0], B, S);
    model_set_projection(full.model, projection);
    model_set_projection(part.model, projection);
    model_train(full.model, rows, B, S, o, &expected);
    model_train(part.model, rows, B, S, o, &sums);
    if (model_status(part.model)) failures += printf("%s: %s\n", text, gdn_failure());
    assert_int_equal(axis_reserve(&tensor, part.table.total), 0);
    compare_sums(&expected, &sums);
    assert_int_equal(model_measured(full.model, o->active), model_measured(part.model, o->active));
    compare_gradients(&full, &part);
    part_free(&part);
    fixture_free(&full);
}

/* Every kind, aggregate, normalize and way to divide. Which regularisers, distances and so on goes round. */
static void test_divided(void **state) {
    (void)state;
    int v = 0;
    for (int combination = 0; combination < 24; combination++)
        for (int way = 0; way < 4; way++, v++) {
            struct model_config c = divisible();
            c.delta.kind = combination % 3;
            c.delta.aggregate = combination / 3 % 4;
            c.delta.normalize = combination / 12;
            c.delta.embedding_source = v % 2;
            c.delta.distance_scale = v % 3;
            c.tie_embeddings = v % 5 == 0;
            if (v % 5 == 2) c.dropout = (struct dropout_config){.residual = 0.1, .gate = 0.3};
            bool regularize = v % 3 != 1;
            int active = v % 7 == 3 ? 1 : v % 7 == 5 ? 2 : 3;
            struct loss_options o = fixture_options(&c, active, regularize);
            o.measure = v % 4 != 2;
            bool by_connection = way / 2, rows = way % 2;
            struct layout layout = divided_layout((by_connection ? 1 : 0) | (rows ? 2 : 0));
            snprintf(text, sizeof text, "kind %d, aggregate %d, %s, %s, %s, %d active%s%s", c.delta.kind,
                     c.delta.aggregate, c.delta.normalize ? "normalized" : "plain",
                     by_connection ? "by connection" : "by channel", rows ? "rows divided" : "rows whole",
                     active, regularize ? ", regularized" : "", o.measure ? ", measured" : "");
            check(&c, &o, &layout,
                  v % 5 == 1   ? PROJECTION_SPLIT
                  : v % 5 == 2 ? PROJECTION_DIRECT
                               : PROJECTION_AUTO);
        }
    no_failures();
}

/* More ranks than connections, and no connections at all. */
static void test_few_connections(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++)
        for (int way = 0; way < 4; way++) {
            struct model_config c = divisible();
            c.delta.kind = kind;
            c.delta.num_distances = way % 2;
            struct loss_options o = fixture_options(&c, -1, true);
            struct layout layout = divided_layout(way | 1);
            snprintf(text, sizeof text, "kind %d, %d distances, by connection", kind, c.delta.num_distances);
            check(&c, &o, &layout, PROJECTION_AUTO);
        }
    no_failures();
}

/* --------------------------------------------------------------------------------------- narrow sources */

/* Two stages on this rank; what their passes are handed. */
struct pair {
    struct part part[2];
    struct edges edges;
    real *source[NODES], *source_gradient[NODES];
    real **projected, **projected_gradient; /* [edges.count]; NULL: the edge reads its source itself */
    real gradient[T * 48];
    int narrow;
};

static bool projects(const struct part *part, const struct edge *edge) {
    char name[96];
    snprintf(name, sizeof name, "layers.%d.delta.%d.delta_proj.weight", edge->target, edge->distance);
    return params_find(&part->table, name);
}

static real *zeros(long count) {
    return calloc((size_t)count, sizeof(real));
}

/* Hands the second stage its sources: whole, or where the first stage has an edge's projection, narrow. */
static void hand_over(struct pair *p, const struct model_config *c, const struct layout *layout,
                      const struct edge_set *active) {
    long D = c->hidden_size, width = projected_width(c, layout);
    struct span first = layout->stage[0];
    p->source[first.end] = model_output(p->part[0].model, 0, 0, first.end - 1);
    for (int e = 0; e < p->edges.count; e++) {
        const struct edge *edge = &p->edges.edge[e];
        int node = edge->source;
        if (edge->target < first.end || node >= first.end || !edge_set_has(active, e)) continue;
        const real *s = model_output(p->part[0].model, 0, 0, node);
        if (node == first.end - 1) continue; /* the stream */
        if (!edge->whole && projects(&p->part[0], edge)) {
            p->projected[e] = zeros(T * width);
            p->projected_gradient[e] = zeros(T * width);
            for (long i = 0; i < T * width; i++) p->projected_gradient[e][i] = (real)NAN; /* is overwritten */
            model_project(p->part[0].model, e, s, T, p->projected[e]);
            p->narrow++;
        } else {
            p->source[1 + node] = model_output(p->part[0].model, 0, 0, node);
        }
        if (!p->source_gradient[1 + node]) p->source_gradient[1 + node] = zeros(T * D);
    }
}

static void check_narrow(const struct model_config *c, const struct loss_options *o, struct layout layout) {
    static struct pair pair;
    struct pair *p = &pair;
    struct fixture full;
    struct loss_sums expected, sums = {0};
    int32_t rows[B * (S + 1)];
    struct span stage[2] = {{0, 2}, {2, LAYERS}};
    memset(p, 0, sizeof *p);
    layout.size[AXIS_PIPELINE] = 2, layout.stage = stage, layout.narrow = true;
    fixture_rows(rows, c->vocab_size);
    fixture_create(&full, c, test_backends()[0], B, S, 3, NOISE);
    assert_int_equal(edges_create(c, &p->edges), 0);
    p->projected = calloc((size_t)p->edges.count, sizeof *p->projected);
    p->projected_gradient = calloc((size_t)p->edges.count, sizeof *p->projected_gradient);
    assert_true(p->projected && p->projected_gradient);
    for (int s = 0; s < 2; s++) {
        layout.index[AXIS_PIPELINE] = s;
        part_create(&p->part[s], &full, &layout, &tensor, NULL, test_backends()[0], B, S);
    }
    model_train(full.model, rows, B, S, o, &expected);

    struct pass pass = {.rows = rows, .batch = B, .length = S, .options = o};
    model_stage_forward(p->part[0].model, &pass, &sums);
    hand_over(p, c, &layout, o->active);
    struct pass last = pass;
    last.source = p->source, last.projected = p->projected, last.projected_gradient = p->projected_gradient;
    last.gradient = p->gradient, last.source_gradient = p->source_gradient;
    model_stage_forward(p->part[1].model, &last, &sums);
    model_stage_backward(p->part[1].model, &last, LAYERS, stage[1].first, &sums);
    for (int e = p->edges.count - 1; e >= 0; e--)
        if (p->projected[e]) {
            int node = p->edges.edge[e].source;
            model_unproject(p->part[0].model, e, model_output(p->part[0].model, 0, 0, node), T,
                            p->projected_gradient[e], p->source_gradient[1 + node]);
        }
    pass.gradient = p->gradient, pass.source_gradient = p->source_gradient;
    model_stage_backward(p->part[0].model, &pass, stage[0].end - 1, -1, &sums);
    for (int s = 0; s < 2; s++)
        if (model_status(p->part[s].model)) failures += printf("%s: %s\n", text, gdn_failure());
    assert_true(p->narrow > 0 || c->num_rules); /* what a rule reads itself travels whole for all */

    /* What both stages hold is summed over them. */
    for (int i = 0; i < p->part[0].table.rows; i++) {
        const struct row *row = &p->part[0].table.row[i], *other = params_find(&p->part[1].table, row->name);
        if (!other) continue;
        real *a = p->part[0].state.gradient + row->offset, *b = p->part[1].state.gradient + other->offset;
        for (long j = 0; j < row->count; j++) a[j] = b[j] = a[j] + b[j];
    }
    for (int s = 0; s < 2; s++) assert_int_equal(axis_reserve(&tensor, p->part[s].table.total), 0);
    compare_sums(&expected, &sums);
    for (int s = 0; s < 2; s++) {
        compare_gradients(&full, &p->part[s]);
        part_free(&p->part[s]);
    }
    for (int e = 0; e < p->edges.count; e++) {
        free(p->projected[e]);
        free(p->projected_gradient[e]);
    }
    free(p->projected), free(p->projected_gradient);
    for (int n = 0; n < NODES; n++) free(p->source_gradient[n]);
    edges_free(&p->edges);
    fixture_free(&full);
}

static void test_narrow(void **state) {
    (void)state;
    rows_of_aggregates();
    for (int aggregate = 0; aggregate < aggregates(); aggregate++)
        for (int way = 0; way < 4; way++) {
            struct model_config c = divisible();
            c.delta.embedding_source = true;
            c.delta.aggregate = aggregate;
            struct loss_options o = fixture_options(&c, way == 3 ? 2 : 3, way != 1);
            struct layout layout = divided_layout(way % 2 ? 2 : 0);
            snprintf(text, sizeof text, "narrow sources, aggregate %d, way %d", aggregate, way);
            check_narrow(&c, &o, layout);
        }
    no_failures();
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_divided),
        cmocka_unit_test(test_few_connections),
        cmocka_unit_test(test_narrow),
    };
    return run_on_ranks(tests, tensor_create, tensor_free);
}
