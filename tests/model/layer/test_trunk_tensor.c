/* The model divided over the tensor axis, on all ranks of mpirun, against the whole model, which every rank
 * computes for itself: losses and every gradient, of a plain model and of every kind of connection.
 *
 * The two add the same terms in another order. Tolerances, relative to a loss and to each gradient's norm:
 * 1e-12 in double; in float32 1e-5, its rounding through a few hundred operations, where 1e-3 of the whole
 * gradient's norm is added to a tensor's own, since gradients of single numbers (`scale`, `mix`) are sums
 * that cancel. (With weights twice as far from their start, one `mix` on 4 ranks cancels to 1.3 times
 * that.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/model/tensor_ranks.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH };

static double tolerance(void) {
    return sizeof(real) == 8 ? 1e-12 : 1e-5;
}

static void near_loss(const char *what, const char *name, double value, double wanted) {
    if (!(fabs(value - wanted) <= tolerance() * fabs(wanted)))
        failures +=
            printf("%s: %s is %.17g on %d ranks, %.17g on one\n", what, name, value, tensor.size, wanted);
}

static double norm_of(long count, const real *x) {
    double sum = 0;
    for (long j = 0; j < count; j++) sum += (double)x[j] * (double)x[j];
    return sqrt(sum);
}

/* The gradient of one tensor, whose terms are summed first where each rank has a part of them. */
static void compare_row(struct part *p, const struct fixture *full, const struct row *row, const char *what) {
    const struct row *from = params_find(&full->table, row->name);
    real *g = p->state.gradient + row->offset;
    const real *wanted = full->state.gradient + from->offset;
    double error = 0, norm = norm_of(from->count, wanted);
    /* A scalar's terms may cancel to a millionth of what is rounded. */
    norm += (sizeof(real) == 4 ? 1e-3 : 1e-5) * norm_of(full->table.total, full->state.gradient);
    if (row->partial) axis_sum(&tensor, g, row->count);
    for (long j = 0; j < row->count; j++) {
        double d = (double)g[j] - (double)wanted[part_place(row, j)];
        error += d * d;
    }
    if (!(sqrt(error) <= tolerance() * norm))
        failures += printf("%s: gradient %s is off by %g of %g\n", what, row->name, sqrt(error), norm);
}

static void run(const struct model_config *c, const struct loss_options *o, int way, const char *what) {
    struct fixture full;
    struct part part;
    struct loss_sums wanted, sums;
    int32_t rows[B * (S + 1)];
    struct layout layout = divided_layout(way);
    fixture_create(&full, c, test_backends()[0], B, S, 3, 0.1);
    fixture_rows(rows, c->vocab_size);
    model_train(full.model, rows, B, S, o, &wanted);
    part_create(&part, &full, &layout, &tensor, NULL, test_backends()[0], B, S);
    for (int evaluate = 1; evaluate >= 0; evaluate--) {
        (evaluate ? model_loss : model_train)(part.model, rows, B, S, o, &sums);
        double all[] = {sums.ce, sums.sparsity, sums.entropy, sums.z};
        axis_sum_doubles(&tensor, all, 4);
        if (evaluate && dropout_on(&c->dropout)) continue; /* nothing is dropped then */
        if (model_status(part.model)) failures += printf("%s: %s\n", what, gdn_failure());
        near_loss(what, "ce", all[0], wanted.ce);
        near_loss(what, "sparsity", all[1], wanted.sparsity);
        near_loss(what, "entropy", all[2], wanted.entropy);
        near_loss(what, "z", all[3], wanted.z);
        failures += model_measured(part.model, o->active) != model_measured(full.model, o->active);
    }
    for (int i = 0; i < part.table.rows; i++) compare_row(&part, &full, &part.table.row[i], what);
    part_free(&part);
    fixture_free(&full);
}

static void test_plain(void **state) {
    (void)state;
    for (int mask = 0; mask < 4; mask++) {
        struct model_config c = small_model();
        fixture_widen(&c);
        c.delta.num_distances = 0;
        c.tie_embeddings = mask & 1;
        struct loss_options o = fixture_options(&c, -1, false);
        c.logit_softcap = mask & 1 ? 0.6 : 0, o.z_weight = mask & 2 ? 0.2 : 0;
        run(&c, &o, mask & 2, mask & 2 ? "plain, rows divided" : "plain");
    }
    no_failures();
}

static void test_connected(void **state) {
    (void)state;
    struct model_config c;
    struct loss_options o;
    for (int v = 0; fixture_variant(v, &c, &o); v++)
        for (int mask = 0; mask < 4; mask++) {
            char what[80];
            snprintf(what, sizeof what, "variant %d, delta %s, sequence_parallel %s", v,
                     mask & 1 ? "connection" : "channel", mask & 2 ? "on" : "off");
            fixture_widen(&c);
            run(&c, &o, mask, what);
        }
    no_failures();
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_connected)};
    return run_on_ranks(tests, tensor_create, tensor_free);
}
