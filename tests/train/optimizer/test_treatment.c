/* How tensors are treated differently: by groups of the configuration, by what their kind brings, by Muon.
 * Runs on any number of ranks. */
#include <math.h>
#include <string.h>

#include "kernels/base/status.h"
#include "model/params/find.h"
#include "tests/support/rank_main.h"
#include "tests/train/optimizer/optimizer_fixture.h"
#include "train/optimizer/groups.h"

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
    assert_true(uses.use[0].tensors == seen && uses.use[0].lr_scale == 10 &&
                uses.use[0].weight_decay == 0.01);
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
 * about of one length, 0.2·√(longer side): heads' rows, where split so. On all ranks, whose parts come
 * together. */
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
            right +=
                (double)piece->count / (double)longer; /* of all: so many rows, or columns, of length 1 */
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
        cmocka_unit_test(groups_have_settings_of_their_own),
        cmocka_unit_test(leaves_have_settings_of_their_own),
        cmocka_unit_test(groups_name_tensors),
        cmocka_unit_test(muon_steps_are_of_one_size),
    };
    return run_on_ranks(tests, NULL, NULL);
}
