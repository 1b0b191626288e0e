/* Compressed sources (model/pass/compress.c) against a model that keeps all and whose outputs of nodes are
 * overwritten by the product of their factors between the passes: the same bits, at every ratio, of every
 * kind, aggregate and normalize, recompute level, cut into chunks and way to divide, several micro-batches in
 * flight. And at full rank, or of outputs of low rank, against the model as it is. Runs on 1, 2 or 4 ranks,
 * which are then tensor ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "kernels/lowrank/lowrank.h"
#include "model/internal.h"
#include "tests/model/fixture.h"

enum { LAYERS = 8, NODES = LAYERS + 1, D = 16, SLOTS = 3, PLAYED = 4, MOST = 24, CUTS = 3, VARIANTS = 24 };

static struct axis tensor;
static int failures; /* counted, so that this rank goes on as the others do */

/* All chunks are this rank's. */
struct cut {
    int chunks;
    struct span stage[3];
};
static const struct cut cuts[CUTS] = {
    {1, {{0, 8}}},
    {2, {{0, 6}, {6, 8}}},
    {3, {{0, 1}, {1, 6}, {6, 8}}},
};

/* What is tried. */
struct setting {
    struct model_config config;
    struct loss_options options;
    const struct cut *cut;
    int way; /* how the tensor axis divides */
    struct recompute levels[LAYERS];
    const struct ops *ops;
    long batch, length;
    double noise; /* of the weights */
    bool alike;   /* the sequences of a micro-batch: then no output has a rank above their length */
    char what[160];
};

/* Widths divide by four. Distances leave a node that nobody reads next to the top. */
static struct setting setting_of(int v, int cut, int way, const struct ops *ops) {
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
    for (int l = 0; l < LAYERS && v % 3; l++) {
        uint64_t bits = random_bits(17, (uint64_t)v, (uint64_t)l);
        s.levels[l] = (struct recompute){(unsigned char)(bits % 3), (unsigned char)(bits / 3 % 3)};
    }
    snprintf(s.what, sizeof s.what, "%s, variant %d (kind %d, aggregate %d), cut %d, way %d", ops->name, v,
             c->delta.kind, c->delta.aggregate, cut, way);
    return s;
}

/* Written down here once more: a node of the chunk, below its last one, that layers of the chunk read as a
 * source and no later ones. */
static bool compressed(const struct setting *s, struct span span, int node) {
    bool read = false;
    for (int i = 0; i < s->config.delta.num_distances; i++) {
        int target = node + s->config.delta.distances[i];
        if (target < LAYERS && target >= span.end) return false;
        read |= target < span.end;
    }
    return read && node >= span.first && node < span.end - 1;
}

/* ------------------------------------------------------------------------------------------- a model */

struct runner {
    const struct setting *s;
    struct part part;
    double ratio;
    bool overwrites; /* plays compression by itself, on a model without */
    bool planned;
    struct edges edges;
    struct arena arena;
    struct lowrank scratch;
    real *q, *b;
    real gradient[MOST * D], deposit[NODES][MOST * D];
    bool left[NODES];
    struct loss_sums sums[PLAYED];
};

static const int slots[3] = {SLOTS, SLOTS, SLOTS};

static struct layout layout_of(const struct setting *s) {
    return (struct layout){.data = 1,
                           .tensor = tensor.size,
                           .tensor_index = tensor.index,
                           .delta = s->way & 1 ? DELTA_CONNECTION : DELTA_CHANNEL,
                           .sequence_parallel = s->way & 2,
                           .pipeline = 1,
                           .chunks = s->cut->chunks,
                           .stage = (struct span *)s->cut->stage};
}

static struct model_part part_of(const struct setting *s, const struct layout *layout, struct axis *axis,
                                 double ratio) {
    return (struct model_part){
        .layout = layout, .tensor = axis, .slots = slots, .recompute = s->levels, .compress_sources = ratio};
}

static void lay_out(struct runner *r) {
    long T = r->s->batch * r->s->length, k = lowrank_of_ratio(T, D, r->ratio);
    lowrank_lay_out(&r->scratch, &r->arena, r->s->ops, T, D, k, false);
    r->q = arena_take(&r->arena, (size_t)(T * k) * sizeof(real));
    r->b = arena_take(&r->arena, (size_t)(k * D) * sizeof(real));
}

static struct runner *runner_create(const struct setting *s, double ratio, bool overwrites) {
    struct runner *r = calloc(1, sizeof *r);
    struct fixture whole;
    struct layout layout = layout_of(s);
    r->s = s, r->ratio = ratio, r->overwrites = overwrites;
    assert_int_equal(edges_create(&s->config, &r->edges), 0);
    fixture_create(&whole, &s->config, s->ops, s->batch, s->length, 3, s->noise);
    part_create(&r->part, &whole, &layout, &tensor, slots, s->ops, s->batch, s->length);
    fixture_free(&whole);
    model_free(r->part.model);
    struct model_part part = part_of(s, &r->part.layout, &tensor, overwrites ? 0 : ratio);
    assert_int_equal(model_create(&s->config, &r->part.table, &r->part.state, s->ops, &part, s->batch,
                                  s->length, true, &r->part.model),
                     0);
    if (!overwrites) return r;
    r->part.model->compress =
        ratio; /* so that it knows what its outputs are, laid out as if they were kept */
    r->arena.name = "factors";
    lay_out(r);
    assert_int_equal(arena_reserve(&r->arena), 0);
    lay_out(r);
    return r;
}

static void runner_free(struct runner *r) {
    part_free(&r->part);
    edges_free(&r->edges);
    arena_free(&r->arena);
    free(r);
}

static int chunk_of(const struct runner *r, int node) {
    int c = 0;
    while (node >= r->s->cut->stage[c].end) c++;
    return c;
}

/* ------------------------------------------------------------------------------------------- its passes */

static bool reads(const struct runner *r, struct span span, int node) {
    for (int l = span.first; l < span.end; l++)
        for (int i = 0; i < active_edges(&r->edges, l, r->s->options.active); i++)
            if (r->edges.edge[r->edges.first[l] + i].source == node) return true;
    return false;
}

/* The pass of a micro-batch, of which the last is smaller than the others, with what train/step/execute.c
 * would bring. `node` and `deposit` [NODES] are filled. */
static struct pass pass_of(struct runner *r, int micro, int slot, int c, real **node, real **deposit) {
    static int32_t rows[MOST + 4];
    const struct setting *s = r->s;
    struct span span = s->cut->stage[c];
    bool small = micro == PLAYED - 1;
    long batch = small ? s->batch - 1 : s->batch, length = small ? s->length - 2 : s->length;
    for (long i = 0; i < batch * (length + 1); i++)
        rows[i] = (int32_t)(random_bits(7, (uint64_t)micro, (uint64_t)(s->alike ? i % (length + 1) : i)) %
                            (uint64_t)s->config.vocab_size);
    for (int n = -1; n < LAYERS; n++) {
        bool outside = c && n < span.first, stream = outside && n == span.first - 1;
        bool leaves = outside && !stream && reads(r, span, n), given = r->left[1 + n] && n < span.end - 1;
        node[1 + n] = outside && (stream || reads(r, span, n))
                          ? model_output(r->part.model, chunk_of(r, n), slot, n)
                          : NULL;
        deposit[1 + n] = leaves || (given && (stream || chunk_of(r, n) == c)) ? r->deposit[1 + n] : NULL;
        if (leaves) r->left[1 + n] = true;
    }
    return (struct pass){.chunk = c,
                         .slot = slot,
                         .rows = rows,
                         .batch = batch,
                         .length = length,
                         .options = &s->options,
                         .node = node,
                         .gradient = r->gradient,
                         .deposit = deposit};
}

/* What compression does to a node, done to a model that keeps all of it: whole, or on each rank its own rows,
 * from which the backward pass gathers it. */
static void overwrite(struct runner *r, int slot, long T) {
    long k = lowrank_of_ratio(T, D, r->ratio);
    for (int n = 0; n < LAYERS; n++) {
        int c = chunk_of(r, n);
        if (!compressed(r->s, r->s->cut->stage[c], n)) continue;
        real *x = malloc((size_t)(T * D) * sizeof(real));
        long rows;
        real *own = (real *)model_output_rows(r->part.model, c, slot, n, T, &rows), *whole;
        long first = rows < T ? axis_first_row(&tensor, T, tensor.index) : 0;
        memcpy(x + first * D, own, (size_t)(rows * D) * sizeof(real));
        if (rows < T) axis_gather_rows(&tensor, x, T, D);
        lowrank_split(&r->scratch, T, D, x, k, (uint64_t)n, r->q, r->b);
        lowrank_join(r->s->ops, T, D, k, r->q, r->b, x);
        memcpy(own, x + first * D, (size_t)(rows * D) * sizeof(real));
        if ((whole = model_output(r->part.model, c, slot, n)))
            memcpy(whole, x, (size_t)(T * D) * sizeof(real));
        free(x);
    }
}

static void forward(struct runner *r, int micro, int slot, bool evaluate) {
    struct loss_sums unused = {0};
    long T = 0;
    for (int c = 0; c < r->s->cut->chunks; c++) {
        real *node[NODES], *deposit[NODES];
        memset(r->left, 0, sizeof r->left);
        struct pass pass = pass_of(r, micro, slot, c, node, deposit);
        pass.evaluate = evaluate, pass.deposit = NULL;
        T = pass.batch * pass.length;
        model_stage_forward(r->part.model, &pass, evaluate ? &unused : &r->sums[micro]);
    }
    if (r->overwrites && !evaluate) overwrite(r, slot, T);
}

/* The same bits on all tensor ranks. */
static void same_on_ranks(const real *x, long count, const char *what, const char *of, int number) {
    real *first = malloc((size_t)count * sizeof(real));
    memcpy(first, x, (size_t)count * sizeof(real));
    MPI_Bcast(first, (int)((size_t)count * sizeof(real)), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (memcmp(first, x, (size_t)count * sizeof(real)) != 0)
        failures += printf("%s: rank %d has other bits of %s %d\n", what, tensor.index, of, number);
    free(first);
}

/* In calls of `step` layers; 0: each chunk in one. */
static void backward(struct runner *r, int micro, int slot, int step) {
    memset(r->left, 0, sizeof r->left);
    memset(r->deposit, 0, sizeof r->deposit);
    for (int c = r->s->cut->chunks - 1; c >= 0; c--) {
        real *node[NODES], *deposit[NODES];
        struct pass pass = pass_of(r, micro, slot, c, node, deposit);
        struct span span = r->s->cut->stage[c];
        int bottom = c ? span.first : -1;
        for (int layer = span.end == LAYERS ? LAYERS : span.end - 1; layer >= bottom;) {
            int end = step && layer - step + 1 > bottom ? layer - step + 1 : bottom;
            model_stage_backward(r->part.model, &pass, layer, end, &r->sums[micro]);
            layer = end - 1;
            /* Now read for the last time. */
            if (step == 1 && r->ratio > 0 && !r->planned && layer >= span.first &&
                compressed(r->s, span, layer))
                same_on_ranks(model_output(r->part.model, c, slot, layer), pass.batch * pass.length * D,
                              r->s->what, "node", layer);
        }
    }
}

/* Four micro-batches as pipelines interleave them, evaluations in between. */
static void play(struct runner *r) {
    memset(r->sums, 0, sizeof r->sums);
    memset(r->part.state.gradient, 0, (size_t)r->part.table.total * sizeof(real));
    forward(r, 0, 0, false);
    forward(r, 1, 1, false);
    forward(r, 0, 2, true);
    backward(r, 0, 0, 0);
    forward(r, 3, 0, false); /* the small one */
    forward(r, 2, 2, false);
    backward(r, 1, 1, 3);
    forward(r, 2, 1, true);
    backward(r, 2, 2, 1);
    backward(r, 3, 0, 2);
    if (model_status(r->part.model)) failures += printf("%s: %s\n", r->s->what, gdn_failure());
}

/* ------------------------------------------------------------------------------------------- comparisons */

static void same_losses(const struct runner *a, const struct runner *b) {
    for (int m = 0; m < PLAYED; m++)
        if (memcmp(&a->sums[m], &b->sums[m], sizeof a->sums[m]) != 0)
            failures += printf("%s: other losses of micro-batch %d at ratio %g\n", a->s->what, m, b->ratio);
}

static bool same_gradients(const struct runner *a, const struct runner *b, const char *words) {
    for (int i = 0; i < a->part.table.rows; i++) {
        const struct row *row = &a->part.table.row[i];
        const real *x = a->part.state.gradient + row->offset, *y = b->part.state.gradient + row->offset;
        if (memcmp(x, y, (size_t)row->count * sizeof(real)) == 0) continue;
        if (words) failures += printf("%s: %s: other gradient of %s\n", a->s->what, words, row->name);
        return false;
    }
    return true;
}

static double norm_of(const real *x, const real *y, long count) {
    double sum = 0;
    for (long i = 0; i < count; i++) sum += pow((double)x[i] - (y ? (double)y[i] : 0), 2);
    return sqrt(sum);
}

static double worst; /* part of what was allowed, for main to tell */

/* Outputs come back to a few roundings of their norm, of which eight layers of backward passes make some
 * hundred: normalize divides by norms of differences, and gradients of single numbers (scale, mix) are sums
 * that cancel. Against a tensor's own norm, but where that is next to nothing beside the others' it is itself
 * a difference of larger numbers. */
static void close_gradients(const struct runner *a, const struct runner *b) {
    const double tolerance = sizeof(real) == 8 ? 1e-13 : 3e-5;
    double all = norm_of(a->part.state.gradient, NULL, a->part.table.total);
    for (int i = 0; i < a->part.table.rows; i++) {
        const struct row *row = &a->part.table.row[i];
        const real *x = a->part.state.gradient + row->offset, *y = b->part.state.gradient + row->offset;
        double off = norm_of(x, y, row->count),
               allowed = tolerance * (norm_of(x, NULL, row->count) + 1e-3 * all);
        if (off / allowed > worst) worst = off / allowed;
        if (!(off <= allowed))
            failures += printf("%s: gradient of %s is %g off at ratio %g, %g is allowed\n", a->s->what,
                               row->name, off, b->ratio, allowed);
    }
}

static bool finite_gradients(const struct runner *r) {
    return isfinite(norm_of(r->part.state.gradient, NULL, r->part.table.total));
}

/* Gradients of tensors that all ranks have, and of which none has a part alone. */
static void same_replicated(const struct runner *r) {
    for (int i = 0; i < r->part.table.rows; i++) {
        const struct row *row = &r->part.table.row[i];
        if (row->split == SPLIT_NONE && !row->partial && row->distance == 0 && !row->select)
            same_on_ranks(r->part.state.gradient + row->offset, row->count, r->s->what, row->name, 0);
    }
}

/* ------------------------------------------------------------------------------------------- tests */

static const double ratios[] = {1, 0.5, 0.1};

static void no_failures(void) {
    int counted = failures;
    failures = 0;
    assert_int_equal(counted, 0);
}

enum { RATIOS = sizeof ratios / sizeof *ratios };

/* Every `every`-th ratio, beginning with `first`. */
static void check(const struct setting *s, int first, int every) {
    struct runner *plain = runner_create(s, 0, false);
    play(plain);
    for (int i = first; i < RATIOS; i += every) {
        struct runner *wanted = runner_create(s, ratios[i], true), *r = runner_create(s, ratios[i], false);
        play(wanted);
        play(r);
        same_losses(plain, r);
        same_gradients(wanted, r, "not that of overwritten outputs");
        if (ratios[i] == 1) close_gradients(plain, r);
        if (ratios[i] < 1 && same_gradients(plain, r, NULL))
            failures += printf("%s: nothing was compressed\n", s->what);
        if (!finite_gradients(r)) failures += printf("%s: a gradient is not finite\n", s->what);
        same_replicated(r);
        play(wanted); /* over its own gradients, zeroed, and whatever lies in its buffers */
        play(r);
        same_gradients(wanted, r, "the second time");
        runner_free(wanted);
        runner_free(r);
    }
    runner_free(plain);
}

static void test_bits(void **state) {
    (void)state;
    for (int v = 0; v < VARIANTS; v++)
        for (int cut = 0; cut < CUTS; cut++) {
            bool few = tensor.size > 1; /* saves time */
            if (few && (v + cut) % CUTS) continue;
            struct setting s = setting_of(v, cut, (v + v / 4 + cut) % 4, ops_all()[(v + cut) % 4 == 1]);
            check(&s, few ? v / 3 % RATIOS : 0, few ? RATIOS : 1);
        }
    no_failures();
}

/* Outputs of rank 6, factors of rank 8: exact but for rounding. */
static void test_low_rank(void **state) {
    (void)state;
    for (int v = 1; v<VARIANTS; v += tensor.size> 1 ? 6 : 2) { /* those with more tokens than channels */
        struct setting s = setting_of(v, v / 2 % CUTS, v % 4, ops_all()[0]);
        s.alike = true;
        struct runner *plain = runner_create(&s, 0, false), *r = runner_create(&s, 0.5, false);
        play(plain);
        play(r);
        same_losses(plain, r);
        close_gradients(plain, r);
        runner_free(plain);
        runner_free(r);
    }
    no_failures();
}

/* Differences between neighbouring layers are small beside their outputs, and what factors miss of a source
 * is not: nothing in a backward pass may multiply the one by the inverse of the other. Measured: norms of all
 * gradients grow by up to 1.6. */
static void test_small_differences(void **state) {
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct setting s = setting_of(v, 0, v % 4, ops_all()[0]);
        s.noise = 0.01;
        struct runner *plain = runner_create(&s, 0, false);
        play(plain);
        double wanted = norm_of(plain->part.state.gradient, NULL, plain->part.table.total);
        for (int i = 1; i < RATIOS; i++) {
            struct runner *r = runner_create(&s, ratios[i], false);
            play(r);
            double factor = norm_of(r->part.state.gradient, NULL, r->part.table.total) / wanted;
            if (!(factor < 3)) failures += printf("%s: gradients grow by %g\n", s.what, factor);
            runner_free(r);
        }
        runner_free(plain);
    }
    no_failures();
}

/* What a buffer takes of an arena. */
static long bytes_of(long count) {
    struct arena arena = {.base = NULL};
    arena_take(&arena, (size_t)count * sizeof(real));
    return (long)arena.used;
}

/* Whole buffers that a chunk's compressed nodes need: as many as are read at once at most. */
static long whole_buffers(const struct setting *s, struct span span) {
    long most = 0;
    for (int l = span.first; l < span.end; l++) {
        long here = 0;
        for (int n = span.first; n <= l; n++) {
            bool later = n == l || n + 1 == l;
            for (int i = 0; i < s->config.delta.num_distances; i++) {
                int target = n + s->config.delta.distances[i];
                later |= target >= l && target < span.end;
            }
            here += later && compressed(s, span, n);
        }
        if (here > most) most = here;
    }
    return most;
}

/* No layer reads the node's output as a source, and no later stage has it as its stream. */
static bool stream_alone(const struct setting *s, struct span span, int node) {
    for (int i = 0; i < s->config.delta.num_distances; i++)
        if (node + s->config.delta.distances[i] < LAYERS && (node >= 0 || s->config.delta.embedding_source))
            return false;
    return node < span.end - 1 || span.end == LAYERS;
}

/* By formula: of each slot what x0 and each node is kept as. Where rows are divided, a rank keeps its own of
 * what is not factors, if whole buffers in turn make that less, or are not needed. */
static long sources_of(const struct setting *s, double ratio) {
    long T = s->batch * s->length, k = lowrank_of_ratio(T, D, ratio), whole = 0, nodes = 0;
    bool divided = s->way & 2 && tensor.size > 1;
    long R = divided ? (T + tensor.size - 1) / tensor.size : T;
    for (int c = 0; c < s->cut->chunks; c++) {
        struct span span = s->cut->stage[c];
        for (int n = span.first; n < span.end; n++) nodes += SLOTS * compressed(s, span, n);
        if (whole_buffers(s, span) > whole) whole = whole_buffers(s, span);
    }
    bool turns = divided && !(ratio > 0) && whole * T + nodes * R < nodes * T;
    long sum = SLOTS * bytes_of((stream_alone(s, s->cut->stage[0], -1) ? R : T) * D);
    for (int c = 0; c < s->cut->chunks; c++) {
        struct span span = s->cut->stage[c];
        for (int n = span.first; n < span.end; n++)
            sum +=
                SLOTS * (ratio > 0 && compressed(s, span, n) ? bytes_of(T * k) + bytes_of(k * D)
                         : stream_alone(s, span, n) || (turns && compressed(s, span, n)) ? bytes_of(R * D)
                                                                                         : bytes_of(T * D));
    }
    return sum + (ratio > 0 || turns ? whole * bytes_of(T * D) : 0);
}

static struct model_memory memory_of(const struct setting *s, double ratio, bool training, bool planned) {
    struct fixture whole;
    struct part part;
    struct model_memory memory;
    struct layout layout = layout_of(s);
    struct axis counts = axis_planned("tensor", tensor.size, tensor.index);
    fixture_create(&whole, &s->config, s->ops, s->batch, s->length, 3, s->noise);
    part_create(&part, &whole, &layout, &tensor, slots, s->ops, s->batch, s->length);
    model_free(part.model);
    struct model_part of = part_of(s, &part.layout, planned ? &counts : &tensor, ratio);
    assert_int_equal(planned ? model_create_planned(&s->config, &part.table, &of, s->batch, s->length,
                                                    training, &part.model)
                             : model_create(&s->config, &part.table, &part.state, s->ops, &of, s->batch,
                                            s->length, training, &part.model),
                     0);
    model_memory(part.model, &memory);
    part_free(&part);
    fixture_free(&whole);
    return memory;
}

/* Sources are what the formula says, planned as real; nothing else changes but scratch; models that do not
 * train, or have no connections, are as they were. */
static void test_memory(void **state) {
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct setting s = setting_of(v, v % CUTS, v % 4, ops_all()[0]), bare = s;
        struct model_memory none = memory_of(&s, 0, true, false), apply = memory_of(&s, 0, false, false);
        assert_int_equal(none.sources, sources_of(&s, 0));
        for (int i = 0; i < RATIOS; i++) {
            struct model_memory got = memory_of(&s, ratios[i], true, false),
                                planned = memory_of(&s, ratios[i], true, true),
                                idle = memory_of(&s, ratios[i], false, false);
            assert_memory_equal(&got, &planned, sizeof got);
            assert_int_equal(got.sources, sources_of(&s, ratios[i]));
            assert_int_equal(got.activations, none.activations);
            assert_true(got.workspace > none.workspace);
            assert_memory_equal(&idle, &apply, sizeof idle);
        }
        bare.config.delta.num_distances = 0;
        none = memory_of(&bare, 0, true, false), apply = memory_of(&bare, 0.5, true, false);
        assert_memory_equal(&none, &apply, sizeof none);
    }
}

/* ------------------------------------------------------------------------------------------- the plan */

static double products; /* arithmetic of all matrix products */

/* Arithmetic by formula, of one [T, D]: four products make its factors and one brings it back; `bases`: what
 * LAPACK does for three orthonormal bases of k vectors, as much as is known of Householder's method (Golub &
 * Van Loan 2013, 5.2). */
static double formula(long T, double ratio, bool bases) {
    long k = lowrank_of_ratio(T, D, ratio), longest = 2 * (2 * T + D), less = 2 * k / 3;
    return bases ? 2.0 * (double)(k * k * (longest - 3 * less)) : 5 * 2.0 * (double)(T * k * D);
}

/* Of all nodes of the micro-batches of a played step. */
static double formula_of(const struct setting *s, double ratio, bool bases) {
    long T = s->batch * s->length, small = (s->batch - 1) * (s->length - 2);
    double sum = 0;
    for (int c = 0; c < s->cut->chunks; c++)
        for (int n = s->cut->stage[c].first; n < s->cut->stage[c].end; n++)
            if (compressed(s, s->cut->stage[c], n))
                sum += (PLAYED - 1) * formula(T, ratio, bases) + formula(small, ratio, bases);
    return sum;
}

static void (*product)(char, char, long, long, long, real, const real *, long, const real *, long, real,
                       real *, long);

static void count_product(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                          const real *b, long ldb, real beta, real *c, long ldc) {
    products += 2.0 * (double)m * (double)n * (double)k;
    product(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* What a played step costs more than one without compression: arithmetic and bytes on the tensor axis. */
struct cost {
    double flops;
    int64_t bytes;
};

static struct cost cost_of(const struct setting *s, double ratio, bool planned) {
    struct runner *r = runner_create(s, ratio, false);
    struct axis counts = axis_planned("tensor", tensor.size, tensor.index),
                *axis = planned ? &counts : &tensor;
    if (planned) {
        struct model_part of = part_of(s, &r->part.layout, &counts, ratio);
        model_free(r->part.model);
        r->planned = true;
        assert_int_equal(
            model_create_planned(&s->config, &r->part.table, &of, s->batch, s->length, true, &r->part.model),
            0);
    }
    double flops = planned ? ops_counted() : products;
    int64_t bytes = axis->bytes;
    play(r);
    struct cost cost = {(planned ? ops_counted() : products) - flops, axis->bytes - bytes};
    runner_free(r);
    return cost;
}

static void test_plan(void **state) {
    (void)state;
    for (int v = 0; v<VARIANTS; v += tensor.size> 1 ? 3 : 1) {
        struct ops counting = *ops_all()[1];
        product = counting.gemm;
        counting.gemm = count_product;
        struct setting s = setting_of(v, v % CUTS, v / 2 % 4, &counting);
        struct cost none = cost_of(&s, 0, false), planned_none = cost_of(&s, 0, true);
        for (int i = 0; i < RATIOS; i++) {
            struct cost real_cost = cost_of(&s, ratios[i], false), planned = cost_of(&s, ratios[i], true);
            double more = real_cost.flops - none.flops, planned_more = planned.flops - planned_none.flops;
            double known = formula_of(&s, ratios[i], false), bases = formula_of(&s, ratios[i], true);
            if (more != known || planned_more != known + bases)
                failures += printf("%s: %g operations more at ratio %g, %g planned; %g and %g are known\n",
                                   s.what, more, ratios[i], planned_more, known, known + bases);
            if (real_cost.bytes - none.bytes != planned.bytes - planned_none.bytes)
                failures += printf("%s: other bytes planned\n", s.what);
        }
    }
    no_failures();
}

/* The buffers that a backward pass has filled are not there for a forward pass. */
static void test_order(void **state) {
    (void)state;
    struct setting s = setting_of(0, 0, 0, ops_all()[0]);
    for (int evaluate = 0; evaluate < 2; evaluate++)
        for (int compress = 0; compress < 2; compress++) {
            struct runner *r = runner_create(&s, compress ? 0.5 : 0, false);
            real *node[NODES], *deposit[NODES];
            forward(r, 0, 0, false);
            struct pass pass = pass_of(r, 0, 0, 0, node, deposit);
            model_stage_backward(r->part.model, &pass, LAYERS, 3, &r->sums[0]);
            assert_int_equal(model_status(r->part.model), 0);
            forward(r, 1, 1, evaluate);
            assert_int_equal(model_status(r->part.model), compress ? GDN_INTERNAL : 0);
            if (compress) assert_non_null(strstr(gdn_failure(), "backward pass of layers 0 to 7"));
            gdn_failure_clear();
            runner_free(r);
        }
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int status = axis_create("tensor", MPI_COMM_WORLD, 0, rank, size, &tensor);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_low_rank),
        cmocka_unit_test(test_small_differences),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_order),
    };
    if (!status) status = cmocka_run_group_tests(tests, NULL, NULL);
    print_message("%.2g of what rounding is allowed\n", worst);
    axis_free(&tensor);
    MPI_Finalize();
    return status;
}
