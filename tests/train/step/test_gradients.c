/* Every parameter's gradient of a first step on a mesh against the same step on one rank: all kinds and
 * aggregates, on every mesh that this number of ranks allows, with and without interleaving, in a V, with connections
 * divided by channel or by connection, with sequence-parallel norms, narrow sources, tied embeddings, edges
 * that span many stages. The mesh's step is that of `gdn train`, up to the gradients' sums: each rank
 * compares the parts that its optimiser would read with the whole model's gradients, which one of them
 * computes alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/marks.h"
#include "kernels/base/random.h"
#include "dist/layout/pieces.h"
#include "model/params/edges.h"
#include "model/params/exits.h"
#include "model/params/find.h"
#include "model/table/params.h"
#include "tests/support/absolute.h"
#include "tests/support/meshes.h"
#include "tests/support/world.h"
#include "train/loop/loop.h"
#include "train/run/run.h"

/* Sums of other orders. Double: a few hundred additions and the condition of the norms. Float: the same,
 * which shows most where a gradient is a small difference of large ones: hence the part of the global
 * norm. What is dropped and what documents do not see leaves more of such differences, to which floats do not
 * hold the same bound: those settings are double's. */
#ifdef GDN_DOUBLE
static const double OWN = 1e-11, GLOBAL = 0, LOSS = 1e-11;
enum { ALL_SETTINGS = true };
#else
static const double OWN = 1e-5, GLOBAL = 1e-8, LOSS = 1e-5;
enum { ALL_SETTINGS = false };
#endif

/* A rank that fails ends all: the others may be waiting for it. */
#define die(...)                                                                                             \
    do {                                                                                                     \
        fprintf(stderr, "rank %d: ", world.rank);                                                            \
        fprintf(stderr, __VA_ARGS__);                                                                        \
        fputc('\n', stderr);                                                                                 \
        MPI_Abort(MPI_COMM_WORLD, 1);                                                                        \
    } while (0)

static const char *const kinds[] = {"bottleneck", "full", "adaptive"};
static const char *const aggregates[] = {"learned", "mean", "attention", "multihead"};
enum { VARIANTS = 28, ALL = -1 };

struct placement {
    struct mesh_shape mesh;
    int interleave;
    bool by_connection, sequence_parallel, v; /* v: the schedule zero_bubble_v */
    int context; /* ranks beside the mesh's; 0: 1 */
    const char *exchange; /* between them; NULL: gather */
};

static int context_of(const struct placement *c) {
    return c->context ? c->context : 1;
}

/* Variants 0–23 are every kind × aggregate × normalize, with other settings that go round; then a plain
 * transformer, narrow bottlenecks with long edges, what the trunk may be otherwise, and connections that are
 * listed. Every fourth has exits, in stages with and without the head; in double documents of every third do not see each
 * other, and every other one drops. */
static char *configuration(int v, const struct placement *c) {
    int kind = v % 3, aggregate = v / 3 % 4, normalize = v / 12 % 2, hidden = v == 25 ? 4 : 8;
    const char *some = v % 4 == 1 ? "[1, 3, 6]" : "[1, 2, 3, 4]",
               *distances = v == 24 || v > 25 ? "[]" : v == 25 ? "[2, 5]" : some;
    if (v == 25 || v == 27) kind = 0, aggregate = 2, normalize = 0;
    const char *edges = v == 27 ? "[[7, 6], [0, -1], [3, 2], [3, -1], [4, 0], [7, 5], [7, 0], [7, -1], [6, 1]]" : "[]";
    const bool drops = ALL_SETTINGS && v % 2 == 0, masks = ALL_SETTINGS && v % 3 == 0;
    char *text;
    assert_true(
        asprintf(&text,
            "model: {vocab_size: 29, hidden_size: 16, num_layers: 8, num_heads: 8, num_kv_heads: 4, "
            "intermediate_size: 24, %stie_embeddings: %s, logit_softcap: %g,\n"
            "  delta: {distances: %s, edges: %s, embedding_source: %s, kind: %s, hidden: %d, gate_hidden: 4, aggregate: "
            "%s, normalize: %s, attention_dim: 3, attention_heads: 4, regularizer: fixed, stage_steps: %d, l1_weight: 0.02}%s}\n"
            "train: {batch_size: 8, micro_batch_size: %d, sequence_length: %d, dropout: {residual: %g, attention: %g, gate: %g}}\n"
            "data: {packing: %s, documents: %s}\n"
            "mesh: {data: %d, tensor: %d, pipeline: %d, context: %d, context_exchange: %s, interleave: %d, schedule: %s, delta: %s, sequence_parallel: %s, "
            "bucket: 1024, small: 100, sum_group: %d}\n",
            v == 26 ? "head_dim: 6, attention_bias: all, qk_norm: head, rope_scaling: {kind: linear, factor: 3}, " : "",
            v % 5 == 2 ? "true" : "false", v % 3 == 2 ? 0.8 : 0, distances, edges,
            v % 2 && v != 27 ? "true" : "false",
            kinds[kind], hidden, aggregates[aggregate], normalize ? "true" : "false", v == 27 ? 0 : 5,
            v % 4 == 2 ? ", exit: {layers: [0, 3, 6], weights: [0.2, 0.3, 0.4]}" : "",
             c->context && c->mesh.data == 1 && v % 2 == 0 ? 2 : 1, c->context ? 16 : 6, drops ? 0.2 : 0, drops ? 0.3 : 0, drops ? 0.1 : 0,
             v % 2 ? "best_fit" : "stream",
             masks ? "mask" : "join", c->mesh.data, c->mesh.tensor, c->mesh.pipeline, context_of(c), c->exchange ? c->exchange : "gather", c->interleave,
             c->v ? "zero_bubble_v" : "1f1b", c->by_connection ? "connection" : "channel", c->sequence_parallel ? "true" : "false",
             v % 2 && c->mesh.data * context_of(c) == 4 ? 2 : 1) > 0);
    return text;
}

/* Weights far from their start, where many gradients are zero: a function of name and place. (From other
 * starts a single `mix`, a sum over tokens and channels that cancels, may miss the float bound by half;
 * double's holds.) */
static double fill(const struct row *row, long element) {
    double noise = random_normal(5, random_name(row->name), (uint64_t)element);
    bool one = row->ndim == 1 && (strstr(row->name, "norm") || strstr(row->name, "mix"));
    return strstr(row->name, "scale") ? 4 + noise : (one ? 1 : 0) + 0.2 * noise;
}

/* Place in the global tensor of element k of a rank's part, as in memory. */
static long place(const struct row *row, long k) {
    long i = row->transposed ? k % row->local[0] : k / row->local[1];
    long j = row->transposed ? k / row->local[0] : k % row->local[1];
    return (row->start[0] + i) * row->shape[1] + row->start[1] + j;
}

static void fill_weights(const struct table *table, real *weight) {
    for (int i = 0; i < table->rows; i++)
        for (long k = 0; k < table->row[i].count; k++)
            weight[table->row[i].offset + k] = (real)(float)fill(&table->row[i], place(&table->row[i], k));
}

static int32_t token(long sample, long at, int vocab) {
    return (int32_t)(random_bits(9, (uint64_t)sample, (uint64_t)at) % (uint64_t)vocab);
}

/* Of a masked batch of 8 no target of every third sample counts, which is a micro-batch, and each data rank has
 * another number of those that do. */
static bool masked;
/* Such a batch has padding too: of samples that begin at 1, 4, … the last two inputs. */
static bool pads(const struct config *config, long sample, long at) {
    return masked && sample % 3 == 1 && at >= config->train.sequence_length - 2;
}
static bool counts(long sample, long at) {
    return !masked || (sample % 3 && random_bits(10, (uint64_t)sample, (uint64_t)at) % 3);
}

/* Does a document begin there? Most of 16 tokens begin before a piece that they reach into. */
static bool opens(long sample, long at) {
    return random_bits(11, (uint64_t)sample, (uint64_t)at) % 5 == 0;
}

static int32_t *make_rows(const struct config *config, long first, long count) {
    long width = config->train.sequence_length + 1;
    int32_t *rows = malloc((size_t)(count * width) * sizeof *rows);
    assert_non_null(rows);
    for (long s = 0; s < count; s++)
        for (long t = 0; t < width; t++) {
            rows[s * width + t] = token(first + s, t, config->model.vocab_size);
            if (!counts(first + s, t)) rows[s * width + t] |= MARK_UNCOUNTED;
            if (opens(first + s, t)) rows[s * width + t] |= MARK_DOCUMENT;
            if (pads(config, first + s, t)) rows[s * width + t] |= MARK_PADDING;
        }
    return rows;
}

/* 1 / (targets of the whole batch that count). */
static double target_weight(const struct config *config) {
    long counted = 0;
    for (long s = 0; s < config->train.batch_size; s++)
        for (long t = 1; t <= config->train.sequence_length; t++) counted += counts(s, t);
    return 1 / (double)counted;
}

/* 1 / (its tokens but for padding). */
static double token_weight(const struct config *config) {
    long tokens = 0;
    for (long s = 0; s < config->train.batch_size; s++)
        for (long t = 0; t < config->train.sequence_length; t++) tokens += !pads(config, s, t);
    return 1 / (double)tokens;
}

/* The whole model's gradients of the whole batch, by this rank alone, added to `gradient` [global.total]. */
static struct loss_sums alone(const struct run *run, const struct loss_options *options, real *gradient,
                              double *absolute) {
    const struct config *config = &run->config;
    const struct table *table = &run->part.global;
    struct state state = {.weight = calloc((size_t)table->total, sizeof(real)), .gradient = gradient};
    struct model *model;
    assert_non_null(state.weight);
    fill_weights(table, state.weight);
    long length = config->train.sequence_length, batch = config->train.batch_size;
    struct axis one = axis_alone("tensor");
    const struct layout full = layout_full();
    const struct model_part part = {.layout = &full,
                                    .tensor = &one,
                                    .padding = masked,
                                    .documents = config->data.documents == DOCUMENTS_MASK};
    const long micro_batch = run->part.micro_batch; /* as ranks add up: floats differ by what meshes do */
    one.ops = run->ops;
    assert_int_equal(model_create(&config->model, table, &state, run->ops, &part, micro_batch, length, true, &model), 0);
    int32_t *rows = make_rows(config, 0, batch);
    real *stream = calloc((size_t)(micro_batch * length * config->model.hidden_size), sizeof *stream);
    assert_non_null(stream);
    struct loss_sums all = {0};
    for (long at = 0; at < batch; at += micro_batch) {
        struct pass pass = {.rows = rows + at * (length + 1),
                            .batch = micro_batch, .length = length, .sequence = at,
                            .options = options,
                            .gradient = stream};
        model_stage_forward(model, &pass, &all);
        model_stage_backward(model, &pass, config->model.num_layers, -1, &all);
    }
    free(stream);
    *absolute = add_absolute(table, &state, options);
    model_free(model);
    free(rows);
    free(state.weight);
    return all;
}

/* The same on all ranks, computed by rank 0. free() *gradient. */
static struct loss_sums reference(const struct run *run, const struct loss_options *options,
                                  real **gradient, double *absolute) {
    struct loss_sums sums = {0};
    long n = run->part.global.total;
    *gradient = calloc((size_t)n, sizeof(real));
    assert_non_null(*gradient);
    if (world.rank == 0) sums = alone(run, options, *gradient, absolute);
    assert_int_equal(mesh_broadcast(&world, &sums, sizeof sums), 0);
    assert_int_equal(mesh_broadcast(&world, absolute, sizeof *absolute), 0);
    assert_int_equal(mesh_broadcast(&world, *gradient, n * (long)sizeof(real)), 0);
    return sums;
}

static bool close_to(double a, double b) {
    return fabs(a - b) <= LOSS * fabs(b);
}

/* Adds up, for every tensor of the model, the squared differences of the parts that ranks own, each once, and
 * their elements. */
static void compare_parts(struct run *run, const real *right, double *difference, double *elements) {
    for (int p = 0; p < run->part.shards->pieces; p++) {
        const struct piece *piece = &run->part.shards->piece[p];
        const struct row *row = &run->part.table->row[piece->row];
        bool sharded = run->part.shards->bucket[piece->bucket].sharded;
        if (!row->counted || (!sharded && run->mesh.axis[AXIS_COPIES].index)) continue;
        const struct row *global = params_find(&run->part.global, row->name);
        long w = global - run->part.global.row;
        for (long k = piece->first; k < piece->first + piece->count; k++) {
            long g = place(row, k),
                 at = global->transposed ? g % global->shape[1] * global->shape[0] + g / global->shape[1] : g;
            double d =
                (double)run->training.state.gradient[row->offset + k] - (double)right[global->offset + at];
            difference[w] += d * d;
        }
        elements[w] += (double)piece->count;
    }
}

static double norm_of(const real *x, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static void compare_gradients(struct run *run, const real *right, int active, const char *what) {
    int rows = run->part.global.rows;
    double *sums = calloc(2 * (size_t)rows, sizeof *sums), *elements = sums + rows,
           all = norm_of(right, run->part.global.total);
    assert_non_null(sums);
    compare_parts(run, right, sums, elements);
    assert_int_equal(mesh_sum(&run->mesh, sums, 2 * rows), 0);
    for (int i = 0; i < rows; i++) {
        const struct row *row = &run->part.global.row[i];
        double own = norm_of(right + row->offset, row->count), off = sqrt(sums[i]);
        if (elements[i] != (double)row->count)
            die("%s: %s: %.0f of %ld elements are owned", what, row->name, elements[i], row->count);
        if (!(off <= OWN * own + GLOBAL * all))
            die("%s: the gradient of %s differs by %g of its norm %g (all: %g)", what, row->name, off / own,
                own, all);
        /* Else nothing is tested. (One connection alone has nothing to select from.) */
        if (params_active(row, pipeline_active(&run->part.pipeline, active)) && !row->select && own == 0)
            die("%s: the gradient of %s is zero", what, row->name);
    }
    free(sums);
}

/* This rank's part of the batch, as run_data_read leaves it. */
static void take_rows(struct run *run) {
    const struct axis *context = &run->mesh.axis[AXIS_CONTEXT];
    const long share = run->part.share, length = run->config.train.sequence_length;
    run->data.rows = make_rows(&run->config, run->mesh.batch.index * share, share);
    if (context->size == 1) return;
    run->data.pieces = malloc((size_t)(share * (length + 2)) * sizeof *run->data.pieces);
    assert_non_null(run->data.pieces);
    pieces_cut(context->size, context->index, share, length, run->data.rows, run->data.pieces);
}

static void check(int v, const struct placement *c, int active) {
    char *text = configuration(v, c), what[200];
    snprintf(what, sizeof what, "mesh %d.%d.%d context %d %s interleave %d%s%s%s, variant %d (%s, %s), %d distances",
             c->mesh.data, c->mesh.tensor, c->mesh.pipeline, context_of(c), c->exchange ? c->exchange : "", c->interleave, c->v ? ", in a V" : "",
             c->by_connection ? ", by connection" : "", c->sequence_parallel ? ", sequence parallel" : "", v,
             kinds[v % 3], aggregates[v / 3 % 4], active);
    struct config config;
    struct run run;
    run_init(&run);
    run.mesh = world;
    if (config_parse(text, "test", NULL, 0, &config) || run_configure_as(&run, &config) ||
        run_prepare(&run, NULL) || run_plan(&run) || run_reserve(&run) || run_load(&run, NULL))
        die("%s: %s", what, gdn_failure());
    world = run.mesh; /* laid out anew */
    fill_weights(run.part.table, run.training.state.weight);
    masked = v % 2;
    take_rows(&run);
    if (run_create(&run)) die("%s: %s", what, gdn_failure());
    if (active == ALL) active = run.config.model.delta.num_distances;
    struct loss_options options = {.active = pipeline_active(&run.part.pipeline, active),
                                   .target_weight = target_weight(&run.config),
                                   .token_weight = token_weight(&run.config),
                                   .sparsity_weight = 0.3,
                                   .entropy_weight = 0.2,
                                   .z_weight = v % 4 < 2 ? 0.1 : 0,
                                   .l1_weight = 0.02,
                                   .masks = dropout_key(run.config.train.seed, 7),
                                   .measure = true};
    exit_weights(&run.config.model.exit, 0, 1, options.exit_weight);
    struct step step = loop_batch(&run, &options);
    if (execute(run.trainer.executor, &step)) die("%s: %s", what, gdn_failure());

    real *right;
    double absolute = 0;
    struct loss_sums one = reference(&run, &options, &right, &absolute);
    double sums[5] = {step.sums.ce, step.sums.sparsity, step.sums.entropy, step.sums.z, step.absolute};
    assert_int_equal(mesh_sum(&run.mesh, sums, 5), 0);
    assert_int_equal(mesh_sum(&run.mesh, step.sums.exits, MAX_EXITS), 0);
    for (int e = 0; e < MAX_EXITS; e++)
        if (!close_to(step.sums.exits[e], one.exits[e]) || (one.exits[e] > 0) != (e < run.config.model.exit.num_layers))
            die("%s: exit %d has %.17g instead of %.17g", what, e, step.sums.exits[e], one.exits[e]);
    if (!close_to(sums[0], one.ce) || !close_to(sums[1], one.sparsity) || !close_to(sums[2], one.entropy))
        die("%s: sums %.17g %.17g %.17g instead of %.17g %.17g %.17g", what, sums[0], sums[1], sums[2],
            one.ce, one.sparsity, one.entropy);
    if (!close_to(sums[3], one.z) || !close_to(sums[4], absolute))
        die("%s: sums %.17g %.17g instead of %.17g %.17g", what, sums[3], sums[4], one.z, absolute);
    compare_gradients(&run, right, active, what);
    free(right);
    free(text);
    run_free(&run);
}

static void every_variant(const struct placement *c) {
    for (int v = 0; v < VARIANTS; v++) check(v, c, ALL);
    check(3, c, 2); /* the farther distances are not introduced yet */
}

/* Every kind with every aggregate, half of them with `normalize`, and the last three. */
static void every_pair(const struct placement *c) {
    for (int v = 0; v < VARIANTS; v++)
        if (v >= 24 || (v + v / 12) % 2 == 0) check(v, c, ALL);
}

static void on_every_mesh(void **state) {
    (void)state;
    for (int i = 0; i < meshes_count; i++) {
        struct placement c = {.mesh = meshes[i], .interleave = 1};
        if (mesh_ranks(c.mesh) != test_ranks) continue;
        every_variant(&c);
        if (c.mesh.pipeline > 1 && c.mesh.pipeline <= 4) {
            c.interleave = 2;
            every_pair(&c);
            c.interleave = 1, c.v = true;
            every_pair(&c);
            c.v = false;
        }
        if (c.mesh.tensor == 1) continue;
        c.by_connection = true;
        every_pair(&c);
        c.by_connection = false, c.sequence_parallel = true;
        every_pair(&c);
    }
}

/* What attention may be otherwise, by the other exchanges between context ranks, which know nothing of connections. */
static void other_exchanges(struct placement *c) {
    static const char *const exchanges[] = {"ring", "heads"};
    static const int variants[] = {3, 24, 26};
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++) {
        c->exchange = exchanges[i];
        if (!strcmp(c->exchange, "heads") && c->mesh.tensor * c->context > 4) continue; /* key/value heads */
        for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) check(variants[v], c, ALL);
    }
    c->exchange = NULL;
}

/* Each mesh of half and of a quarter as many ranks, with two and four context ranks beside each of its. */
static void with_context_ranks(void **state) {
    (void)state;
    for (int i = 0; i < meshes_count; i++)
        for (int context = 2; context <= 4; context *= 2) {
            struct placement c = {.mesh = meshes[i], .interleave = 1, .context = context};
            if (mesh_ranks(c.mesh) * context != test_ranks) continue;
            every_pair(&c);
            other_exchanges(&c);
            if (c.mesh.tensor == 1) continue;
            c.by_connection = c.sequence_parallel = true;
            check(3, &c, 2);
            other_exchanges(&c);
        }
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_every_mesh), cmocka_unit_test(with_context_ranks)};
    return run_on_ranks(tests, world_create, world_free);
}
