/* AdamW over a model's parameter table, against a plain element-by-element update: which tensors are touched
 * at which step, clipping, decay, and a bias correction of its own for each tensor; on shards, where the norm
 * must not show how buckets were cut or how many ranks there are. Runs on any number of ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/random.h"
#include "model/params/edges.h"
#include "model/rules/rules.h"
#include "model/params/find.h"
#include "model/table/params.h"
#include "tests/support/rank_main.h"
#include "train/optimizer/groups.h"
#include "train/optimizer/update.h"
#include "train/memory/state.h"

/* Relative to a weight's size: a few roundings of the number type a step. */
static const double close_enough = sizeof(real) == sizeof(double) ? 1e-14 : 1e-6;

enum { STEPS = 7, STAGE_STEPS = 3 };
static const double decay_left = 0.75;

static struct model_config small_model(void) {
    return (struct model_config){
        .vocab_size = 61,
        .hidden_size = 32,
        .num_layers = 3,
        .num_heads = 2,
        .num_kv_heads = 2,
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
}

/* But for groups and cautious_decay, which tests set. */
static struct train_config settings = {
    .beta1 = 0.9, .beta2 = 0.95, .adam_eps = 1e-8, .weight_decay = 0.1, .grad_clip = 1};

/* Two copies of a training state: the program's, and the expected one in double. */
struct fixture {
    struct model_config model;
    struct edges edges;
    struct edge_set active[3]; /* of so many distances */
    struct layout layout;
    struct mesh *mesh;
    struct table table;
    struct shards shards;
    struct state_memory memory;
    struct state state;
    double *w, *m, *v; /* by flat index */
    int64_t *steps;
    bool *owned; /* elements that this rank updates */
    struct optimizer optimizer;
};

static void set_up(struct fixture *f, struct mesh *mesh, long bucket) {
    *f = (struct fixture){.model = small_model(), .layout = layout_full(), .mesh = mesh};
    f->layout.size[AXIS_DATA] = mesh->axis[AXIS_DATA].size;
    f->layout.small = 100;
    assert_int_equal(edges_create(&f->model, &f->edges), 0);
    for (int a = 0; a < 3; a++)
        assert_int_equal(edges_introduced(&f->edges, a, &f->active[a]), 0);
    assert_int_equal(params_create(&f->model, &f->layout, &f->table), 0);
    optimizer_treat(&settings, &f->table);
    assert_int_equal(
        shards_create(&f->table, mesh->axis[AXIS_DATA].size, mesh->axis[AXIS_DATA].index, bucket, &f->shards),
        0);
    assert_int_equal(state_reserve(&f->memory, NULL, &f->table, STATE_TRAINING, &f->shards, &f->state), 0);
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

static void tear_down(struct fixture *f) {
    optimizer_free(&f->optimizer);
    shards_free(&f->shards);
    params_free(&f->table);
    for (int a = 0; a < 3; a++) edge_set_free(&f->active[a]);
    edges_free(&f->edges);
    state_free(&f->memory);
    free(f->owned), free(f->steps), free(f->w), free(f->m), free(f->v);
}

static double norm_of(struct fixture *f, int active) {
    double norm;
    assert_int_equal(optimizer_norm(&f->optimizer, &f->active[active], &norm), 0);
    return norm;
}

static void update(struct fixture *f, int active, double lr, double norm) {
    assert_int_equal(optimizer_begin(&f->optimizer, &f->active[active], optimizer_clip(&f->optimizer, norm)), 0);
    const struct rates rates = {.lr = lr, .decay = decay_left, .gscale = optimizer_clip(&f->optimizer, norm)};
    for (int b = f->shards.buckets - 1; b >= 0; b--) /* in whatever order */
        optimizer_update(&f->optimizer, b, &f->active[active], &rates);
}

/* Gradients of a step, as backward pass and sums leave them: zero for what is inactive, this rank's share of
 * something in other data ranks' parts, which nothing may read. Functions of the element's place in its
 * tensor. Returns the square of all. */
static double draw_gradients(struct fixture *f, int step, int active, double size) {
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

/* The update as model.md, 6 has it. */
static void expect_update(struct fixture *f, int active, double lr, double norm) {
    double scale = norm > settings.grad_clip ? settings.grad_clip / (norm + 1e-6) : 1;
    for (int r = 0; r < f->table.rows; r++) {
        const struct row *row = &f->table.row[r];
        if (!params_active(row, &f->active[active])) continue;
        double n = (double)++f->steps[r];
        for (long i = row->offset; i < row->offset + row->count; i++) {
            double g = f->state.gradient[i] * scale;
            f->m[i] = 0.9 * f->m[i] + 0.1 * g;
            f->v[i] = 0.95 * f->v[i] + 0.05 * g * g;
            if (!settings.cautious_decay || f->m[i] * f->w[i] >= 0)
                f->w[i] *= 1 - lr * (row->ndim == 2 ? 0.1 * decay_left : 0);
            f->w[i] -= lr * (f->m[i] / (1 - pow(0.9, n))) / (sqrt(f->v[i] / (1 - pow(0.95, n))) + 1e-8);
        }
    }
}

static void check_piece(const struct fixture *f, const struct piece *piece) {
    for (long e = 0; e < piece->count; e++) {
        long i = f->table.row[piece->row].offset + piece->first + e;
        double m = f->state.moment[0][piece->moment + e], v = f->state.moment[1][piece->moment + e];
        assert_true(fabs(f->state.weight[i] - f->w[i]) <= close_enough * STEPS * (1 + fabs(f->w[i])));
        /* A scale of all gradients hardly shows in the weights, but does in the moments. */
        assert_true(fabs(m - f->m[i]) <= close_enough * STEPS * (1e-3 + fabs(f->m[i])));
        assert_true(fabs(v - f->v[i]) <= close_enough * STEPS * fabs(f->v[i]));
    }
}

static void follow_the_formula(struct mesh *mesh, long bucket) {
    struct fixture f;
    set_up(&f, mesh, bucket);
    real *before = malloc((size_t)f.table.total * sizeof *before);
    memcpy(before, f.state.weight, (size_t)f.table.total * sizeof *before);
    for (int step = 0; step < STEPS; step++) {
        int active = active_distances(&f.model.delta, step);
        double square = draw_gradients(&f, step, active, step % 2 ? 1 : 1e-3); /* clipped, and not */
        double norm = norm_of(&f, active);
        assert_true(fabs(norm - sqrt(square)) <=
                    1e-12 * norm); /* sums of the same numbers in another order */
        assert_true((norm > settings.grad_clip) == (step % 2));
        update(&f, active, 0.01, norm);
        expect_update(&f, active, 0.01, norm);
    }
    for (int i = 0; i < f.shards.pieces; i++) check_piece(&f, &f.shards.piece[i]);
    int late = 0;
    for (int r = 0; r < f.table.rows; r++) {
        const struct row *row = &f.table.row[r];
        assert_int_equal(f.state.steps[r], row->distance == 2 ? STEPS - STAGE_STEPS : STEPS);
        late += row->distance == 2;
    }
    assert_true(late > 0);
    for (long i = 0; i < f.table.total; i++)
        if (!f.owned[i]) assert_true(f.state.weight[i] == before[i]); /* other ranks' and padding */
    free(before);
    tear_down(&f);
}

static void follows_the_formula_through_stages(void **unused) {
    (void)unused;
    static const long buckets[] = {1, 5000, 1 << 20};
    struct mesh mesh;
    assert_int_equal(mesh_create(axes_of(0, 1, 1).size, &mesh), 0);
    for (int b = 0; b < 3; b++) {
        settings.cautious_decay = b == 1;
        follow_the_formula(&mesh, buckets[b]);
    }
    settings.cautious_decay = false;
    mesh_free(&mesh);
}

/* One mesh's norm; gradients are the same on all its tensor and pipeline ranks, of which the first counts. */
static double norm_on(struct mesh *mesh, long bucket) {
    struct fixture f;
    set_up(&f, mesh, bucket);
    draw_gradients(&f, 3, 2, 1);
    for (int r = 0; r < f.table.rows; r++)
        f.table.row[r].counted = !mesh->axis[AXIS_TENSOR].index && !mesh->axis[AXIS_PIPELINE].index;
    int64_t before = mesh->axis[AXIS_DATA].bytes;
    double norm = norm_of(&f, 2);
    assert_int_equal(mesh->axis[AXIS_DATA].bytes - before,
                     optimizer_formula_norm(&f.shards, mesh->axis[AXIS_DATA].size));
    tear_down(&f);
    return norm;
}

/* Neither buckets nor ranks nor replicas show in the bits of the norm. */
static void norm_is_one_number(void **unused) {
    (void)unused;
    struct mesh alone = mesh_alone();
    double right = norm_on(&alone, 5000);
    int n;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int tensor = 1; tensor <= n; tensor++)
        for (int pipeline = 1; pipeline <= n; pipeline++) {
            if (n % (tensor * pipeline)) continue;
            static const long buckets[] = {1, 5000, 1 << 20};
            struct mesh mesh;
            assert_int_equal(mesh_create(axes_of(0, tensor, pipeline).size, &mesh), 0);
            for (int b = 0; b < 3; b++) {
                double norm = norm_on(&mesh, buckets[b]);
                assert_memory_equal(&norm, &right, sizeof norm);
            }
            mesh_free(&mesh);
        }
}

static void inactive_rows_stand_still(void **unused) {
    (void)unused;
    struct fixture f;
    struct mesh alone = mesh_alone();
    set_up(&f, &alone, 5000);
    for (long i = 0; i < f.table.total; i++)
        f.state.gradient[i] = 1; /* even where gradients were left behind */
    double all = norm_of(&f, 2), one = norm_of(&f, 1), none = norm_of(&f, 0);
    assert_true(all > one && one > none);
    update(&f, 0, 0.01, none);
    int still = 0;
    for (int i = 0; i < f.shards.pieces; i++) {
        const struct piece *piece = &f.shards.piece[i];
        const struct row *row = &f.table.row[piece->row];
        bool delta = row->distance || row->select;
        still += delta;
        assert_int_equal(f.state.steps[piece->row], !delta);
        for (long e = 0; delta && e < piece->count; e++) {
            long at = row->offset + piece->first + e;
            assert_true(f.state.weight[at] == (real)f.w[at] && f.state.moment[0][piece->moment + e] == 0 &&
                        f.state.moment[1][piece->moment + e] == 0);
        }
    }
    assert_true(still > 0);
    tear_down(&f);
}

/* A tensor has the settings of the first group that matches its name, or the default ones: what an update of
 * two states that begin alike makes of each. */
static void groups_have_settings_of_their_own(void **unused) {
    (void)unused;
    struct fixture f;
    struct mesh alone = mesh_alone();
    int seen[3] = {0};
    set_up(&f, &alone, 5000);
    settings.groups[0] = (struct parameter_group){"layers.*.delta.*", 0.5, 0.3, NAN, 0.5};
    settings.groups[1] = (struct parameter_group){"layers.1.*", 2, NAN, 0, NAN};
    settings.num_groups = 2;
    optimizer_treat(&settings, &f.table);
    settings.num_groups = 0;
    for (int i = 0; i < f.table.total; i++) f.state.gradient[i] = 0.25;
    update(&f, 2, 0.01, 0);
    for (int r = 0; r < f.table.rows; r++) {
        const struct row *row = &f.table.row[r];
        bool delta = strstr(row->name, ".delta."), middle = row->layer == 1;
        double b1 = !delta && middle ? 0 : 0.9, b2 = delta ? 0.5 : 0.95,
               decay = delta            ? 0.3
                       : row->ndim == 2 ? 0.1
                                        : 0;
        double lr = 0.01 * (delta ? 0.5 : middle ? 2 : 1);
        seen[delta ? 0 : middle ? 1 : 2]++;
        for (long i = row->offset; i < row->offset + row->count; i++) {
            double right = f.w[i] * (1 - lr * decay * decay_left) -
                           lr * 0.25 / (0.25 + 1e-8); /* the first step's averages are the gradient */
            assert_true(fabs(f.state.weight[i] - right) <= close_enough * 10 * (1 + fabs(right)));
            assert_true(fabs(f.state.moment[0][i] - (1 - b1) * 0.25) <= close_enough * 10);
            assert_true(fabs(f.state.moment[1][i] - (1 - b2) * 0.0625) <= close_enough * 10);
        }
    }
    assert_true(seen[0] && seen[1] && seen[2]);
    tear_down(&f);
}

/* What leaves bring holds where no group says otherwise. */
static void leaves_have_settings_of_their_own(void **unused) {
    (void)unused;
    struct fixture f;
    struct mesh alone = mesh_alone();
    struct group_uses uses;
    set_up(&f, &alone, 5000);
    for (int r = 0; r < f.table.rows; r++)
        if (f.table.row[r].distance) f.table.row[r].own_lr_scale = 10, f.table.row[r].own_weight_decay = 0.01;
    settings.groups[0] = (struct parameter_group){"layers.*.delta.2.*", 2, NAN, NAN, NAN};
    settings.groups[1] = (struct parameter_group){"layers.*.delta.1.*", NAN, 0, NAN, NAN};
    settings.num_groups = 2;
    optimizer_treat(&settings, &f.table);
    assert_int_equal(groups_uses(&settings, &f.table, &uses), 0);
    int64_t seen = 0;
    for (int r = 0; r < f.table.rows; r++) {
        const struct row *row = &f.table.row[r];
        const struct treatment *t = &row->treatment;
        assert_true(t->lr_scale == (row->distance == 2 ? 2 : row->distance == 1 ? 10 : 1));
        assert_true(t->weight_decay == (row->distance == 1 || row->ndim == 1 ? 0
                                        : row->distance == 2                 ? 0.01
                                                                             : 0.1));
        seen += row->distance > 0;
    }
    assert_int_equal(uses.use[0].tensors + uses.use[1].tensors, seen);
    assert_int_equal(uses.use[2].tensors, 0);
    settings.num_groups = 0;
    optimizer_treat(&settings, &f.table);
    assert_int_equal(groups_uses(&settings, &f.table, &uses), 0);
    assert_true(uses.use[0].tensors == seen && uses.use[0].lr_scale == 10 && uses.use[0].weight_decay == 0.01);
    tear_down(&f);
}

/* What names no tensor is refused, with a name that is like it. */
static void groups_name_tensors(void **unused) {
    (void)unused;
    struct fixture f;
    struct mesh alone = mesh_alone();
    struct group_uses uses;
    set_up(&f, &alone, 5000);
    settings.groups[0] = (struct parameter_group){"layers.*.delta.*.output_prj.weight", 2, NAN, NAN, NAN};
    settings.num_groups = 1;
    optimizer_treat(&settings, &f.table);
    assert_int_equal(groups_uses(&settings, &f.table, &uses), GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), "train.groups[0]"));
    assert_non_null(strstr(gdn_failure(), "output_proj.weight"));
    settings.groups[0] = (struct parameter_group){"layers.*", NAN, NAN, 0.5, NAN};
    settings.optimizer = OPTIMIZER_MUON;
    optimizer_treat(&settings, &f.table);
    assert_int_equal(groups_uses(&settings, &f.table, &uses), 0); /* norms among them are AdamW's */
    strcpy(settings.groups[0].match, "layers.*.mlp.*");
    optimizer_treat(&settings, &f.table);
    assert_int_equal(groups_uses(&settings, &f.table, &uses), GDN_INPUT);
    settings.optimizer = OPTIMIZER_ADAMW;
    settings.num_groups = 0;
    tear_down(&f);
}

/* Muon's step of a matrix without a gradient is its decay alone; of others a matrix whose rows or columns are
 * about of one length, 0.2·√(longer side): heads' rows, where split so. On all ranks, whose parts come together. */
static void muon_steps_are_of_one_size(void **unused) {
    (void)unused;
    enum { SIZE = 200000 }; /* one bucket: a rank owns a part of many matrices */
    const double lr = 0.01, keep = 1 - lr * 0.1 * decay_left;
    struct fixture f;
    struct mesh mesh;
    assert_int_equal(mesh_create(axes_of(0, 1, 1).size, &mesh), 0);
    settings.optimizer = OPTIMIZER_MUON;
    settings.muon = (struct muon_config){MUON_HEAD, 5, 0.95};
    set_up(&f, &mesh, SIZE);
    for (int step = 0; step < 2; step++) {
        double lengths = 0, right = 0;
        for (long i = 0; i < f.table.total; i++) f.w[i] = f.state.weight[i];
        draw_gradients(&f, 0, 2, step ? 1 : 0);
        update(&f, 2, lr, norm_of(&f, 2));
        for (int i = 0; i < f.shards.pieces; i++) {
            const struct piece *piece = &f.shards.piece[i];
            const struct row *row = &f.table.row[piece->row];
            if (!row->treatment.whole) continue;
            long parts = row->treatment.whole == WHOLE_HEADS ? row->heads : 1, rows = row->shape[0] / parts;
            long longer = rows > row->shape[1] ? rows : row->shape[1];
            for (long at = row->offset + piece->first, end = at + piece->count; at < end; at++) {
                double moved = (f.w[at] * keep - f.state.weight[at]) / (lr * 0.2 * sqrt((double)longer));
                lengths += moved * moved;
                assert_true(step || fabs(moved) <= 1e3 * close_enough);
            }
            right += (double)piece->count / (double)longer; /* of all: so many rows, or columns, of length 1 */
        }
        /* Five steps bring singular values to 0.7 to 1.2. */
        assert_true(step ? lengths > 0.5 * right && lengths < 1.4 * right : lengths < 1e-4);
    }
    settings.optimizer = OPTIMIZER_ADAMW;
    tear_down(&f);
    mesh_free(&mesh);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_formula_through_stages),
        cmocka_unit_test(norm_is_one_number),
        cmocka_unit_test(inactive_rows_stand_still),
        cmocka_unit_test(groups_have_settings_of_their_own),
        cmocka_unit_test(leaves_have_settings_of_their_own),
        cmocka_unit_test(groups_name_tensors),
        cmocka_unit_test(muon_steps_are_of_one_size),
    };
    return run_on_ranks(tests, NULL, NULL);
}
