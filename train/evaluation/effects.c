/* What training passes tell of the groups that evaluations are made of, by ranks that have all layers each: what the
 * loss would gain without each connection, to first order; by which angle each layer turns the stream. */
#include "train/evaluation/evaluation.h"

#include "kernels/base/status.h"
#include "model/params/stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct measuring {
    struct evaluation *evaluation;
    const struct ops *ops;
    const struct edge_set *active;
    struct model_config config; /* without dropout, which is training's */
    struct state state;         /* the weights', and gradients of them, which nobody reads */
    struct model *model;
    real *stream;                 /* [group · length, stream] gradient of what the pass has come to; outputs */
    struct connection_sums *sums; /* [edges] of a group */
    double *squares;              /* [edges, and the sequences that they are of] */
    double *angles;               /* in their place: [layers, and the tokens that they are of] */
};

/* Between two rows, in parts of half a turn. */
static double angle(const real *a, const real *b, long width) {
    double ab = 0, aa = 0, bb = 0;
    for (long i = 0; i < width; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return aa > 0 && bb > 0 ? acos(fmax(-1, fmin(1, ab / sqrt(aa * bb)))) / M_PI : 0;
}

static void add_angles(struct measuring *m, long sequences) {
    const int layers = m->config.num_layers;
    const long T = sequences * m->evaluation->length, width = stream_width(&m->config);
    const size_t bytes = (size_t)(T * width) * sizeof(real);
    long rows;
    memcpy(m->stream, model_output_rows(m->model, 0, 0, -1, T, &rows), bytes); /* each may take the last one's place */
    for (int l = 0; l < layers; l++) {
        const real *out = model_output_rows(m->model, 0, 0, l, T, &rows);
        for (long t = 0; t < T; t++) m->angles[l] += angle(m->stream + t * width, out + t * width, width);
        memcpy(m->stream, out, bytes);
    }
    m->angles[layers] += (double)T;
}

static void measure_group(struct measuring *m, long sequences) {
    struct evaluation *e = m->evaluation;
    const int edges = e->pipeline.edges.count, layers = m->config.num_layers;
    struct loss_options options = {.active = m->active,
                                   .target_weight = 1 / (double)(sequences * e->length),
                                   .token_weight = 1 / (double)(sequences * e->length),
                                   .effects = m->squares};
    struct pass pass = {.rows = e->rows,
                        .batch = sequences,
                        .length = e->length,
                        .options = &options,
                        .gradient = m->stream,
                        .connections = m->sums};
    struct loss_sums all = {0};
    for (int i = 0; i < edges; i++) m->sums[i] = (struct connection_sums){0};
    model_stage_forward(m->model, &pass, &all);
    if (m->angles) add_angles(m, sequences);
    if (!m->squares) return;
    model_stage_backward(m->model, &pass, layers, -1, &all);
    for (int i = 0; i < edges; i++)
        m->squares[i] += (double)sequences * m->sums[i].effect * m->sums[i].effect;
    m->squares[edges] += (double)sequences;
}

/* This rank's groups, as evaluations divide them. */
static int measure_part(struct measuring *m, const struct validation_part *part) {
    struct evaluation *e = m->evaluation;
    const int ranks = e->mesh->batch.parts, rank = e->mesh->batch.index;
    const long groups = (part->sequences + e->group - 1) / e->group;
    for (long g = groups * rank / ranks; g < groups * (rank + 1) / ranks; g++) {
        const long first = g * e->group, left = part->sequences - first;
        const long sequences = left < e->group ? left : e->group;
        TRY(sampler_read_sequences(part->sampler, part->first + first, sequences, e->vocab, e->rows));
        measure_group(m, sequences);
        TRY(model_status(m->model));
    }
    return 0;
}

/* What this rank can do alone. */
static int measure(struct measuring *m, const struct table *table) {
    struct evaluation *e = m->evaluation;
    const size_t edges = (size_t)e->pipeline.edges.count;
    const struct model_part part = {.layout = e->pipeline.layout,
                                    .tensor = &e->mesh->axis[AXIS_TENSOR],
                                    .activation_sets = e->pipeline.activation_sets,
                                    .documents = e->documents};
    m->state.gradient = calloc((size_t)table->total + 1, sizeof *m->state.gradient);
    m->stream = calloc((size_t)(e->group * e->length * stream_width(&m->config)), sizeof *m->stream);
    m->sums = calloc(edges + 1, sizeof *m->sums);
    if (!m->state.gradient || !m->stream || !m->sums)
        return gdn_fail(GDN_INTERNAL, "out of memory for gradients of %ld weights", table->total);
    TRY(model_create(&m->config, table, &m->state, m->ops, &part, e->group, e->length, true, &m->model));
    for (int i = 0; i < e->validation->parts; i++) TRY(measure_part(m, &e->validation->part[i]));
    return 0;
}

/* Sums over all ranks, of `count` values and what they are of. Collective. */
static int measure_on_all(struct measuring *m, const struct evaluation_subject *subject, double *values, int count) {
    struct mesh *mesh = m->evaluation->mesh;
    m->ops = subject->ops;
    m->config = *subject->config;
    m->state = (struct state){.weight = subject->state->weight};
    m->config.dropout = (struct dropout_config){0};
    m->config.delta.regularizer = REGULARIZER_NONE;
    for (int i = 0; i <= count; i++) values[i] = 0;
    int status = mesh_agree(mesh, subject->ops->device->host
                                      ? measure(m, subject->table)
                                      : gdn_fail(GDN_INTERNAL, "training passes are measured on the host"));
    model_free(m->model);
    free(m->state.gradient);
    free(m->stream);
    free(m->sums);
    return status ? status : mesh_sum(mesh, values, count + 1);
}

int evaluation_effects(struct evaluation *evaluation, const struct evaluation_subject *subject,
                       const struct edge_set *active, double *effect) {
    const int edges = evaluation->pipeline.edges.count;
    struct measuring m = {.evaluation = evaluation, .active = active, .squares = effect};
    TRY(measure_on_all(&m, subject, effect, edges));
    for (int i = 0; i < edges; i++) effect[i] = sqrt(effect[i] / effect[edges]);
    return 0;
}

int evaluation_angles(struct evaluation *evaluation, const struct evaluation_subject *subject,
                      const struct edge_set *active, double *angles) {
    const int layers = subject->config->num_layers;
    struct measuring m = {.evaluation = evaluation, .active = active, .angles = angles};
    TRY(measure_on_all(&m, subject, angles, layers));
    for (int l = 0; l < layers; l++) angles[l] /= angles[layers];
    return 0;
}
