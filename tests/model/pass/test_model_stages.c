/* The model cut into stages, walked by hand in one process: nodes, source gradients and the stream's gradient
 * are handed from stage to stage as pipeline ranks send them. Losses and all gradients must have the bits of
 * the whole model, which keeps all activations, whatever the layers of the stages compute again. Only tied
 * embeddings, whose gradient two stages have a part of each, may differ, by rounding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "model/params/stream.h"
#include "tests/model/pass/pipeline.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH, T = B * S, LAYERS = 6, NODES = LAYERS + 1, MICRO_BATCHES = 3 };

static const struct cut cuts[] = {
    {1, 1, {{0, 6}}},
    {2, 1, {{0, 3}, {3, 6}}},
    {2, 1, {{0, 5}, {5, 6}}},
    {3, 1, {{0, 1}, {1, 4}, {4, 6}}},
    {4, 1, {{0, 2}, {2, 3}, {3, 4}, {4, 6}}},
    {2, 2, {{0, 2}, {2, 3}, {3, 4}, {4, 6}}},
    {2, 3, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}}},
    {1, 2, {{0, 4}, {4, 6}}},
};

/* Micro-batches in flight, and the buffers that their messages would fill. */
struct line {
    struct pipeline pipe;
    struct loss_options options;
    int32_t rows[MICRO_BATCHES][B * (S + 1)];
    struct loss_sums sums[MICRO_BATCHES];
    real *gradient[MICRO_BATCHES];               /* [T, D] */
    real *source_gradient[MICRO_BATCHES][NODES]; /* [T, D] entry 1 + node */
    bool left[MICRO_BATCHES][NODES]; /* something has been left at the node that was not collected yet */
    long D;
    int activation_sets[MAX_STAGES];
    int weight_sets; /* of each rank but the first, 0: none */
    int waiting;     /* micro-batches whose gradients of weights are computed */
};

static struct pass make_pass(struct line *l, int stage, int micro_batch, int activation_set, real **source,
                             real **source_gradient) {
    struct pass pass = {.activation_set = activation_set,
                        .rows = l->rows[micro_batch],
                        .batch = B,
                        .length = S,
                        .options = &l->options,
                        .gradient = l->gradient[micro_batch]};
    pipeline_hand_over(&l->pipe, stage, l->source_gradient[micro_batch], l->left[micro_batch], source,
                       source_gradient, &pass);
    return pass;
}

static void forward(struct line *l, int micro_batch, int activation_set) {
    bool left[NODES];
    memcpy(left, l->left[micro_batch], sizeof left);
    for (int s = 0; s < pipeline_stages(&l->pipe); s++) {
        real *source[NODES], *source_gradient[NODES];
        struct pass pass = make_pass(l, s, micro_batch, activation_set, source, source_gradient);
        pass.gradient = NULL, pass.source_gradient = NULL;
        memcpy(l->left[micro_batch], left, sizeof left); /* only a backward pass leaves something */
        model_stage_forward(pipeline_model(&l->pipe, s), &pass, &l->sums[micro_batch]);
        failures += model_status(pipeline_model(&l->pipe, s)) != 0;
    }
}

/* Each stage in calls of at most `step` layers; 0: in one call. */
static void backward(struct line *l, int micro_batch, int activation_set, int step) {
    memset(l->left[micro_batch], 0, sizeof l->left[micro_batch]);
    for (int n = 0; n < NODES; n++)
        memset(l->source_gradient[micro_batch][n], 0, (size_t)(T * l->D) * sizeof(real));
    for (int s = pipeline_stages(&l->pipe) - 1; s >= 0; s--) {
        real *source[NODES], *source_gradient[NODES];
        struct pass pass = make_pass(l, s, micro_batch, activation_set, source, source_gradient);
        int bottom = pipeline_bottom(&l->pipe, s);
        pass.weight_set = s && l->weight_sets ? 1 + micro_batch % l->weight_sets : 0;
        for (int layer = pipeline_top(&l->pipe, s), end; layer >= bottom; layer = end - 1) {
            end = pipeline_end(layer, bottom, step);
            model_stage_backward(pipeline_model(&l->pipe, s), &pass, layer, end, &l->sums[micro_batch]);
        }
        if (model_status(pipeline_model(&l->pipe, s))) failures += printf("stage %d: %s\n", s, gdn_failure());
    }
}

/* Those of one more micro-batch, in calls of at most `step` layers. */
static void weights(struct line *l, int step) {
    int micro_batch = l->waiting++;
    for (int s = pipeline_stages(&l->pipe) - 1; s > 0; s--) {
        int bottom = pipeline_bottom(&l->pipe, s);
        for (int layer = pipeline_top(&l->pipe, s), end; layer >= bottom; layer = end - 1) {
            end = pipeline_end(layer, bottom, step);
            model_stage_weights(pipeline_model(&l->pipe, s), micro_batch % l->weight_sets, end);
        }
    }
}

/* Gives ranks but the first so many weight sets, for gradients of layers from the `skip`-th of each on. */
static void line_defer(struct line *l, const struct model_config *config, const struct recompute *policies,
                       int sets, int skip) {
    l->weight_sets = sets;
    for (int p = 1; p < l->pipe.cut->pipeline; p++) {
        struct part *part = &l->pipe.rank[p];
        struct model_part of = {.layout = &part->layout,
                                .tensor = &tensor,
                                .activation_sets = l->activation_sets,
                                .recompute = policies,
                                .weight_sets = sets,
                                .weights_from = part->layout.stage[p].first + skip};
        model_free(part->model);
        assert_int_equal(model_size_weight_sets(config, &part->table, &of, B, S), 0);
        assert_int_equal(
            model_create(config, &part->table, &part->state, ops_all()[0], &of, B, S, true, &part->model), 0);
    }
}

static void line_create(struct line *l, const struct cut *cut, int way, const struct fixture *full,
                        const struct loss_options *options, int activation_sets,
                        const struct recompute *policies) {
    *l = (struct line){.options = *options, .D = stream_width(&full->config)};
    l->pipe = (struct pipeline){.cut = cut, .layers = LAYERS, .active = options->active};
    assert_int_equal(edges_create(&full->config, &l->pipe.edges), 0);
    for (int c = 0; c < cut->chunks; c++) l->activation_sets[c] = activation_sets;
    for (int p = 0; p < cut->pipeline; p++) {
        struct layout layout = cut_layout(cut, p, way);
        part_create_policies(&l->pipe.rank[p], full, &layout, &tensor, l->activation_sets, policies,
                             ops_all()[0], B, S);
    }
    for (int m = 0; m < MICRO_BATCHES; m++) {
        l->gradient[m] = calloc((size_t)(T * l->D), sizeof(real));
        for (int n = 0; n < NODES; n++) l->source_gradient[m][n] = calloc((size_t)(T * l->D), sizeof(real));
        fixture_rows(l->rows[m], full->config.vocab_size);
        for (int i = 0; i < B * (S + 1); i++) l->rows[m][i] = (l->rows[m][i] + m) % full->config.vocab_size;
    }
}

static void line_free(struct line *l) {
    for (int p = 0; p < l->pipe.cut->pipeline; p++) part_free(&l->pipe.rank[p]);
    for (int m = 0; m < MICRO_BATCHES; m++) {
        free(l->gradient[m]);
        for (int n = 0; n < NODES; n++) free(l->source_gradient[m][n]);
    }
    edges_free(&l->pipe.edges);
}

/* Compares a tensor's gradient, summed over the stages that hold it. */
static void compare_row(struct line *l, const struct part *one, const struct row *row, const char *what) {
    const real *wanted = one->state.gradient + row->offset;
    int owners = 0;
    for (int p = 0; p < l->pipe.cut->pipeline; p++)
        owners += params_find(&l->pipe.rank[p].table, row->name) != NULL;
    failures += owners != 1 && !(owners == 2 && strcmp(row->name, "embed_tokens.weight") == 0);
    for (long j = 0; j < row->count; j++) {
        double sum = 0;
        for (int p = 0; p < l->pipe.cut->pipeline; p++) {
            const struct row *own = params_find(&l->pipe.rank[p].table, row->name);
            if (own) sum += l->pipe.rank[p].state.gradient[own->offset + j];
        }
        double tolerance =
            owners == 1 ? 0 : (sizeof(real) == 8 ? 1e-14 : 1e-6) * (1 + fabs((double)wanted[j]));
        if (fabs(sum - (double)wanted[j]) <= tolerance) continue;
        failures += printf("%s: gradient %s[%ld] is %.17g in stages, %.17g in one piece\n", what, row->name,
                           j, sum, (double)wanted[j]);
        return;
    }
}

static void compare_losses(const struct loss_sums *a, const struct loss_sums *b, const char *what) {
    if (a->ce != b->ce || a->sparsity != b->sparsity || a->entropy != b->entropy || a->z != b->z)
        failures += printf("%s: other losses in stages\n", what);
}

/* Models that only evaluate have the head in the last stage's forward pass. */
static void evaluate(struct line *l, const struct model_config *config, struct part *one, const char *what) {
    for (int p = 0; p < l->pipe.cut->pipeline; p++) {
        struct part *part = &l->pipe.rank[p];
        struct model_part of = {
            .layout = &part->layout, .tensor = &tensor, .activation_sets = l->activation_sets};
        model_free(part->model);
        assert_int_equal(
            model_create(config, &part->table, &part->state, ops_all()[0], &of, B, S, false, &part->model),
            0);
    }
    for (int m = 0; m < MICRO_BATCHES; m++) {
        struct loss_sums wanted;
        model_loss(one->model, l->rows[m], B, S, &l->options, &wanted);
        wanted.z = 0; /* which models that only evaluate leave out */
        l->sums[m] = (struct loss_sums){0};
        forward(l, m, m % l->activation_sets[0]);
        compare_losses(&l->sums[m], &wanted, what);
    }
}

/* All micro-batches in one piece, then through the stages with `activation_sets` in flight, and gradients of
 * weights of so many waiting. */
static void run_waiting(const struct model_config *c, const struct loss_options *o, const struct cut *cut,
                        int activation_sets, int weight_sets, int step, int way, const char *what) {
    struct fixture full;
    struct part one;
    struct line line, *l = &line;
    struct loss_sums sums[MICRO_BATCHES];
    struct recompute policies[LAYERS];
    struct layout layout = cut_layout(&cuts[0], 0, way);
    fixture_create(&full, c, ops_all()[0], B, S, 3, 0.2);
    part_create(&one, &full, &layout, &tensor, NULL, ops_all()[0], B, S);
    fixture_random_policies(policies, LAYERS, 5, (uint64_t)(way + activation_sets));
    line_create(l, cut, way, &full, o, activation_sets, policies);
    if (weight_sets) line_defer(l, c, policies, weight_sets, way % 2);
    for (int m = 0; m < MICRO_BATCHES; m++) model_train(one.model, l->rows[m], B, S, o, &sums[m]);
    for (int m = 0; m < MICRO_BATCHES + activation_sets - 1; m++) {
        if (m < MICRO_BATCHES) forward(l, m, m % activation_sets);
        int back = m - (activation_sets - 1);
        if (weight_sets && back - l->waiting == weight_sets) weights(l, step);
        if (back >= 0) backward(l, back, back % activation_sets, step);
    }
    while (weight_sets && l->waiting < MICRO_BATCHES) weights(l, step);
    for (int m = 0; m < MICRO_BATCHES; m++) compare_losses(&l->sums[m], &sums[m], what);
    for (int i = 0; i < one.table.rows; i++) compare_row(l, &one, &one.table.row[i], what);
    evaluate(l, c, &one, what);
    line_free(l);
    part_free(&one);
    fixture_free(&full);
}

static void run(const struct model_config *c, const struct loss_options *o, const struct cut *cut,
                int activation_sets, int step, int way, const char *what) {
    run_waiting(c, o, cut, activation_sets, 0, step, way, what);
}

/* A variant of more layers, and so of more edges. */
static bool variant(int v, struct model_config *c, struct loss_options *o) {
    if (!fixture_variant(v, c, o)) return false;
    fixture_widen(c);
    c->num_layers = LAYERS;
    if (o->active) o->active = fixture_active(c, v == 25 ? 1 : -1);
    return true;
}

static void test_bits(void **state) {
    (void)state;
    struct model_config c;
    struct loss_options o;
    for (int v = 0; variant(v, &c, &o); v++) {
        for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
            if (tensor.size > 1 && (k + (size_t)v) % 4) continue; /* saves time */
            char what[80];
            int activation_sets = 1 + (int)(k + (size_t)v) % MICRO_BATCHES, step = (v + (int)k / 2) % 3;
            snprintf(what, sizeof what, "variant %d, cut %d, %d activation sets, calls of %d layers", v,
                     (int)k, activation_sets, step);
            run(&c, &o, &cuts[k], activation_sets, step, v + (int)k, what);
        }
    }
    no_failures();
}

/* The same where gradients of weights wait, of all or of a chunk's upper layers. */
static void test_weight_sets(void **state) {
    (void)state;
    struct model_config c;
    struct loss_options o;
    for (int v = 0; variant(v, &c, &o); v++)
        for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
            if (cuts[k].pipeline < 2 || cuts[k].chunks > 1 || (k + (size_t)v) % 2) continue;
            char what[80];
            int weight_sets = 1 + (v + (int)k) % MICRO_BATCHES;
            snprintf(what, sizeof what, "variant %d, cut %d, %d weight sets", v, (int)k, weight_sets);
            run_waiting(&c, &o, &cuts[k], 2, weight_sets, v % 3, v / 2 + (int)k, what);
        }
    no_failures();
}

/* A long way: an edge over three stages, from the embedding too. */
static void test_far_edges(void **state) {
    (void)state;
    struct model_config c = small_model();
    fixture_widen(&c);
    c.num_layers = LAYERS;
    memcpy(c.delta.distances, (int[]){2, 5, 6}, 3 * sizeof(int));
    c.delta.embedding_source = true;
    c.delta.aggregate = AGGREGATE_ATTENTION;
    struct loss_options o = fixture_options(&c, -1, true);
    for (int activation_sets = 1; activation_sets <= MICRO_BATCHES; activation_sets++) {
        run(&c, &o, &cuts[4], activation_sets, 0, activation_sets, "far edges, four ranks");
        run(&c, &o, &cuts[6], activation_sets, 1, activation_sets, "far edges, six stages");
    }
    no_failures();
}

/* One micro-batch forward through a plain model. */
static void after_forward(struct line *l, const struct cut *cut, struct fixture *full, int activation_sets) {
    struct model_config c = small_model();
    fixture_widen(&c);
    c.num_layers = LAYERS;
    struct loss_options o = fixture_options(&c, -1, false);
    fixture_create(full, &c, ops_all()[0], B, S, 3, 0.2);
    line_create(l, cut, 0, full, &o, activation_sets, NULL);
    forward(l, 0, 0);
}

/* What later stages left at a node that this pass does not collect is an error, not a wrong gradient. */
static void test_undrained(void **state) {
    (void)state;
    struct fixture full;
    struct line line, *l = &line;
    after_forward(l, &cuts[1], &full, 1);
    real *source[NODES], *source_gradient[NODES];
    struct pass pass = make_pass(l, 0, 0, 0, source, source_gradient);
    source_gradient[1 + 2] =
        l->source_gradient[0][1 + 2]; /* its last layer's: the stream brings that already */
    model_stage_backward(pipeline_model(&l->pipe, 0), &pass, 2, -1, &l->sums[0]);
    assert_int_equal(model_status(pipeline_model(&l->pipe, 0)), GDN_INTERNAL);
    assert_non_null(strstr(gdn_failure(), "node 2"));
    gdn_failure_clear();
    line_free(l);
    fixture_free(&full);
}

/* Calls of one backward pass must come one after the other. */
static void test_order(void **state) {
    (void)state;
    struct fixture full;
    struct line line, *l = &line;
    after_forward(l, &cuts[0], &full, 2);
    real *source[NODES], *source_gradient[NODES];
    struct pass pass = make_pass(l, 0, 0, 0, source, source_gradient);
    model_stage_backward(pipeline_model(&l->pipe, 0), &pass, LAYERS, 4, &l->sums[0]);
    assert_int_equal(model_status(pipeline_model(&l->pipe, 0)), 0);
    model_stage_backward(pipeline_model(&l->pipe, 0), &pass, 2, 0, &l->sums[0]); /* layer 3 is left out */
    assert_int_equal(model_status(pipeline_model(&l->pipe, 0)), GDN_INTERNAL);
    gdn_failure_clear();
    line_free(l);
    fixture_free(&full);
}

/* Puts planned models in the place of a line's. */
static void plan(struct line *l, const struct model_config *c, struct axis *planned) {
    for (int p = 0; p < l->pipe.cut->pipeline; p++) {
        struct part *part = &l->pipe.rank[p];
        struct model_part of = {
            .layout = &part->layout, .tensor = planned, .activation_sets = l->activation_sets};
        struct model_memory real_memory, planned_memory;
        model_memory(part->model, &real_memory);
        model_free(part->model);
        assert_int_equal(model_create_planned(c, &part->table, &of, B, S, true, &part->model), 0);
        model_memory(part->model, &planned_memory);
        assert_memory_equal(&real_memory, &planned_memory, sizeof real_memory);
    }
}

/* A planned model takes as much memory as a real one and none of it, hands over as many bytes, and the
 * arithmetic of its stages is that of one piece. */
static void test_planned(void **state) {
    (void)state;
    struct model_config c;
    struct loss_options o;
    for (int v = 0; variant(v, &c, &o); v++) {
        double flops[2];
        for (int k = 0; k < 2; k++) {
            struct axis planned = axis_planned("tensor", tensor.size, tensor.index);
            struct fixture full;
            struct line line, *l = &line;
            fixture_create(&full, &c, ops_all()[0], B, S, 3, 0.2);
            line_create(l, &cuts[k ? 5 : 0], v, &full, &o, 2, NULL);
            int64_t bytes = tensor.bytes;
            forward(l, 0, 1);
            backward(l, 0, 1, 0);
            bytes = tensor.bytes - bytes;
            plan(l, &c, &planned);
            double before = ops_counted();
            forward(l, 0, 1);
            backward(l, 0, 1, 0);
            flops[k] = ops_counted() - before;
            if (planned.bytes != bytes || (bytes > 0) != (tensor.size > 1))
                failures +=
                    printf("variant %d: %ld bytes planned, %ld sent\n", v, (long)planned.bytes, (long)bytes);
            line_free(l);
            fixture_free(&full);
        }
        if (!(flops[0] > 0 && flops[0] == flops[1]))
            failures +=
                printf("variant %d: %g operations in one piece, %g in stages\n", v, flops[0], flops[1]);
    }
    no_failures();
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),      cmocka_unit_test(test_weight_sets),
        cmocka_unit_test(test_far_edges), cmocka_unit_test(test_undrained),
        cmocka_unit_test(test_order),     cmocka_unit_test(test_planned),
    };
    return run_on_ranks(tests, tensor_create, tensor_free);
}
