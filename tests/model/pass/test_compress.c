/* Compressed sources (model/pass/compress.c) against a model that keeps all and whose outputs of nodes are
 * overwritten by the product of their factors between the passes: the same bits, at every ratio, of every
 * kind, aggregate and normalize, recompute policy, cut into chunks and way to divide, several micro-batches
 * in flight. And at full rank, or of outputs of low rank, against the model as it is. Runs on 1, 2 or 4
 * ranks, which are then tensor ranks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "tests/model/pass/compress_run.h"

static void same_losses(const struct runner *a, const struct runner *b) {
    for (int m = 0; m < PLAYED; m++)
        if (memcmp(&a->sums[m], &b->sums[m], sizeof a->sums[m]) != 0)
            failures += printf("%s: other losses of micro-batch %d at ratio %g\n", a->s->what, m, b->ratio);
}

static bool same_gradients(const struct runner *a, const struct runner *b, const char *text) {
    for (int i = 0; i < a->part->table.rows; i++) {
        const struct row *row = &a->part->table.row[i];
        const real *x = a->part->state.gradient + row->offset, *y = b->part->state.gradient + row->offset;
        if (memcmp(x, y, (size_t)row->count * sizeof(real)) == 0) continue;
        if (text) failures += printf("%s: %s: other gradient of %s\n", a->s->what, text, row->name);
        return false;
    }
    return true;
}

static double norm_of(const real *x, const real *y, long count) {
    double sum = 0;
    for (long i = 0; i < count; i++) sum += pow((double)x[i] - (y ? (double)y[i] : 0), 2);
    return sqrt(sum);
}

static double worst; /* part of what was allowed, for main to tell */

/* Outputs come back to a few roundings of their norm, of which eight layers of backward passes make some
 * hundred: normalize divides by norms of differences, and gradients of single numbers (scale, mix) are sums
 * that cancel. Against a tensor's own norm, but where that is next to nothing beside the others' it is itself
 * a difference of larger numbers. */
static void close_gradients(const struct runner *a, const struct runner *b) {
    const double tolerance = sizeof(real) == 8 ? 1e-13 : 3e-5;
    double all = norm_of(a->part->state.gradient, NULL, a->part->table.total);
    for (int i = 0; i < a->part->table.rows; i++) {
        const struct row *row = &a->part->table.row[i];
        const real *x = a->part->state.gradient + row->offset, *y = b->part->state.gradient + row->offset;
        double off = norm_of(x, y, row->count),
               allowed = tolerance * (norm_of(x, NULL, row->count) + 1e-3 * all);
        if (off / allowed > worst) worst = off / allowed;
        if (!(off <= allowed))
            failures += printf("%s: gradient of %s is %g off at ratio %g, %g is allowed\n", a->s->what,
                               row->name, off, b->ratio, allowed);
    }
}

static bool finite_gradients(const struct runner *r) {
    return isfinite(norm_of(r->part->state.gradient, NULL, r->part->table.total));
}

/* Gradients of tensors that all ranks have, and of which none has a part alone. */
static void same_replicated(const struct runner *r) {
    for (int i = 0; i < r->part->table.rows; i++) {
        const struct row *row = &r->part->table.row[i];
        if (row->split == SPLIT_NONE && !row->partial && row->distance == 0 && !row->select)
            same_on_ranks(r->part->state.gradient + row->offset, row->count, r->s->what, row->name, 0);
    }
}

/* ------------------------------------------------------------------------------------------- tests */

/* Every `every`-th ratio, beginning with `first`. */
static void check(const struct setting *s, int first, int every) {
    struct runner *plain = runner_create(s, 0, false);
    play(plain);
    for (int i = first; i < RATIOS; i += every) {
        struct runner *wanted = runner_create(s, ratios[i], true), *r = runner_create(s, ratios[i], false);
        play(wanted);
        play(r);
        same_losses(plain, r);
        same_gradients(wanted, r, "not that of overwritten outputs");
        if (ratios[i] == 1) close_gradients(plain, r);
        if (ratios[i] < 1 && same_gradients(plain, r, NULL))
            failures += printf("%s: nothing was compressed\n", s->what);
        if (!finite_gradients(r)) failures += printf("%s: a gradient is not finite\n", s->what);
        same_replicated(r);
        play(wanted); /* over its own gradients, zeroed, and whatever lies in its buffers */
        play(r);
        same_gradients(wanted, r, "the second time");
        runner_free(wanted);
        runner_free(r);
    }
    runner_free(plain);
}

static void test_bits(void **state) {
    (void)state;
    for (int v = 0; v < VARIANTS; v++)
        for (int cut = 0; cut < CUTS; cut++) {
            bool few = tensor.size > 1; /* saves time */
            if (few && (v + cut) % CUTS) continue;
            struct setting s = setting_of(v, cut, (v + v / 4 + cut) % 4, ops_all()[(v + cut) % 4 == 1]);
            check(&s, few ? v / 3 % RATIOS : 0, few ? RATIOS : 1);
        }
    no_failures();
}

/* Outputs of rank 6, factors of rank 8: exact but for rounding. */
static void test_low_rank(void **state) {
    (void)state;
    for (int v = 1; v<VARIANTS; v += tensor.size> 1 ? 6 : 2) { /* those with more tokens than channels */
        struct setting s = setting_of(v, v / 2 % CUTS, v % 4, ops_all()[0]);
        s.equal_sequences = true;
        struct runner *plain = runner_create(&s, 0, false), *r = runner_create(&s, 0.5, false);
        play(plain);
        play(r);
        same_losses(plain, r);
        close_gradients(plain, r);
        runner_free(plain);
        runner_free(r);
    }
    no_failures();
}

/* Differences between neighbouring layers are small beside their outputs, and what factors miss of a source
 * is not: nothing in a backward pass may multiply the one by the inverse of the other. Measured: norms of all
 * gradients grow by up to 1.6. */
static void test_small_differences(void **state) {
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct setting s = setting_of(v, 0, v % 4, ops_all()[0]);
        s.noise = 0.01;
        struct runner *plain = runner_create(&s, 0, false);
        play(plain);
        double wanted = norm_of(plain->part->state.gradient, NULL, plain->part->table.total);
        for (int i = 1; i < RATIOS; i++) {
            struct runner *r = runner_create(&s, ratios[i], false);
            play(r);
            double factor = norm_of(r->part->state.gradient, NULL, r->part->table.total) / wanted;
            if (!(factor < 3)) failures += printf("%s: gradients grow by %g\n", s.what, factor);
            runner_free(r);
        }
        runner_free(plain);
    }
    no_failures();
}

/* The buffers that a backward pass has filled are not there for a forward pass. */
static void test_order(void **state) {
    (void)state;
    struct setting s = setting_of(0, 0, 0, ops_all()[0]);
    for (int evaluate = 0; evaluate < 2; evaluate++)
        for (int compress = 0; compress < 2; compress++) {
            struct runner *r = runner_create(&s, compress ? 0.5 : 0, false);
            real *source[NODES], *source_gradient[NODES];
            runner_forward(r, 0, 0, false);
            struct pass pass = pass_of(r, 0, 0, 0, source, source_gradient);
            model_stage_backward(r->part->model, &pass, LAYERS, 3, &r->sums[0]);
            assert_int_equal(model_status(r->part->model), 0);
            runner_forward(r, 1, 1, evaluate);
            bool turns = compress || s.config.residual == RESIDUAL_BF16;
            assert_int_equal(model_status(r->part->model), turns ? GDN_INTERNAL : 0);
            if (turns) assert_non_null(strstr(gdn_failure(), "backward pass of layers 0 to 7"));
            gdn_failure_clear();
            runner_free(r);
        }
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_low_rank),
        cmocka_unit_test(test_small_differences),
        cmocka_unit_test(test_order),
    };
    int failed = run_on_ranks(tests, tensor_create, tensor_free);
    print_message("%.2g of what rounding is allowed\n", worst);
    return failed;
}
