/* What compressed sources (model/pass/compress.c) take and cost, as the plan counts it and as it is: memory,
 * arithmetic, bytes on the tensor axis, each by a formula of its own. Runs on 1, 2 or 4 ranks, which are then
 * tensor ranks. */
#include <stdio.h>

#include "kernels/backends/backends.h"
#include "tests/model/pass/compress_run.h"

/* What a buffer takes of an arena, with sanitizers' guard behind it; of nothing there is none. */
static long bytes_of(long count, size_t size) {
    struct arena arena = {.base = NULL};
    if (count > 0) arena_take(&arena, (size_t)count * size);
    return (long)arena.used;
}

/* Does the layer read the node as a source? */
static bool reads(const struct setting *s, int target, int node) {
    for (int i = 0; i < s->config.delta.num_distances; i++)
        if (node + s->config.delta.distances[i] == target)
            return node >= 0 || s->config.delta.embedding_source;
    return false;
}

/* The highest layer of the chunk that needs the node: as its stream or as a source. */
static int top_of(const struct setting *s, struct span span, int node) {
    int top = node + 1;
    for (int l = node + 2; l < span.end; l++)
        if (reads(s, l, node)) top = l;
    return top;
}

/* No later stage reads the node, as a source or as its stream. */
static bool stays(const struct setting *s, struct span span, int node) {
    for (int l = span.end; l < LAYERS; l++)
        if (reads(s, l, node)) return false;
    return node < span.end - 1 || span.end == LAYERS;
}

/* The same, and no layer reads it as a source. */
static bool stream_alone(const struct setting *s, struct span span, int node) {
    for (int l = 0; l < LAYERS; l++)
        if (reads(s, l, node)) return false;
    return stays(s, span, node);
}

/* In what form a model keeps outputs. */
struct form {
    double ratio; /* of factors */
    bool turns;   /* divided rows, sources too */
    bool narrow;  /* in bf16 */
};
enum kept { FULL, ROWS, FACTORS, CODES };

static enum kept kept_as(const struct setting *s, const struct form *form, struct span span, int node) {
    if (form->ratio > 0 && compressed(s, span, node)) return FACTORS;
    if (form->narrow && stays(s, span, node)) return CODES;
    return stream_alone(s, span, node) || (form->turns && compressed(s, span, node)) ? ROWS : FULL;
}

static bool divided(const struct setting *s) {
    return s->way & 2 && tensor.size > 1;
}

static int first_of(struct span span) {
    return span.first ? span.first : -1;
}

/* Whole buffers that a chunk's nodes take turns in: as many as are needed at once at most. */
static long full_buffers(const struct setting *s, const struct form *form, struct span span) {
    long max = 0;
    for (int l = first_of(span); l < span.end; l++) {
        long here = 0;
        for (int n = first_of(span); n <= l; n++) {
            enum kept kept = kept_as(s, form, span, n);
            bool turn = kept == FACTORS || kept == CODES || (form->turns && compressed(s, span, n));
            here += turn && (n == l || top_of(s, span, n) >= l);
        }
        if (here > max) max = here;
    }
    return max;
}

/* By formula: what outputs take in that form, whole ones in turn and each activation set's; `plain`: without
 * factors and an arena's rounding, by which the form is chosen. */
static long taken(const struct setting *s, const struct form *form, bool plain) {
    const long T = s->batch * s->length, k = lowrank_of_ratio(T, D, form->ratio),
               R = divided(s) ? (T + tensor.size - 1) / tensor.size : T;
    const struct {
        long numbers, more;
        size_t size;
    } each[] = {[FULL] = {T * D, 0, sizeof(real)},
                [ROWS] = {R * D, 0, sizeof(real)},
                [FACTORS] = {T * k, k * D, sizeof(real)},
                [CODES] = {R * D, 0, sizeof(uint16_t)}};
    long full = 0, sum = 0;
    for (int c = 0; c < s->cut->chunks; c++) {
        struct span span = s->cut->stage[c];
        long here = full_buffers(s, form, span);
        if (here > full) full = here;
        for (int n = first_of(span); n < span.end; n++) {
            enum kept kept = kept_as(s, form, span, n);
            if (!plain)
                sum +=
                    bytes_of(each[kept].numbers, each[kept].size) + bytes_of(each[kept].more, sizeof(real));
            else if (kept != FACTORS)
                sum += each[kept].numbers * (kept == CODES ? 1 : 2);
        }
    }
    return ACTIVATION_SETS * sum + full * (plain ? 2 * T * D : bytes_of(T * D, sizeof(real)));
}

/* The form that takes least: rows in turn where they are divided and none are factors, bf16 where the stream
 * is. */
static long sources_of(const struct setting *s, double ratio) {
    struct form form = {ratio, false, false}, turns = {ratio, true, false}, narrow = {ratio, false, true};
    if (divided(s) && !(ratio > 0) && taken(s, &turns, true) < taken(s, &form, true)) form = turns;
    if (s->config.residual == RESIDUAL_BF16 && taken(s, &narrow, true) < taken(s, &form, true)) form = narrow;
    return taken(s, &form, false);
}

static struct model_memory memory_of(const struct setting *s, double ratio, bool training, bool planned) {
    struct fixture full;
    struct part part;
    struct model_memory memory;
    struct layout layout = cut_layout(s->cut, 0, s->way);
    struct axis counts = axis_planned("tensor", tensor.size, tensor.index);
    fixture_create(&full, &s->config, s->ops, s->batch, s->length, 3, s->noise);
    part_create(&part, &full, &layout, &tensor, activation_sets, s->ops, s->batch, s->length);
    model_free(part.model);
    struct model_part of = part_of(s, &part.layout, planned ? &counts : &tensor, ratio);
    assert_int_equal(planned ? model_create_planned(&s->config, &part.table, &of, s->batch, s->length,
                                                    training, &part.model)
                             : model_create(&s->config, &part.table, &part.state, s->ops, &of, s->batch,
                                            s->length, training, &part.model),
                     0);
    model_memory(part.model, &memory);
    part_free(&part);
    fixture_free(&full);
    return memory;
}

/* Sources are what the formula says, planned as real; nothing else changes but scratch; models that do not
 * train, or have no connections, are as they were. */
static void test_memory(void **state) {
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct setting s = setting_of(v, v % CUTS, v % 4, ops_all()[0]), bare = s;
        struct model_memory none = memory_of(&s, 0, true, false), apply = memory_of(&s, 0, false, false);
        assert_int_equal(none.sources, sources_of(&s, 0));
        for (int i = 0; i < RATIOS; i++) {
            struct model_memory got = memory_of(&s, ratios[i], true, false),
                                planned = memory_of(&s, ratios[i], true, true),
                                idle = memory_of(&s, ratios[i], false, false);
            assert_memory_equal(&got, &planned, sizeof got);
            assert_int_equal(got.sources, sources_of(&s, ratios[i]));
            assert_int_equal(got.activations, none.activations);
            assert_true(got.workspace > none.workspace);
            assert_memory_equal(&idle, &apply, sizeof idle);
        }
        bare.config.delta.num_distances = 0;
        none = memory_of(&bare, 0, true, false), apply = memory_of(&bare, 0.5, true, false);
        assert_memory_equal(&none, &apply, sizeof none);
    }
}

static double products; /* arithmetic of all matrix products */

/* Arithmetic by formula, of one [T, D]: four products make its factors and one brings it back; `bases`: what
 * LAPACK does for three orthonormal bases of k vectors, as much as is known of Householder's method (Golub &
 * Van Loan 2013, 5.2). */
static double formula(long T, double ratio, bool bases) {
    long k = lowrank_of_ratio(T, D, ratio), longest = 2 * (2 * T + D), less = 2 * k / 3;
    return bases ? 2.0 * (double)(k * k * (longest - 3 * less)) : 5 * 2.0 * (double)(T * k * D);
}

/* Of all nodes of the micro-batches of a played step. */
static double formula_of(const struct setting *s, double ratio, bool bases) {
    long T = s->batch * s->length, small = (s->batch - 1) * (s->length - 2);
    double sum = 0;
    for (int c = 0; c < s->cut->chunks; c++)
        for (int n = s->cut->stage[c].first; n < s->cut->stage[c].end; n++)
            if (compressed(s, s->cut->stage[c], n))
                sum += (PLAYED - 1) * formula(T, ratio, bases) + formula(small, ratio, bases);
    return sum;
}

static void (*product)(char, char, long, long, long, real, const real *, long, const real *, long, real,
                       real *, long);

static void count_product(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                          const real *b, long ldb, real beta, real *c, long ldc) {
    products += 2.0 * (double)m * (double)n * (double)k;
    product(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* What a played step costs more than one without compression: arithmetic and bytes on the tensor axis. */
struct cost {
    double flops;
    int64_t bytes;
};

static struct cost cost_of(const struct setting *s, double ratio, bool planned) {
    struct runner *r = runner_create(s, ratio, false);
    struct axis counts = axis_planned("tensor", tensor.size, tensor.index),
                *axis = planned ? &counts : &tensor;
    if (planned) {
        struct model_part of = part_of(s, &r->part->layout, &counts, ratio);
        model_free(r->part->model);
        r->planned = true;
        assert_int_equal(model_create_planned(&s->config, &r->part->table, &of, s->batch, s->length, true,
                                              &r->part->model),
                         0);
    }
    double flops = planned ? ops_counted() : products;
    int64_t bytes = axis->bytes;
    play(r);
    struct cost cost = {(planned ? ops_counted() : products) - flops, axis->bytes - bytes};
    runner_free(r);
    return cost;
}

static void test_plan(void **state) {
    (void)state;
    for (int v = 0; v<VARIANTS; v += tensor.size> 1 ? 3 : 1) {
        struct ops counting = *ops_all()[1];
        product = counting.gemm;
        counting.gemm = count_product;
        struct setting s = setting_of(v, v % CUTS, v / 2 % 4, &counting);
        struct cost none = cost_of(&s, 0, false), planned_none = cost_of(&s, 0, true);
        for (int i = 0; i < RATIOS; i++) {
            struct cost real_cost = cost_of(&s, ratios[i], false), planned = cost_of(&s, ratios[i], true);
            double more = real_cost.flops - none.flops, planned_more = planned.flops - planned_none.flops;
            double known = formula_of(&s, ratios[i], false), bases = formula_of(&s, ratios[i], true);
            if (more != known || planned_more != known + bases)
                failures += printf("%s: %g operations more at ratio %g, %g planned; %g and %g are known\n",
                                   s.what, more, ratios[i], planned_more, known, known + bases);
            if (real_cost.bytes - none.bytes != planned.bytes - planned_none.bytes)
                failures += printf("%s: other bytes planned\n", s.what);
        }
    }
    no_failures();
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_plan),
    };
    return run_on_ranks(tests, tensor_create, tensor_free);
}
