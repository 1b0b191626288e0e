/* AdamW over a model's parameter table, against a plain element-by-element update: which tensors are touched
 * at which step, clipping, decay, and a bias correction of its own for each tensor; on shards, where the norm
 * must not show how buckets were cut or how many ranks there are. Runs on any number of ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/random.h"
#include "model/params/edges.h"
#include "model/params/find.h"
#include "model/table/params.h"
#include "tests/support/rank_main.h"
#include "tests/train/optimizer/optimizer_fixture.h"

enum { STEPS = 7 };

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

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_formula_through_stages),
        cmocka_unit_test(norm_is_one_number),
        cmocka_unit_test(inactive_rows_stand_still),
    };
    return run_on_ranks(tests, NULL, NULL);
}
