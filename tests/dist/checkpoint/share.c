#include "tests/dist/checkpoint/share.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dist/layout/stages.h"
#include "kernels/base/random.h"

const struct spot spots[] = {
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
_Static_assert(sizeof spots / sizeof spots[0] == SPOTS, "all spots");

const struct model_config models[] = {
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
_Static_assert(sizeof models / sizeof models[0] == MODELS, "all models");

int size_of(const struct spot *spot) {
    return spot->data * spot->tensor * spot->pipeline;
}

bool fits(const struct spot *spot) {
    return size_of(spot) <= world.size;
}

bool on(const struct spot *spot) {
    return fits(spot) && world.rank < size_of(spot);
}

struct mesh meshes_of_spots[SPOTS];

void make_mesh(const struct spot *spot, struct mesh *out) {
    int t = world.rank % spot->tensor, d = world.rank / spot->tensor % spot->data,
        p = world.rank / spot->tensor / spot->data;
    *out = mesh_alone();
    MPI_Comm_split(world.world, on(spot) ? 0 : MPI_UNDEFINED, world.rank, &out->world);
    if (!on(spot)) return;
    MPI_Comm_rank(out->world, &out->rank);
    MPI_Comm_size(out->world, &out->size);
    snprintf(out->host, sizeof out->host, "node%d",
             out->rank / 3); /* nodes of three ranks, as files see them */
    assert_int_equal(
        axis_create("tensor", out->world, world.rank - t, t, spot->tensor, &out->axis[AXIS_TENSOR]), 0);
    assert_int_equal(
        axis_create("data", out->world, world.rank - d * spot->tensor, d, spot->data, &out->axis[AXIS_DATA]),
        0);
    assert_int_equal(axis_create("pipeline", out->world, t + d * spot->tensor, p, spot->pipeline,
                                 &out->axis[AXIS_PIPELINE]),
                     0);
}

real *room(long count) {
    return calloc((size_t)count + 1, sizeof(real));
}

void fill(real *memory, long count, real x) {
    for (long i = 0; i < count; i++) memory[i] = x;
}

/* Of all tensors two moments; of the second model's trunk's matrices one of another name, as where matrices
 * have an optimiser of their own. */
static void treat(const struct model_config *model, struct table *table) {
    static const struct moments two = {2, {"exp_avg", "exp_avg_sq"}}, one = {1, {"momentum"}};
    for (int i = 0; i < table->rows; i++) {
        struct row *row = &table->row[i];
        bool other = model == &models[1] && row->ndim == 2 && !row->distance && row->layer >= 0;
        row->treatment.moments = other ? &one : &two;
    }
}

struct share *share_new(const struct spot *spot, const struct model_config *model) {
    struct share *s = calloc(1, sizeof *s);
    if (!on(spot)) return s;
    s->mesh = &meshes_of_spots[spot - spots];
    double cost[64];
    for (int l = 0; l < model->num_layers; l++) cost[l] = 1;
    assert_int_equal(stages_cut(model->num_layers, cost, 0.5, 0.5, spot->pipeline * spot->chunks, s->stage),
                     0);
    struct layout layout = {.size[AXIS_DATA] = spot->data,
                            .size[AXIS_TENSOR] = spot->tensor,
                            .index[AXIS_TENSOR] = s->mesh->axis[AXIS_TENSOR].index,
                            .delta = spot->delta,
                            .sequence_parallel = spot->sequence_parallel,
                            .size[AXIS_PIPELINE] = spot->pipeline,
                            .index[AXIS_PIPELINE] = s->mesh->axis[AXIS_PIPELINE].index,
                            .chunks = spot->chunks,
                            .stage = s->stage,
                            .small = spot->small,
                            .narrow = spot->narrow};
    assert_int_equal(params_create(model, NULL, &s->global), 0);
    assert_int_equal(params_create(model, &layout, &s->table), 0);
    treat(model, &s->global);
    treat(model, &s->table);
    assert_int_equal(
        shards_create(&s->table, spot->data, s->mesh->axis[AXIS_DATA].index, 1, spot->bucket, &s->shards), 0);
    s->state = (struct state){.weight = room(s->table.total),
                              .moment[0] = room(s->shards.kept[0]),
                              .moment[1] = room(s->shards.kept[1]),
                              .steps = calloc((size_t)s->table.rows + 1, sizeof(int64_t))};
    return s;
}

void share_free(struct share *s) {
    free(s->state.weight);
    free(s->state.moment[0]);
    free(s->state.moment[1]);
    free(s->state.steps);
    shards_free(&s->shards);
    params_free(&s->table);
    params_free(&s->global);
    free(s);
}

struct checkpoint_content content_of(struct share *s) {
    return (struct checkpoint_content){
        .global = &s->global, .table = &s->table, .shards = &s->shards, .state = &s->state};
}

/* ---------------------------------------------------------------------------------- analytic values */

real value(const struct row *row, int group, long i) {
    long line = row->transposed ? row->local[0] : row->local[1], a = i / line, b = i % line;
    long r = row->start[0] + (row->transposed ? b : a), c = row->start[1] + (row->transposed ? a : b);
    uint64_t bits = random_bits(random_name(row->name), (uint64_t)group, (uint64_t)(r * row->shape[1] + c));
    return (real)(float)(bits >> 41) - (real)4194304;
}

static int64_t steps_of(const struct row *row) {
    return (int64_t)(random_name(row->name) >> 8);
}

void clear(struct share *s) {
    fill(s->state.weight, s->table.total, (real)NAN);
    for (int m = 0; m < 2; m++) fill(s->state.moment[m], s->shards.kept[m], (real)NAN);
    for (int i = 0; i < s->table.rows; i++) s->state.steps[i] = -7;
}

long each_value(struct share *s, bool set) {
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
        for (int m = 0; m < row->treatment.moments->count; m++)
            for (long j = 0; j < piece->count; j++) {
                real *x = &s->state.moment[m][shards_place(&s->shards, piece, m) + j];
                if (set) *x = value(row, 1 + m, piece->first + j);
                wrong += *x != value(row, 1 + m, piece->first + j);
            }
    }
    return wrong;
}
