/* AdamW over a model's parameter table, against a plain element-by-element update: which tensors are touched
 * at which step, clipping, decay, and a bias correction of its own for each tensor. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/random.h"
#include "model/edges.h"
#include "model/params.h"
#include "train/optimizer.h"

/* Relative to a weight's size: a few roundings of the number type a step. */
static const double close_enough = sizeof(real) == sizeof(double) ? 1e-14 : 1e-6;

enum { STEPS = 7, STAGE_STEPS = 3 };

static struct model_config small_model(void) {
    return (struct model_config){
        .vocab_size = 11,
        .hidden_size = 8,
        .num_layers = 3,
        .num_heads = 2,
        .num_kv_heads = 2,
        .intermediate_size = 12,
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

static const struct train_config settings = {
    .beta1 = 0.9, .beta2 = 0.95, .adam_eps = 1e-8, .weight_decay = 0.1, .grad_clip = 1};

/* Two copies of a training state: the program's, and the expected one in double. */
struct fixture {
    struct model_config model;
    struct table table;
    struct state state;
    double *w, *m, *v;
    int64_t *steps;
    struct optimizer optimizer;
};

static void set_up(struct fixture *f) {
    f->model = small_model();
    assert_int_equal(params_create(&f->model, &f->table), 0);
    size_t n = (size_t)f->table.total, rows = (size_t)f->table.rows;
    f->state = (struct state){calloc(n, sizeof(real)), calloc(n, sizeof(real)), calloc(n, sizeof(real)),
                              calloc(n, sizeof(real)), calloc(rows, sizeof(int64_t))};
    f->w = calloc(n, sizeof(double)), f->m = calloc(n, sizeof(double)), f->v = calloc(n, sizeof(double));
    f->steps = calloc(rows, sizeof(int64_t));
    for (size_t i = 0; i < n; i++) f->w[i] = f->state.weight[i] = (real)(float)random_normal(1, 2, i);
    f->optimizer = (struct optimizer){ops_find("reference"), &f->model, &settings, &f->table, &f->state};
}

static void tear_down(struct fixture *f) {
    params_free(&f->table);
    free(f->state.weight), free(f->state.gradient), free(f->state.exp_avg), free(f->state.exp_avg_sq);
    free(f->state.steps), free(f->steps), free(f->w), free(f->m), free(f->v);
}

/* Gradients of a step, as a backward pass leaves them: zero for what is inactive. */
static void draw_gradients(struct fixture *f, int step, int active, double size) {
    for (int r = 0; r < f->table.rows; r++) {
        const struct row *row = &f->table.row[r];
        bool on = params_active(&f->model, row, active);
        for (long i = row->offset; i < row->offset + row->count; i++)
            f->state.gradient[i] = on ? (real)(size * random_normal(9, (uint64_t)step, (uint64_t)i)) : 0;
    }
}

/* The update as model.md, 6 has it. */
static void expect_update(struct fixture *f, int active, double lr, double norm) {
    double scale = norm > settings.grad_clip ? settings.grad_clip / (norm + 1e-6) : 1;
    for (int r = 0; r < f->table.rows; r++) {
        const struct row *row = &f->table.row[r];
        if (!params_active(&f->model, row, active)) continue;
        double n = (double)++f->steps[r];
        for (long i = row->offset; i < row->offset + row->count; i++) {
            double g = f->state.gradient[i] * scale;
            f->m[i] = 0.9 * f->m[i] + 0.1 * g;
            f->v[i] = 0.95 * f->v[i] + 0.05 * g * g;
            f->w[i] *= 1 - lr * (row->ndim == 2 ? 0.1 : 0);
            f->w[i] -= lr * (f->m[i] / (1 - pow(0.9, n))) / (sqrt(f->v[i] / (1 - pow(0.95, n))) + 1e-8);
        }
    }
}

static void follows_the_formula_through_stages(void **unused) {
    (void)unused;
    struct fixture f;
    set_up(&f);
    for (int step = 0; step < STEPS; step++) {
        int active = active_distances(&f.model.delta, step);
        draw_gradients(&f, step, active, step % 2 ? 1 : 1e-3); /* clipped, and not */
        double square = 0;
        for (long i = 0; i < f.table.total; i++) square += pow(f.state.gradient[i], 2);
        double norm = optimizer_norm(&f.optimizer, active);
        assert_true(fabs(norm - sqrt(square)) <=
                    1e-12 * norm); /* sums of the same numbers in another order */
        assert_true((norm > settings.grad_clip) == (step % 2));
        optimizer_step(&f.optimizer, active, 0.01, norm);
        expect_update(&f, active, 0.01, norm);
    }
    int late = 0;
    for (int r = 0; r < f.table.rows; r++) {
        const struct row *row = &f.table.row[r];
        assert_int_equal(f.state.steps[r], row->distance == 2 ? STEPS - STAGE_STEPS : STEPS);
        late += row->distance == 2;
        for (long i = row->offset; i < row->offset + row->count; i++) {
            assert_true(fabs(f.state.weight[i] - f.w[i]) <= close_enough * STEPS * (1 + fabs(f.w[i])));
            /* A scale of all gradients hardly shows in the weights, but does in the moments. */
            assert_true(fabs(f.state.exp_avg[i] - f.m[i]) <= close_enough * STEPS * (1e-3 + fabs(f.m[i])));
            assert_true(fabs(f.state.exp_avg_sq[i] - f.v[i]) <= close_enough * STEPS * fabs(f.v[i]));
        }
    }
    assert_true(late > 0);
    tear_down(&f);
}

static void inactive_rows_stand_still(void **unused) {
    (void)unused;
    struct fixture f;
    set_up(&f);
    for (long i = 0; i < f.table.total; i++)
        f.state.gradient[i] = 1; /* even where gradients were left behind */
    double all = optimizer_norm(&f.optimizer, 2), one = optimizer_norm(&f.optimizer, 1),
           none = optimizer_norm(&f.optimizer, 0);
    assert_true(all > one && one > none);
    optimizer_step(&f.optimizer, 0, 0.01, none);
    int still = 0;
    for (int r = 0; r < f.table.rows; r++) {
        const struct row *row = &f.table.row[r];
        bool delta = row->distance || row->select;
        still += delta;
        assert_int_equal(f.state.steps[r], !delta);
        for (long i = row->offset; delta && i < row->offset + row->count; i++)
            assert_true(f.state.weight[i] == (real)f.w[i] && f.state.exp_avg[i] == 0 &&
                        f.state.exp_avg_sq[i] == 0);
    }
    assert_true(still > 0);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_formula_through_stages),
        cmocka_unit_test(inactive_rows_stand_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
