/* A token mixer that averages the past: out = O·mean of V·n over the positions up to its own. Columns of the
 * mean are divided over tensor ranks, W on each. */
#include "kernels/base/status.h"
#include "model/mixer/mixer.h"

#include "rows.h"

#include <stdlib.h>

enum { WEIGHT_VALUE, WEIGHTS }; /* the other product is not one of the numbered */

struct average {
    int policy;
    struct tensor value, out;
    real *mean; /* saved: [T, W] */
};

struct common {
    real *part;         /* [positions, positions] what a position takes of those up to it */
    real *value, *mean; /* scratch: [T, W] before the mean, and its gradient */
    long positions;
};

/* Of the tokens so far. */
struct past {
    long length;
    real *sum; /* [W] */
};

static long width(const struct model *m) {
    return m->config.hidden_size / m->layout.size[AXIS_TENSOR];
}

static int leaves(const struct model_config *c, struct leaf *leaf) {
    long D = c->hidden_size;
    leaf[0] = leaf_matrix("average.value.weight", SPLIT_ROWS, D, D, LEAF_WIDTH);
    leaf[1] = leaf_matrix("average.out.weight", SPLIT_COLUMNS, D, D, leaf_output_width(c->num_layers));
    return 2;
}

static double flops(const struct model_config *c, long length) {
    double D = c->hidden_size;
    return 2 * 2 * D * D + 2 * D * (double)length;
}

static const struct conflict *conflict(const struct model_config *c, int tensor) {
    static const struct conflict columns = {"the columns of an average are shared out evenly",
                                            {"mesh.tensor", "model.hidden_size"}};
    return c->hidden_size % tensor ? &columns : NULL;
}

static void find(const struct model *m, const struct mixing *x) {
    struct average *a = x->own;
    a->value = find_tensor(m, "layers.%d.average.value.weight", x->layer);
    a->out = find_tensor(m, "layers.%d.average.out.weight", x->layer);
}

static void lay_out(struct model *m, const struct mixing *x, void *shared_of_row, long T) {
    struct average *a = x->own, *shared = shared_of_row;
    a->policy = x->policy;
    SAVE(m, a, shared, mean, T * width(m), POLICY_SELECTIVE);
}

static void lay_out_scratch(struct model *m, void *common, long T, long positions) {
    struct common *s = common;
    s->positions = positions;
    s->part = take(&m->scratch, positions * positions);
    s->value = take(&m->scratch, T * width(m));
    if (m->training) s->mean = take(&m->scratch, T * width(m));
}

static int fill(struct model *m, void *common, long positions) {
    const struct common *s = common;
    real *part = calloc((size_t)(positions * positions), sizeof *part);
    if (!part) return gdn_fail(GDN_INTERNAL, "out of memory for the parts of %ld positions", positions);
    for (long t = 0; t < positions; t++)
        for (long p = 0; p <= t; p++) part[t * positions + p] = 1 / (real)(t + 1);
    m->ops->device->upload(s->part, part, (size_t)(positions * positions) * sizeof *part);
    free(part);
    return 0;
}

static void project(struct model *m, const struct mixing *x, const real *n) {
    const struct average *a = x->own;
    const struct common *s = x->common;
    long D = m->config.hidden_size, W = width(m);
    m->ops->linear(x->weight + WEIGHT_VALUE, 'N', 'T', m->T, W, D, 1, n, D, a->value.w, D, 0, s->value, W);
}

static void project_out(struct model *m, const struct mixing *x, real *out) {
    const struct average *a = x->own;
    long D = m->config.hidden_size, W = width(m);
    m->ops->gemm('N', 'T', m->T, D, W, 1, a->mean, W, a->out.w, W, 0, out, D);
}

/* to [T, W] = part·from, sequence by sequence, or partᵀ·from. */
static void mix(struct model *m, const struct common *s, char transposed, const real *from, real *to) {
    long S = m->S, W = width(m);
    for (long at = 0; at < m->T; at += S)
        m->ops->gemm(transposed, 'N', S, W, S, 1, s->part, s->positions, from + at * W, W, 0, to + at * W, W);
}

static void again(struct model *m, const struct mixing *x, const real *n) {
    const struct average *a = x->own;
    const struct common *s = x->common;
    project(m, x, n);
    mix(m, s, 'N', s->value, a->mean);
}

static void forward(struct model *m, const struct mixing *x, const real *n, real *out) {
    again(m, x, n);
    project_out(m, x, out);
}

static void backward(struct model *m, const struct mixing *x, const real *dout, const real *n, real *dn) {
    const struct average *a = x->own;
    const struct common *s = x->common;
    const struct ops *ops = m->ops;
    long T = m->T, D = m->config.hidden_size, W = width(m);
    int value = x->weight + WEIGHT_VALUE;
    ops->gemm('N', 'N', T, W, D, 1, dout, D, a->out.w, W, 0, s->mean, W);
    ops->gemm('T', 'N', D, W, T, 1, dout, D, a->mean, W, 1, a->out.g, W);
    mix(m, s, 'T', s->mean, s->value);
    ops->linear(value, 'N', 'N', T, D, W, 1, s->value, W, a->value.w, D, 0, dn, D);
    ops->linear(value, 'T', 'N', W, D, T, 1, s->value, W, n, D, 1, a->value.g, D);
}

static void lay_out_decode(struct model *m, const struct mixing *x, struct arena *arena, long capacity) {
    struct past *past = x->decode;
    (void)capacity;
    past->sum = take(arena, width(m));
}

static void reset(struct model *m, const struct mixing *x) {
    struct past *past = x->decode;
    past->length = 0;
    m->ops->zero(width(m), past->sum);
}

static void step(struct model *m, const struct mixing *x, const real *n, real *out) {
    const struct average *a = x->own;
    const struct common *s = x->common;
    struct past *past = x->decode;
    long W = width(m);
    project(m, x, n);
    m->ops->add(W, s->value, past->sum);
    past->length++;
    m->ops->gemm('N', 'N', 1, W, 1, 1 / (real)past->length, s->part, 1, past->sum, W, 0, a->mean,
                 W); /* part is 1 */
    project_out(m, x, out);
}

static const struct mixer average = {
    .name = "average",
    .own_bytes = sizeof(struct average),
    .common_bytes = sizeof(struct common),
    .decode_bytes = sizeof(struct past),
    .weights = WEIGHTS,
    .leaves = leaves,
    .flops = flops,
    .conflict = conflict,
    .find = find,
    .lay_out = lay_out,
    .lay_out_scratch = lay_out_scratch,
    .fill = fill,
    .forward = forward,
    .backward = backward,
    .again = again,
    .again_from = POLICY_SELECTIVE,
    .lay_out_decode = lay_out_decode,
    .reset = reset,
    .step = step,
};

static int number; /* 0 is gdn's own */

void choose_mixers(struct model_config *model) {
    const char *layers = getenv("GDN_TEST_MIXERS");
    for (int l = 0; layers && layers[l] && l < MAX_MIXERS; l++)
        model->mixers[model->num_mixers++] = layers[l] == '1' ? number : 0;
}

void rows_of_mixers(void) {
    if (!number) number = mixer_register(&average);
}
