/* Whole matrices on data and tensor ranks: every mesh updates them as one rank does, whose arithmetic it has,
 * and hands over what is planned; split in whatever way, copied on all tensor ranks, or of one of them alone.
 */
#include <math.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/random.h"
#include "tests/support/rank_main.h"
#include "tests/train/optimizer/optimizer_fixture.h"
#include "train/optimizer/matrices.h"

enum { SPLITS = 3, STEPS = 2 };

/* The same arithmetic but for how compilers do the ends of loops; five Newton–Schulz steps make some hundred
 * times of a rounding. */
static const double near = sizeof(real) == sizeof(double) ? 1e-11 : 1e-4;

/* The place in the global tensor, row-major as on disk, of an element of a rank's part. */
static long global_place(const struct row *row, long element) {
    long line = row->transposed ? row->local[0] : row->local[1];
    long lead = element / line, within = element % line;
    long r = row->start[0] + (row->transposed ? within : lead),
         c = row->start[1] + (row->transposed ? lead : within);
    return r * row->shape[1] + c;
}

/* Weights and gradients that are functions of that place; of gradients only in parts that the rank owns. */
static void draw(struct fixture *f, int step) {
    for (int i = 0; i < f->table.rows; i++) {
        const struct row *row = &f->table.row[i];
        for (long e = 0, at = row->offset; e < row->count; e++, at++) {
            uint64_t place = (uint64_t)global_place(row, e), name = random_name(row->name);
            if (!step) f->state.weight[at] = (real)random_normal(3, name, place);
            f->state.gradient[at] = f->owned[at] ? (real)random_normal(4 + (uint64_t)step, name, place) : NAN;
        }
    }
}

static void train(struct fixture *f) {
    const struct rates rates = {.lr = 0.02, .decay = decay_left, .gscale = 0.5};
    for (int step = 0; step < STEPS; step++) {
        const struct edge_set *active = &f->active[1 + step];
        draw(f, step);
        assert_int_equal(optimizer_begin(&f->optimizer, active, rates.gscale), 0);
        for (int b = 0; b < f->shards.buckets; b++) optimizer_update(&f->optimizer, b, active, &rates);
    }
}

/* The parts that this rank owns, against a rank that has all of everything. */
static void compare(const struct fixture *f, const struct fixture *one) {
    for (int i = 0; i < f->table.rows; i++) {
        const struct row *row = &f->table.row[i];
        const struct row *all = params_find(&one->table, row->name);
        for (long e = 0; e < row->count; e++) {
            long at = row->offset + e, place = global_place(row, e);
            if (all->transposed) place = place % all->shape[1] * all->shape[0] + place / all->shape[1];
            double right = (double)one->state.weight[all->offset + place];
            if (!f->owned[at]) continue;
            if (!(fabs((double)f->state.weight[at] - right) <= near))
                fail_msg("%s, element %ld: %.17g, one rank has %.17g", row->name, place,
                         (double)f->state.weight[at], right);
        }
    }
}

/* Bytes of a step with all distances, and each rank's share of the arithmetic. */
static void check_plan(struct fixture *f) {
    const struct mesh *mesh = f->mesh;
    const struct axis *data = &mesh->axis[AXIS_DATA], *tensor = &mesh->axis[AXIS_TENSOR];
    const struct deal_ranks ranks = {data->size, tensor->size, tensor->index};
    struct matrices_cost cost[4];
    const int64_t before[] = {data->bytes, tensor->bytes};
    assert_true(data->size <= 4);
    assert_int_equal(matrices_plan(&settings, &f->table, &f->shards, &ranks, cost), 0);
    draw(f, 1);
    assert_int_equal(matrices_update(&f->optimizer, NULL, 1), 0);
    assert_int_equal(data->bytes - before[0], cost[data->index].copy_bytes);
    assert_int_equal(tensor->bytes - before[1], cost[data->index].tensor_bytes);
    double sums[2] = {cost[data->index].flops, 0};
    assert_int_equal(mesh_sum(f->mesh, sums, 1), 0);
    assert_true(cost[data->index].flops < 1.3 * sums[0] / mesh->size);
    assert_true(cost[data->index].flops > 0.7 * sums[0] / mesh->size);
}

static void meshes_equal_one_rank(int tensor, int splits) {
    struct mesh mesh, alone = mesh_alone();
    assert_int_equal(mesh_create(axes_of(0, tensor, 1).size, &mesh), 0);
    settings.optimizer = OPTIMIZER_MUON;
    split_over_tensor = true;
    for (int split = 0; split < splits; split++) {
        struct fixture one, f;
        settings.muon = (struct muon_config){split, 5, 0.95};
        set_up(&one, &alone, 50000);
        set_up(&f, &mesh, 3000);
        one.optimizer.ops = f.optimizer.ops = ops_find("cpu"); /* whose products are faster */
        train(&one);
        train(&f);
        compare(&f, &one);
        check_plan(&f);
        tear_down(&f);
        tear_down(&one);
    }
    settings.optimizer = OPTIMIZER_ADAMW;
    split_over_tensor = false;
    mesh_free(&mesh);
}

static void with_data_ranks(void **unused) {
    (void)unused;
    meshes_equal_one_rank(1, 1);
}

static void with_tensor_ranks(void **unused) {
    (void)unused;
    int all;
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    for (int tensor = 2; tensor <= all; tensor *= 2) {
        meshes_equal_one_rank(tensor, tensor < all ? 1 : SPLITS);
        sizes.delta.gate_hidden = 96; /* copies that are worth a message */
        meshes_equal_one_rank(tensor, 1);
        sizes.delta.gate_hidden = 3;
    }
    delta_split = DELTA_CONNECTION;
    meshes_equal_one_rank(all, 1);
    delta_split = DELTA_CHANNEL;
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(with_data_ranks),
                                       cmocka_unit_test(with_tensor_ranks)};
    return run_on_ranks(tests, NULL, NULL);
}
