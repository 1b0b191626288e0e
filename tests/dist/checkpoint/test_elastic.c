/* Elastic checkpoints: what one mesh has saved, any other loads, every element in its place. All tensors and
 * moments hold a function of (tensor, group, global index), so that a layer or shard in a wrong place shows.
 * Runs on as many ranks as it is given; meshes of fewer ranks use the first of them, larger ones are left
 * out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dist/layout/stages.h"
#include "kernels/base/random.h"
#include "model/params/params.h"
#include "tests/dist/checkpoint/sample.h"
#include "tests/support/scratch.h"
#include "tests/support/world.h"

/* A mesh and how a model lies on it. */
struct spot {
    const char *name;
    int data, tensor, pipeline, chunks;
    long bucket, small;
    int delta; /* enum delta_split */
    bool sequence_parallel, narrow;
    enum checkpoint_files files;
};

static const struct spot spots[] = {
    {"1·1·1", 1, 1, 1, 1, 1 << 20, 100, DELTA_CHANNEL, false, false, FILES_ONE},
    {"2·1·1", 2, 1, 1, 1, 3000, 100, DELTA_CHANNEL, false, false, FILES_NODE},
    {"1·2·1", 1, 2, 1, 1, 1 << 20, 600, DELTA_CHANNEL, true, false, FILES_ONE},
    {"1·1·2", 1, 1, 2, 1, 1, 0, DELTA_CHANNEL, false, true, FILES_NODE},
    {"3·1·1", 3, 1, 1, 1, 5000, 1 << 20, DELTA_CHANNEL, false, false,
     FILES_ONE}, /* all small: replicated moments */
    {"2·2·1", 2, 2, 1, 1, 4096, 64, DELTA_CONNECTION, false, false, FILES_NODE},
    {"1·4·1", 1, 4, 1, 1, 2048, 100, DELTA_CHANNEL, true, false, FILES_ONE},
    {"4·1·1", 4, 1, 1, 1, 1, 0, DELTA_CHANNEL, false, false, FILES_NODE},
    {"2·1·2", 2, 1, 2, 1, 10000, 300, DELTA_CHANNEL, false, true, FILES_ONE},
    {"1·2·2 in 2 chunks", 1, 2, 2, 2, 2048, 100, DELTA_CONNECTION, true, false, FILES_NODE},
    {"1·1·4", 1, 1, 4, 1, 7000, 50, DELTA_CHANNEL, false, true, FILES_ONE},
    {"2·2·2 in 2 chunks", 2, 2, 2, 2, 3000, 200, DELTA_CHANNEL, true, true, FILES_NODE},
    {"4·2·1", 4, 2, 1, 1, 1, 0, DELTA_CONNECTION, false, false, FILES_ONE},
    {"3·1·2 in 2 chunks", 3, 1, 2, 2, 6000, 100, DELTA_CHANNEL, false, true, FILES_NODE},
    {"1·4·2", 1, 4, 2, 1, 1 << 20, 100, DELTA_CHANNEL, true, true, FILES_ONE},
    {"1·1·8", 1, 1, 8, 1, 2048, 100, DELTA_CHANNEL, false, true, FILES_NODE},
    {"4·2·2 in 3 chunks", 4, 2, 2, 3, 4096, 100, DELTA_CHANNEL, false, true, FILES_ONE},
};
enum { SPOTS = sizeof spots / sizeof spots[0] };

/* Models with every kind of row: odd vocabulary, transposed stacks, selection weights, tied embeddings. */
static const struct model_config models[] = {
    {.vocab_size = 101,
     .hidden_size = 32,
     .num_layers = 8,
     .num_heads = 4,
     .num_kv_heads = 4,
     .intermediate_size = 44,
     .tie_embeddings = true,
     .delta = {.distances = {1, 2, 4},
               .num_distances = 3,
               .embedding_source = true,
               .kind = KIND_BOTTLENECK,
               .hidden = 20,
               .gate_hidden = 6,
               .aggregate = AGGREGATE_ATTENTION,
               .attention_dim = 5}},
    {.vocab_size = 67,
     .hidden_size = 32,
     .num_layers = 8,
     .num_heads = 4,
     .num_kv_heads = 4,
     .intermediate_size = 40,
     .delta = {.distances = {1, 3},
               .num_distances = 2,
               .kind = KIND_FULL,
               .hidden = 8,
               .gate_hidden = 4,
               .normalize = true,
               .aggregate = AGGREGATE_MULTIHEAD,
               .attention_dim = 8,
               .attention_heads = 4}},
    {.vocab_size = 67,
     .hidden_size = 32,
     .num_layers = 8,
     .num_heads = 4,
     .num_kv_heads = 4,
     .intermediate_size = 40,
     .delta = {.distances = {1, 2},
               .num_distances = 2,
               .kind = KIND_ADAPTIVE,
               .hidden = 8,
               .gate_hidden = 4,
               .aggregate = AGGREGATE_LEARNED}},
};
enum { MODELS = sizeof models / sizeof models[0] };

/* ------------------------------------------------------------------------ a rank's share of a model */

struct share {
    const struct mesh *mesh;
    struct table whole, table;
    struct shards shards;
    struct state state;
    struct span stage[64];
};

static int size_of(const struct spot *spot) {
    return spot->data * spot->tensor * spot->pipeline;
}

static bool fits(const struct spot *spot) {
    return size_of(spot) <= world.size;
}

static bool on(const struct spot *spot) {
    return fits(spot) && world.rank < size_of(spot);
}

static struct mesh meshes[SPOTS];

/* The mesh of the first ranks. */
static void make_mesh(const struct spot *spot, struct mesh *out) {
    int t = world.rank % spot->tensor, d = world.rank / spot->tensor % spot->data,
        p = world.rank / spot->tensor / spot->data;
    *out = mesh_alone();
    MPI_Comm_split(world.world, on(spot) ? 0 : MPI_UNDEFINED, world.rank, &out->world);
    if (!on(spot)) return;
    MPI_Comm_rank(out->world, &out->rank);
    MPI_Comm_size(out->world, &out->size);
    snprintf(out->host, sizeof out->host, "node%d",
             out->rank / 3); /* nodes of three ranks, as files see them */
    assert_int_equal(axis_create("tensor", out->world, world.rank - t, t, spot->tensor, &out->tensor), 0);
    assert_int_equal(
        axis_create("data", out->world, world.rank - d * spot->tensor, d, spot->data, &out->data), 0);
    assert_int_equal(
        axis_create("pipeline", out->world, t + d * spot->tensor, p, spot->pipeline, &out->pipeline), 0);
}

static real *room(long count) {
    return calloc((size_t)count + 1, sizeof(real));
}

static void fill(real *memory, long count, real x) {
    for (long i = 0; i < count; i++) memory[i] = x;
}

static struct share *share_new(const struct spot *spot, const struct model_config *model) {
    struct share *s = calloc(1, sizeof *s);
    if (!on(spot)) return s;
    s->mesh = &meshes[spot - spots];
    double cost[64];
    for (int l = 0; l < model->num_layers; l++) cost[l] = 1;
    assert_int_equal(stages_cut(model->num_layers, cost, 0.5, 0.5, spot->pipeline * spot->chunks, s->stage),
                     0);
    struct layout layout = {.data = spot->data,
                            .tensor = spot->tensor,
                            .tensor_index = s->mesh->tensor.index,
                            .delta = spot->delta,
                            .sequence_parallel = spot->sequence_parallel,
                            .pipeline = spot->pipeline,
                            .pipeline_index = s->mesh->pipeline.index,
                            .chunks = spot->chunks,
                            .stage = s->stage,
                            .small = spot->small,
                            .narrow = spot->narrow};
    assert_int_equal(params_create(model, NULL, &s->whole), 0);
    assert_int_equal(params_create(model, &layout, &s->table), 0);
    assert_int_equal(shards_create(&s->table, spot->data, s->mesh->data.index, spot->bucket, &s->shards), 0);
    s->state = (struct state){.weight = room(s->table.total),
                              .exp_avg = room(s->shards.moments),
                              .exp_avg_sq = room(s->shards.moments),
                              .steps = calloc((size_t)s->table.rows + 1, sizeof(int64_t))};
    return s;
}

static void share_free(struct share *s) {
    free(s->state.weight);
    free(s->state.exp_avg);
    free(s->state.exp_avg_sq);
    free(s->state.steps);
    shards_free(&s->shards);
    params_free(&s->table);
    params_free(&s->whole);
    free(s);
}

static struct checkpoint_content content_of(struct share *s) {
    return (struct checkpoint_content){
        .whole = &s->whole, .table = &s->table, .shards = &s->shards, .state = &s->state};
}

/* A barrier in which those who wait sleep: there are fewer cores than ranks. */
static void wait_for_all(void) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(world.world, &request);
    while (!done) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) usleep(200);
    }
}

/* ---------------------------------------------------------------------------------- analytic values */

/* Of element i, as in memory, of the rank's part of a tensor. 23 bits, which float32 holds. */
static real value(const struct row *row, int group, long i) {
    long line = row->transposed ? row->local[0] : row->local[1], a = i / line, b = i % line;
    long r = row->start[0] + (row->transposed ? b : a), c = row->start[1] + (row->transposed ? a : b);
    uint64_t bits = random_bits(random_name(row->name), (uint64_t)group, (uint64_t)(r * row->shape[1] + c));
    return (real)(float)(bits >> 41) - (real)4194304;
}

static int64_t steps_of(const struct row *row) {
    return (int64_t)(random_name(row->name) >> 8);
}

/* Forgets everything; what is not loaded then shows, and so would padding that is saved. */
static void clear(struct share *s) {
    fill(s->state.weight, s->table.total, (real)NAN);
    fill(s->state.exp_avg, s->shards.moments, (real)NAN);
    fill(s->state.exp_avg_sq, s->shards.moments, (real)NAN);
    for (int i = 0; i < s->table.rows; i++) s->state.steps[i] = -7;
}

/* Goes through all that a rank has, to set it or to count what is wrong. */
static long each_value(struct share *s, bool set) {
    long wrong = 0;
    for (int i = 0; i < s->table.rows; i++) {
        const struct row *row = &s->table.row[i];
        for (long j = 0; j < row->count; j++) {
            real *x = &s->state.weight[row->offset + j];
            if (set) *x = value(row, 0, j);
            wrong += *x != value(row, 0, j);
        }
        if (set) s->state.steps[i] = steps_of(row);
        wrong += s->state.steps[i] != steps_of(row);
    }
    for (int i = 0; i < s->shards.pieces; i++) {
        const struct piece *piece = &s->shards.piece[i];
        const struct row *row = &s->table.row[piece->row];
        real *const moments[] = {s->state.exp_avg, s->state.exp_avg_sq};
        for (int m = 0; m < 2; m++)
            for (long j = 0; j < piece->count; j++) {
                real *x = &moments[m][piece->moment + j];
                if (set) *x = value(row, 1 + m, piece->first + j);
                wrong += *x != value(row, 1 + m, piece->first + j);
            }
    }
    return wrong;
}

/* ------------------------------------------------------------------------------------------- tests */

static const char *folder_of(const char *folder, int model, int spot) {
    return format("%s/%d-%d", folder, model, spot);
}

static const char *file_of(const char *folder, int model, int spot) {
    return format("%s/checkpoints/step_00000005/checkpoint.h5", folder_of(folder, model, spot));
}

static void save_on(const char *folder, int model, int spot, struct share *s) {
    if (!on(&spots[spot])) return;
    struct checkpoint_content content = content_of(s);
    struct checkpoint_info info = sample_info(5, 1.5, 1.25);
    clear(s);
    each_value(s, true);
    int status = checkpoint_save(s->mesh, folder_of(folder, model, spot), &content, &info,
                                 &(struct checkpoint_keep){0}, spots[spot].files);
    assert_string_equal(gdn_failure(), "");
    assert_int_equal(status, 0);
}

static void load_on(const char *folder, int model, int from, int to, struct share *s) {
    if (!on(&spots[to])) return;
    struct checkpoint checkpoint;
    struct checkpoint_content content = content_of(s);
    clear(s);
    int status = checkpoint_open(s->mesh, file_of(folder, model, from), &checkpoint);
    if (!status) status = checkpoint_load(s->mesh, &checkpoint, &content);
    assert_string_equal(gdn_failure(), "");
    assert_int_equal(status, 0);
    checkpoint_close(&checkpoint);
    long wrong = each_value(s, false);
    if (wrong)
        fail_msg("rank %d: %ld wrong elements, from mesh %s to %s, model %d", world.rank, wrong,
                 spots[from].name, spots[to].name, model);
}

/* Weights alone, as starting weights. */
static void start_on(const char *folder, int model, int from, int to, struct share *s) {
    if (!on(&spots[to])) return;
    struct checkpoint_content content = content_of(s);
    int missing;
    each_value(s, true); /* moments are to stay */
    fill(s->state.weight, s->table.total, (real)NAN);
    int status = checkpoint_load_initial(s->mesh, file_of(folder, model, from), &content, &missing);
    assert_int_equal(status + missing, 0);
    assert_int_equal(each_value(s, false), 0);
}

/* Each mesh's file has the same datasets as that of one rank. */
static void compare_with_one(const char *folder, int model, int spot) {
    char text[512] = "";
    FILE *out = tmpfile();
    bool same = false;
    int status = checkpoint_diff(file_of(folder, model, 0), file_of(folder, model, spot), &same, out);
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = 0;
    fclose(out);
    if (status || !same) fail_msg("mesh %s, model %d: %s%s", spots[spot].name, model, gdn_failure(), text);
}

/* Every pair of meshes with the argument `all`, for the first model; else each mesh's file on two others. */
static bool every_pair;

/* Small meshes among themselves are tried where there are few ranks. */
static bool tried(int model, int from, int to) {
    bool small = size_of(&spots[from]) <= world.size / 2 && size_of(&spots[to]) <= world.size / 2;
    if (every_pair && model == 0) return true;
    return (every_pair || !small) && (to == (from + 1) % SPOTS || to == (from + 7) % SPOTS);
}

static void any_to_any(void **unused) {
    (void)unused;
    char *folder = scratch_folder();
    for (int m = 0; m < MODELS; m++) {
        struct share *shares[SPOTS];
        for (int i = 0; i < SPOTS; i++) shares[i] = share_new(&spots[i], &models[m]);
        for (int from = 0; from < SPOTS; from++) {
            if (!fits(&spots[from])) continue;
            if (world.rank == 0) mkdir(folder_of(folder, m, from), 0777);
            save_on(folder, m, from, shares[from]);
            if (world.rank == 0) compare_with_one(folder, m, from);
            wait_for_all();
            for (int to = 0; to < SPOTS; to++)
                if (fits(&spots[to]) && tried(m, from, to)) load_on(folder, m, from, to, shares[to]);
            int to = (from + 2) % SPOTS;
            if (m == 0 && fits(&spots[to]) && tried(m, from, (from + 1) % SPOTS))
                start_on(folder, m, from, to, shares[to]);
        }
        for (int i = 0; i < SPOTS; i++) share_free(shares[i]);
    }
    free(folder);
}

/* Every rank holds the whole model, as for evaluation: rank 0 alone writes it, all read it. */
static void whole_on_every_rank(void **unused) {
    (void)unused;
    char *folder = scratch_folder();
    struct share *s = share_new(&spots[0], &models[0]);
    struct table whole;
    assert_int_equal(params_create(&models[0], NULL, &whole), 0);
    struct state state = {.weight = room(whole.total)};
    struct checkpoint_content content = {.whole = &whole, .table = &whole, .state = &state};
    struct checkpoint_info info = sample_info(5, 1.5, 1.25);
    for (int i = 0; i < whole.rows; i++)
        for (long j = 0; j < whole.row[i].count; j++)
            state.weight[whole.row[i].offset + j] = value(&whole.row[i], 0, j);
    assert_int_equal(
        checkpoint_save(&world, folder, &content, &info, &(struct checkpoint_keep){0}, FILES_ONE), 0);
    memset(state.weight, 0, (size_t)whole.total * sizeof(real));
    struct checkpoint found;
    assert_int_equal(checkpoint_find(&world, folder, NULL, &found), 0);
    assert_non_null(found.path);
    assert_int_equal(checkpoint_load(&world, &found, &content), 0);
    checkpoint_close(&found);
    for (int i = 0; i < whole.rows; i++)
        for (long j = 0; j < whole.row[i].count; j++)
            assert_true(state.weight[whole.row[i].offset + j] == value(&whole.row[i], 0, j));
    free(state.weight);
    params_free(&whole);
    share_free(s);
    free(folder);
}

/* A tensor that no rank would write, and one that two would, are noticed before anything is written. */
static void not_a_partition(void **unused) {
    (void)unused;
    char *folder = scratch_folder();
    for (int extra = 0; extra < 2; extra++) {
        struct share *s = share_new(&spots[0], &models[1]);
        if (on(&spots[0])) {
            struct checkpoint_content content = content_of(s);
            struct checkpoint_info info = sample_info(5, 1.5, 1.25);
            each_value(s, true);
            s->table.row[3].counted = extra;
            if (extra) s->shards.piece[0] = s->shards.piece[1];
            assert_int_equal(
                checkpoint_save(s->mesh, folder, &content, &info, &(struct checkpoint_keep){0}, FILES_ONE),
                GDN_INTERNAL);
            assert_non_null(strstr(gdn_failure(), "elements to save of tensor "));
            gdn_failure_clear();
            assert_false(checkpoint_any(folder));
        }
        share_free(s);
    }
    free(folder);
}

static int set_up(void) {
    TRY(world_create());
    for (int i = 0; i < SPOTS; i++) make_mesh(&spots[i], &meshes[i]);
    return 0;
}

static void tear_down(void) {
    for (int i = 0; i < SPOTS; i++)
        if (on(&spots[i])) mesh_free(&meshes[i]);
    world_free();
}

int rank_main(void) {
    every_pair = test_argument(1) && !strcmp(test_argument(1), "all");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_to_any),
        cmocka_unit_test(whole_on_every_rank),
        cmocka_unit_test(not_a_partition),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
