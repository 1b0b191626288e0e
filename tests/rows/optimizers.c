/* Optimisers that a test names in the environment variable GDN_TEST_OPTIMIZER, since no key does. On the host
 * alone. */
#include "rows.h"
#include "train/optimizer/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct moments *velocity(const struct row *row) {
    static const struct moments one = {1, {"velocity"}};
    (void)row;
    return &one;
}

/* Momentum beta1, decoupled decay. */
static void sgd(const struct update *u) {
    const struct treatment *t = &u->row->treatment;
    for (long i = 0; i < u->count; i++) {
        double v = t->beta1 * (double)u->moment[0][i] + u->gscale * (double)u->gradient[i];
        u->moment[0][i] = (real)v;
        u->weight[i] = (real)((double)u->weight[i] * (1 - u->lr * u->decay) - u->lr * v);
    }
}

/* Matrices between the embedding and the head: the momentum, over its Frobenius norm times the root of its
 * size. All other tensors: the average, with a second moment that only counts, so that a tensor's number of
 * moments differs. */
static bool in_a_layer(const struct row *row) {
    return row->ndim == 2 && strncmp(row->name, "layers.", 7) == 0;
}

static enum whole each_tensor(const struct train_config *train, const struct row *row) {
    (void)train;
    return in_a_layer(row) ? WHOLE_TENSOR : WHOLE_NONE;
}

static const struct moments *momentum(const struct row *row) {
    static const struct moments one = {1, {"momentum"}}, two = {2, {"average", "updates"}};
    return in_a_layer(row) ? &one : &two;
}

static void prepare(const struct update *u) {
    for (long i = 0; i < u->count; i++) {
        double m = u->row->treatment.beta1 * (double)u->moment[0][i] + u->gscale * (double)u->gradient[i];
        u->moment[0][i] = u->gradient[i] = (real)m;
    }
}

static void normalize(const struct matrix *m) {
    double square = 0, count = (double)(m->rows * m->columns);
    for (long r = 0; r < m->row->shape[0]; r++) /* in the order of the tensor, however it lies in memory */
        for (long c = 0; c < m->row->shape[1]; c++) {
            double x = (double)m->x[m->row->transposed ? c * m->columns + r : r * m->columns + c];
            square += x * x;
        }
    for (long i = 0; i < m->rows * m->columns; i++)
        m->workspace[i] = square > 0 ? (real)((double)m->x[i] * sqrt(count / square)) : 0;
    m->ops->copy(m->rows * m->columns, m->workspace, m->x);
}

static long as_large(long rows, long columns) {
    return rows * columns;
}

static double passes(const struct train_config *train, long rows, long columns) {
    (void)train;
    return 2.0 * (double)(rows * columns);
}

static void descend(const struct update *u) {
    const struct treatment *t = &u->row->treatment;
    for (long i = 0; i < u->count; i++) {
        double step = (double)u->gradient[i];
        if (!in_a_layer(u->row)) {
            step = t->beta1 * (double)u->moment[0][i] + u->gscale * step;
            u->moment[0][i] = (real)step;
            u->moment[1][i] += 1;
        }
        u->weight[i] = (real)((double)u->weight[i] * (1 - u->lr * u->decay) - u->lr * step);
    }
}

static const struct optimizer_rule rules[] = {
    {.name = "sgd", .moments = velocity, .update = sgd},
    {.name = "frobenius",
     .moments = momentum,
     .update = descend,
     .whole = each_tensor,
     .prepare = prepare,
     .matrix = normalize,
     .workspace = as_large,
     .flops = passes},
};

void rows_of_optimizers(void) {
    const char *name = getenv("GDN_TEST_OPTIMIZER");
    for (size_t i = 0; name && i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(name, rules[i].name)) optimizer_register(&rules[i]);
}
