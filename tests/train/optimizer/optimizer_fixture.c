#include "tests/train/optimizer/optimizer_fixture.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/backends/backends.h"
#include "kernels/base/random.h"
#include "model/rules/rules.h"
#include "model/table/params.h"
#include "tests/support/unit.h"
#include "train/optimizer/groups.h"

struct model_config sizes = {
    .vocab_size = 61,
    .hidden_size = 32,
    .num_layers = 3,
    .num_heads = 4,
    .num_kv_heads = 4,
    .intermediate_size = 48,
    .delta = {.distances = {1, 2},
              .num_distances = 2,
              .kind = KIND_BOTTLENECK,
              .hidden = 4,
              .gate_hidden = 3,
              .aggregate = AGGREGATE_ATTENTION,
              .attention_dim = 5,
              .stage_steps = STAGE_STEPS},
};

bool split_over_tensor;
int delta_split = DELTA_CHANNEL;

struct train_config settings = {
    .beta1 = 0.9, .beta2 = 0.95, .adam_eps = 1e-8, .weight_decay = 0.1, .grad_clip = 1};

void set_up(struct fixture *f, struct mesh *mesh, long bucket) {
    const int copies = mesh->axis[AXIS_DATA].size, group = copies % 4 ? 1 : 2; /* four copies in two groups */
    *f = (struct fixture){.model = sizes, .layout = layout_full(), .mesh = mesh};
    f->layout.size[AXIS_DATA] = copies;
    if (split_over_tensor) {
        f->layout.size[AXIS_TENSOR] = mesh->axis[AXIS_TENSOR].size;
        f->layout.index[AXIS_TENSOR] = mesh->axis[AXIS_TENSOR].index;
    }
    f->layout.delta = delta_split;
    f->layout.small = 100;
    assert_int_equal(edges_create(&f->model, &f->edges), 0);
    for (int a = 0; a < 3; a++) assert_int_equal(edges_introduced(&f->edges, a, &f->active[a]), 0);
    assert_int_equal(params_create(&f->model, &f->layout, &f->table), 0);
    optimizer_treat(&settings, &f->table);
    assert_int_equal(
        shards_create(&f->table, copies, mesh->axis[AXIS_DATA].index, group, bucket, &f->shards), 0);
    assert_int_equal(state_reserve(&f->memory, NULL, 0, &f->table, STATE_TRAINING, &f->shards, &f->state), 0);
    size_t n = (size_t)f->table.total, rows = (size_t)f->table.rows;
    f->w = calloc(n, sizeof(double)), f->m = calloc(n, sizeof(double)), f->v = calloc(n, sizeof(double));
    f->steps = calloc(rows, sizeof(int64_t));
    f->owned = calloc(n, sizeof *f->owned);
    for (int i = 0; i < f->shards.pieces; i++) {
        const struct piece *piece = &f->shards.piece[i];
        for (long e = 0; e < piece->count; e++)
            f->owned[f->table.row[piece->row].offset + piece->first + e] = true;
    }
    for (size_t i = 0; i < n; i++) f->w[i] = f->state.weight[i] = (real)(float)random_normal(1, 2, i);
    f->optimizer = (struct optimizer){.ops = ops_find("reference"),
                                      .model = &f->model,
                                      .train = &settings,
                                      .table = &f->table,
                                      .shards = &f->shards,
                                      .mesh = mesh,
                                      .state = &f->state};
    assert_int_equal(optimizer_reserve(&f->optimizer), 0);
}

void tear_down(struct fixture *f) {
    optimizer_free(&f->optimizer);
    shards_free(&f->shards);
    params_free(&f->table);
    for (int a = 0; a < 3; a++) edge_set_free(&f->active[a]);
    edges_free(&f->edges);
    state_free(&f->memory);
    free(f->owned), free(f->steps), free(f->w), free(f->m), free(f->v);
}

double norm_of(struct fixture *f, int active) {
    double norm;
    assert_int_equal(optimizer_norm(&f->optimizer, &f->active[active], &norm), 0);
    return norm;
}

void update(struct fixture *f, int active, double lr, double norm) {
    assert_int_equal(optimizer_begin(&f->optimizer, &f->active[active], optimizer_clip(&f->optimizer, norm)),
                     0);
    const struct rates rates = {.lr = lr, .decay = decay_left, .gscale = optimizer_clip(&f->optimizer, norm)};
    for (int b = f->shards.buckets - 1; b >= 0; b--) /* in whatever order */
        optimizer_update(&f->optimizer, b, &f->active[active], &rates);
}

double draw_gradients(struct fixture *f, int step, int active, double size) {
    double square = 0;
    for (int r = 0; r < f->table.rows; r++) {
        const struct row *row = &f->table.row[r];
        bool on = params_active(row, &f->active[active]);
        uint64_t what = random_name(row->name) + (uint64_t)step;
        for (long i = row->offset; i < row->offset + row->count; i++) {
            real g = on ? (real)(size * random_normal(9, what, (uint64_t)(i - row->offset))) : 0;
            f->state.gradient[i] = f->owned[i] ? g : NAN;
            square += (double)g * g;
        }
    }
    return square;
}
