/* Steps whose activations travel in bf16: gradients and losses near those of values as they are stored, by
 * what rounding may do; the same bits again, with passes computed again, and through every schedule that
 * sends the same values. What plans say of them: tests/train/plan/test_plan_run.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/base/bf16.h"
#include "tests/train/run/mesh_fixture.h"
#include "tests/train/step/boundary_case.h"
#include "tests/train/step/outcome.h"

/* Of a gradient's norm, and of a loss. What crosses is off by at most BF16_EPSILON of itself, in the mean
 * square by 0.41 of that (even over ±ε/m, mantissas m from 1 to 2). Roundings are independent, so their
 * squares add: a gradient depends on those of 8 layers, there and back, at most 4 in each, had every value
 * been rounded so often: √64 · 0.41 ε = 3.3 ε. But most of them are of what blocks add to the stream, a part
 * of it. Losses near log V hardly depend on activations. Measured: 1.1 ε, 0.003 ε. A truncation is off by 1 ε
 * · 0.72 to one side in each. Without model.delta.normalize: it divides by differences of what may have been
 * rounded. */
static const double GRADIENTS = 2 * BF16_EPSILON, LOSSES = BF16_EPSILON / 100;

static struct mesh_case cases[] = {
    {{1, 1, 2}, {"model.delta.embedding_source=true"}},
    {{1, 1, 2}, {"mesh.interleave=4", "mesh.narrow_sources=false"}},
    {{1, 2, 1}, {"model.delta.aggregate=multihead", "model.delta.attention_heads=4"}},
    {{1, 2, 1}, {"mesh.sequence_parallel=true", "model.delta.regularizer=fixed"}},
    {{1, 1, 4}, {"model.delta.distances=[2, 5]", "mesh.interleave=2", "model.tie_embeddings=true"}},
    {{1, 2, 2}, {"mesh.delta=connection", "mesh.interleave=2"}},
    {{1, 2, 2}, {"mesh.sequence_parallel=true", "model.delta.aggregate=attention"}},
    {{2, 2, 1}, {"model.delta.kind=adaptive", "model.delta.aggregate=mean"}},
    {{1, 4, 1}, {"model.delta.kind=full", "model.delta.regularizer=fixed"}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Of a first step with one more setting. */
static struct outcome first_step(const struct mesh_case *c, char *wire, char *more) {
    struct run run;
    struct overrides o;
    overrides_fill(&o, c);
    o.set[o.count++] = wire;
    if (more) o.set[o.count++] = more;
    assert_int_equal(prepared(&run, base, &o), 0);
    assert_int_equal(readied(&run), 0);
    connections_drawn(&run);
    const struct loss_options options = {.target_weight = 1.0 / 96,
                                         .sparsity_weight = run.config.model.delta.sparsity_weight};
    struct step step = {.rows = run.data.rows, .sequences = run.part.share, .options = &options};
    return outcome_of(&run, &step);
}

static void near(void **state) {
    const struct mesh_case *c = *state;
    struct outcome stored = first_step(c, "mesh.wire=stored", NULL),
                   rounded = first_step(c, "mesh.wire=bf16", NULL);
    double off = distance(&rounded, &stored), loss = fabs(rounded.loss - stored.loss) / stored.loss;
    assert_true(off > BF16_EPSILON / 100 && loss > 0); /* else nothing was rounded */
    if (off > GRADIENTS || loss > LOSSES) fail_msg("gradients differ by %g, losses by %g", off, loss);
    if (sizeof(real) == sizeof(float)) {
        struct outcome same = first_step(c, "mesh.wire=fp32", NULL);
        assert_true(distance(&same, &stored) == 0 && same.loss == stored.loss);
        free(same.gradient);
    }
    free(stored.gradient);
    free(rounded.gradient);
}

static void same_bits(void **state) {
    const struct mesh_case *c = *state;
    static char *const more[] = {NULL, "train.recompute=selective", "train.recompute=full",
                                 "mesh.overlap=false"};
    struct outcome first = first_step(c, "mesh.wire=bf16", NULL);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        struct outcome again = first_step(c, "mesh.wire=bf16", more[i]);
        if (distance(&again, &first) != 0 || again.loss != first.loss)
            fail_msg("%s: gradients differ by %g", more[i] ? more[i] : "again", distance(&again, &first));
        free(again.gradient);
    }
    free(first.gradient);
}

int rank_main(void) {
    struct CMUnitTest tests[2 * CASES];
    size_t count = tests_of_cases(tests, near, cases, CASES, sizeof *cases);
    count += tests_of_cases(tests + count, same_bits, cases, CASES, sizeof *cases);
    return run_list_on_ranks("wire", tests, count, world_with_text, world_free);
}
