#include "tests/model/pass/compress_run.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/pass/private.h"

const double ratios[RATIOS] = {1, 0.5, 0.1};

static const struct cut cuts[CUTS] = {
    {1, 1, {{0, 8}}},
    {1, 2, {{0, 6}, {6, 8}}},
    {1, 3, {{0, 1}, {1, 6}, {6, 8}}},
};
const int activation_sets[CUTS] = {ACTIVATION_SETS, ACTIVATION_SETS, ACTIVATION_SETS};

/* Widths divide by four. Distances leave a node that nobody reads next to the top. */
struct setting setting_of(int v, int cut, int way, const struct ops *ops) {
    struct setting s = {.cut = &cuts[cut], .way = way, .ops = ops, .batch = 2, .length = 5, .noise = 0.2};
    struct model_config *c = &s.config;
    *c = small_model();
    fixture_widen(c);
    c->num_layers = LAYERS;
    c->delta.kind = v % 3;
    c->delta.aggregate = v / 3 % 4;
    c->delta.normalize = v / 12 % 2;
    c->delta.embedding_source = v % 2;
    c->delta.regularizer = v % 4 == 3 ? REGULARIZER_NONE : REGULARIZER_FIXED;
    if (v % 5 == 2) memcpy(c->delta.distances, (int[]){2, 3}, 2 * sizeof(int)), c->delta.num_distances = 2;
    s.options = fixture_options(c, v % 7 == 4 ? 1 : v % 7 == 6 ? 0 : -1, c->delta.regularizer);
    s.options.measure = v % 2;
    if (v % 2) s.batch = 4, s.length = 6; /* more tokens than channels, else fewer */
    if (v % 3) fixture_random_policies(s.policies, LAYERS, 17, (uint64_t)v);
    snprintf(s.what, sizeof s.what, "%s, variant %d (kind %d, aggregate %d), cut %d, way %d", ops->name, v,
             c->delta.kind, c->delta.aggregate, cut, way);
    return s;
}

/* Written down here once more: a node of the chunk, below its last one, that layers of the chunk read as a
 * source and no later ones. */
bool compressed(const struct setting *s, struct span span, int node) {
    bool read = false, later = false;
    struct edges edges;
    assert_int_equal(edges_create(&s->config, &edges), 0);
    for (int e = 0; e < edges.count; e++) {
        if (edges.edge[e].source != node) continue;
        read |= edges.edge[e].target < span.end;
        later |= edges.edge[e].target >= span.end;
    }
    edges_free(&edges);
    return read && !later && node >= span.first && node < span.end - 1;
}

struct model_part part_of(const struct setting *s, const struct layout *layout, struct axis *axis,
                          double ratio) {
    return (struct model_part){.layout = layout,
                               .tensor = axis,
                               .activation_sets = activation_sets,
                               .recompute = s->policies,
                               .compress_sources = ratio};
}

static void lay_out(struct runner *r) {
    long T = r->s->batch * r->s->length, k = lowrank_of_ratio(T, D, r->ratio);
    lowrank_lay_out(&r->scratch, &r->arena, r->s->ops, T, D, k, false);
    r->q = arena_take(&r->arena, (size_t)(T * k) * sizeof(real));
    r->b = arena_take(&r->arena, (size_t)(k * D) * sizeof(real));
}

struct runner *runner_create(const struct setting *s, double ratio, bool overwrites) {
    struct runner *r = calloc(1, sizeof *r);
    struct fixture full;
    struct layout layout = cut_layout(s->cut, 0, s->way);
    r->s = s, r->ratio = ratio, r->overwrites = overwrites;
    r->pipe = (struct pipeline){.cut = s->cut, .layers = LAYERS, .active = s->options.active};
    r->part = &r->pipe.rank[0];
    for (int n = 0; n < NODES; n++) r->source_gradient[n] = r->source_gradients[n];
    assert_int_equal(edges_create(&s->config, &r->pipe.edges), 0);
    fixture_create(&full, &s->config, s->ops, s->batch, s->length, 3, s->noise);
    part_create(r->part, &full, &layout, &tensor, activation_sets, s->ops, s->batch, s->length);
    fixture_free(&full);
    model_free(r->part->model);
    struct model_part part = part_of(s, &r->part->layout, &tensor, overwrites ? 0 : ratio);
    assert_int_equal(model_create(&s->config, &r->part->table, &r->part->state, s->ops, &part, s->batch,
                                  s->length, true, &r->part->model),
                     0);
    if (!overwrites) return r;
    r->part->model->compress =
        ratio; /* so that it knows what its outputs are, laid out as if they were kept */
    r->arena.name = "factors";
    lay_out(r);
    assert_int_equal(arena_reserve(&r->arena), 0);
    lay_out(r);
    return r;
}

void runner_free(struct runner *r) {
    part_free(r->part);
    edges_free(&r->pipe.edges);
    arena_free(&r->arena);
    free(r);
}

/* The pass of a micro-batch, of which the last is smaller than the others, with what train/step
 * would bring. */
struct pass pass_of(struct runner *r, int micro_batch, int activation_set, int c, real **source,
                    real **source_gradient) {
    static int32_t rows[MAX + 4];
    const struct setting *s = r->s;
    bool small = micro_batch == PLAYED - 1;
    long batch = small ? s->batch - 1 : s->batch, length = small ? s->length - 2 : s->length;
    for (long i = 0; i < batch * (length + 1); i++)
        rows[i] = (int32_t)(random_bits(7, (uint64_t)micro_batch,
                                        (uint64_t)(s->equal_sequences ? i % (length + 1) : i)) %
                            (uint64_t)s->config.vocab_size);
    struct pass pass = {.activation_set = activation_set,
                        .rows = rows,
                        .batch = batch,
                        .length = length,
                        .options = &s->options,
                        .gradient = r->gradient};
    pipeline_hand_over(&r->pipe, c, r->source_gradient, r->left, source, source_gradient, &pass);
    return pass;
}

/* What compression does to a node, done to a model that keeps all of it: whole, or on each rank its own rows,
 * from which the backward pass gathers it. */
static void overwrite(struct runner *r, int activation_set, long T) {
    long k = lowrank_of_ratio(T, D, r->ratio);
    struct model *model = r->part->model;
    for (int n = 0; n < LAYERS; n++) {
        int c = 0;
        while (n >= r->s->cut->stage[c].end) c++;
        if (!compressed(r->s, r->s->cut->stage[c], n)) continue;
        real *x = malloc((size_t)(T * D) * sizeof(real));
        long rows;
        real *own = (real *)model_output_rows(model, c, activation_set, n, T, &rows), *full;
        long first = rows < T ? axis_first_row(&tensor, T, tensor.index) : 0;
        memcpy(x + first * D, own, (size_t)(rows * D) * sizeof(real));
        if (rows < T) axis_gather_rows(&tensor, x, T, D);
        lowrank_split(&r->scratch, T, D, x, k, (uint64_t)n, r->q, r->b);
        lowrank_join(r->s->ops, T, D, k, r->q, r->b, x);
        if (r->s->config.residual == RESIDUAL_BF16) r->s->ops->round_bf16(T * D, x);
        uint16_t *kept = model->passes->chunk[c].activation_set[activation_set].kept[1 + n].bf16;
        if (kept) r->s->ops->to_bf16(rows * D, x + first * D, kept);
        memcpy(own, x + first * D, (size_t)(rows * D) * sizeof(real));
        if ((full = model_output(model, c, activation_set, n)))
            memcpy(full, x, (size_t)(T * D) * sizeof(real));
        free(x);
    }
}

void runner_forward(struct runner *r, int micro_batch, int activation_set, bool evaluate) {
    struct loss_sums unused = {0};
    long T = 0;
    for (int c = 0; c < r->s->cut->chunks; c++) {
        real *source[NODES], *source_gradient[NODES];
        memset(r->left, 0, sizeof r->left);
        struct pass pass = pass_of(r, micro_batch, activation_set, c, source, source_gradient);
        pass.evaluate = evaluate, pass.source_gradient = NULL;
        T = pass.batch * pass.length;
        model_stage_forward(r->part->model, &pass, evaluate ? &unused : &r->sums[micro_batch]);
    }
    if (r->overwrites && !evaluate) overwrite(r, activation_set, T);
}

void same_on_ranks(const real *x, long count, const char *what, const char *of, int number) {
    real *first = malloc((size_t)count * sizeof(real));
    memcpy(first, x, (size_t)count * sizeof(real));
    MPI_Bcast(first, (int)((size_t)count * sizeof(real)), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (memcmp(first, x, (size_t)count * sizeof(real)) != 0)
        failures += printf("%s: rank %d has other bits of %s %d\n", what, tensor.index, of, number);
    free(first);
}

/* In calls of `step` layers; 0: each chunk in one. */
static void backward(struct runner *r, int micro_batch, int activation_set, int step) {
    memset(r->left, 0, sizeof r->left);
    memset(r->source_gradients, 0, sizeof r->source_gradients);
    for (int c = r->s->cut->chunks - 1; c >= 0; c--) {
        real *source[NODES], *source_gradient[NODES];
        struct pass pass = pass_of(r, micro_batch, activation_set, c, source, source_gradient);
        struct span span = r->s->cut->stage[c];
        int bottom = pipeline_bottom(&r->pipe, c);
        for (int layer = pipeline_top(&r->pipe, c), end; layer >= bottom; layer = end - 1) {
            end = pipeline_end(layer, bottom, step);
            model_stage_backward(r->part->model, &pass, layer, end, &r->sums[micro_batch]);
            /* Now read for the last time. Overwritten ones in bf16 are own rows alone where nobody reads
             * them. */
            if (step == 1 && r->ratio > 0 && !r->planned && !r->overwrites && layer >= span.first &&
                compressed(r->s, span, layer))
                same_on_ranks(model_output(r->part->model, c, activation_set, layer),
                              pass.batch * pass.length * D, r->s->what, "node", layer);
        }
    }
}

void play(struct runner *r) {
    memset(r->sums, 0, sizeof r->sums);
    memset(r->part->state.gradient, 0, (size_t)r->part->table.total * sizeof(real));
    runner_forward(r, 0, 0, false);
    runner_forward(r, 1, 1, false);
    runner_forward(r, 0, 2, true);
    backward(r, 0, 0, 0);
    runner_forward(r, 3, 0, false); /* the small one */
    runner_forward(r, 2, 2, false);
    backward(r, 1, 1, 3);
    runner_forward(r, 2, 1, true);
    backward(r, 2, 2, 1);
    backward(r, 3, 0, 2);
    if (model_status(r->part->model)) failures += printf("%s: %s\n", r->s->what, gdn_failure());
}
