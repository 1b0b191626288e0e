#include "train/partition/pipeline.h"

#include <math.h>
#include <stdlib.h>

#include "dist/verify/verify.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/rules/rules.h"
#include "model/model.h"
#include "model/params/stream.h"
#include "model/table/params.h"
#include "train/config/batch.h"
#include "train/optimizer/groups.h"
#include "train/partition/boundary_size.h"
#include "train/partition/placement.h"
#include "train/partition/times.h"
#include "train/partition/weights.h"

/* What the steps before and between have in common. */
struct builder {
    const struct config *config;
    const struct partition_place *place;
    struct pipeline *out;
    struct schedule_options options;
    int *weight_sets, *in_flight; /* [ranks] weight and activation sets of which schedules may make use */
    struct stage_times *times;    /* [stages] */
};

struct partition_place partition_place_of(const int size[AXES], long rank) {
    int index[AXES];
    axes_place_joined(size, rank, index);
    return (struct partition_place){.copies = axes_joined(size).size[AXIS_COPIES],
                                    .copy = index[AXIS_COPIES],
                                    .batch_parts = axes_batch(size, rank).parts,
                                    .tensor_index = index[AXIS_TENSOR],
                                    .pipeline_index = index[AXIS_PIPELINE]};
}

static int reserve(struct builder *b) {
    struct pipeline *p = b->out;
    size_t ranks = (size_t)p->ranks, distances = (size_t)p->distances;
    p->layout = calloc(ranks, sizeof *p->layout);
    p->table = calloc(ranks, sizeof *p->table);
    p->shards = calloc(ranks, sizeof *p->shards);
    p->introduced = calloc(distances + 1, sizeof *p->introduced);
    p->active = calloc(distances + 1, sizeof *p->active);
    p->activation_sets = calloc(ranks * (size_t)mesh_chunks(&b->config->mesh), sizeof *p->activation_sets);
    p->blocks = calloc(ranks, sizeof *p->blocks);
    p->narrow_blocks = calloc(ranks, sizeof *p->narrow_blocks);
    p->actions = calloc(ranks, sizeof *p->actions);
    p->weight_sets = calloc(ranks, sizeof *p->weight_sets);
    p->weights_from = calloc(ranks, sizeof *p->weights_from);
    b->weight_sets = calloc(ranks, sizeof *b->weight_sets);
    b->in_flight = calloc(ranks, sizeof *b->in_flight);
    b->times = calloc(2 * ranks, sizeof *b->times);
    if (p->layout && p->table && p->shards && p->introduced && p->active && p->activation_sets && p->blocks &&
        p->narrow_blocks && p->actions && p->weight_sets && p->weights_from && b->weight_sets &&
        b->in_flight && b->times)
        return 0;
    return gdn_fail(GDN_INTERNAL, "out of memory for the schedule of %d pipeline ranks", p->ranks);
}

/* What every pipeline rank has: layouts, tables, shards. */
static int lay_out(struct builder *b, const struct layout *first) {
    struct pipeline *p = b->out;
    for (int r = 0; r < p->ranks; r++) {
        p->layout[r] = *first;
        p->layout[r].index[AXIS_PIPELINE] = r;
        TRY(params_create(&b->config->model, &p->layout[r], &p->table[r]));
        optimizer_treat(&b->config->train, &p->table[r]);
        TRY(shards_create(&p->table[r], b->place->copies, b->place->copy, b->config->mesh.sum_group,
                          b->config->mesh.bucket, &p->shards[r]));
        p->share |= p->table[r].zone[ZONE_SHARED_LARGE] < p->table[r].total;
    }
    p->widths = model_route_widths(&b->config->model, first);
    return 0;
}

/* The sets of edges that steps have, from the first step's on. */
static int introduce_edges(struct builder *b) {
    const struct delta_config *delta = &b->config->model.delta;
    struct pipeline *p = b->out;
    TRY(edges_create(&b->config->model, &p->edges));
    for (int active = active_distances(delta, 0); active <= delta->num_distances; active++)
        TRY(edges_introduced(&p->edges, active, &p->active[active]));
    return 0;
}

/* One schedule, verified; `routes` is left to the caller. */
static int schedule(struct builder *b, int active, struct routes *routes, struct schedule *out) {
    struct pipeline *p = b->out;
    const struct edge_set *set = &p->active[active];
    TRY(routes_create(&p->edges, set, p->layout, &p->widths, routes));
    TRY(schedule_create(&p->edges, routes, p->layout, &b->options, out));
    TRY(schedule_verify(&p->edges, set, routes, p->layout, &b->options, out));
    pipeline_raise(p, out);
    return 0;
}

/* Schedules of steps with fewer than all distances: introduced one after the other, from the first on;
 * without stages all are there at once. */
static int introduce(struct builder *b, struct schedule *introduced) {
    const struct delta_config *delta = &b->config->model.delta;
    for (int active = active_distances(delta, 0); active < delta->num_distances; active++) {
        struct routes routes = {0};
        int status = schedule(b, active, &routes, &introduced[active]);
        routes_free(&routes);
        TRY(status);
    }
    return 0;
}

/* Schedules of another number of micro-batches, unless there are some. */
static int add_smaller(struct builder *b, int micro_batches) {
    struct pipeline *p = b->out;
    if (pipeline_schedule(p, micro_batches, NULL)) return 0;
    struct pipeline_smaller *s = &p->smaller[p->num_smaller++];
    struct routes routes = {0};
    s->micro_batches = b->options.micro_batches = micro_batches;
    s->introduced = calloc((size_t)p->distances + 1, sizeof *s->introduced);
    if (!s->introduced) return gdn_fail(GDN_INTERNAL, "out of memory for the schedules of smaller batches");
    TRY(introduce(b, s->introduced));
    int status = schedule(b, p->distances, &routes, &s->schedule);
    routes_free(&routes);
    return status;
}

static int build_smaller(struct builder *b) {
    const struct train_config *train = &b->config->train;
    struct pipeline *p = b->out;
    int sizes = batch_sizes(train), parts = b->place->batch_parts;
    long micro_batch = batch_largest(train) / parts / p->micro_batches;
    p->smaller = calloc((size_t)sizes, sizeof *p->smaller);
    if (!p->smaller) return gdn_fail(GDN_INTERNAL, "out of memory for the schedules of %d batches", sizes);
    for (int i = 0; train->num_ramp && i < sizes; i++)
        TRY(add_smaller(b, (int)(batch_size(train, i) / parts / micro_batch)));
    return 0;
}

/* Buffers are counted in longs, their bytes too: all that the passes of a rank could have, at most. */
static int validate_countable(const struct config *config, int parts, int micro_batches) {
    const struct model_config *m = &config->model;
    const struct delta_config *d = &m->delta;
    long micro_batch = batch_largest(&config->train) / parts / micro_batches;
    double max = 0x1p56, connection = 4.0 * d->hidden + 4.0 * d->gate_hidden + 4.0 * m->hidden_size,
           layer =
               16.0 * (double)stream_width(m) + 6.0 * m->intermediate_size + delta_most_into(d) * connection,
           activation_sets =
               fmin(micro_batches, 2.0 * config->mesh.size[AXIS_PIPELINE] * mesh_chunks(&config->mesh)),
           all = (double)micro_batch * config->train.sequence_length * layer * (m->num_layers + 2.0) *
                 activation_sets;
    if (all < max) return 0;
    return gdn_fail(GDN_INPUT,
                    "train.sequence_length %d, micro-batches of %ld, model.num_layers %d, hidden_size %d, "
                    "intermediate_size %d and model.delta together give up to %.3g numbers in memory; fewer "
                    "than %.3g are expected",
                    config->train.sequence_length, micro_batch, m->num_layers, m->hidden_size,
                    m->intermediate_size, all, max);
}

static struct weights_pipeline weights_of(const struct builder *b) {
    const struct pipeline *p = b->out;
    return (struct weights_pipeline){
        .config = b->config,
        .ranks = p->ranks,
        .micro_batches = p->micro_batches,
        .batch = batch_largest(&b->config->train) / b->place->batch_parts / p->micro_batches,
        .edges = &p->edges,
        .active = &p->active[p->distances],
        .layout = p->layout,
        .shards = p->shards,
        .widths = &p->widths,
    };
}

/* What bounds a V's passes, and how long they take. */
static int bound_v(struct builder *b, const struct weights_pipeline *of) {
    struct pipeline *p = b->out;
    const struct v_bounds bounds = {b->in_flight, b->weight_sets};
    struct routes routes;
    TRY(routes_create(&p->edges, &p->active[p->distances], p->layout, &p->widths, &routes));
    int status = stage_times_of(b->config, &p->edges, &routes, &p->widths, p->layout, b->times);
    routes_free(&routes);
    TRY(status);
    b->options.times = b->times;
    TRY(weights_bound_v(of, &b->options, &bounds));
    b->options.activation_sets = b->in_flight;
    if (b->options.forward_only) return 0;
    for (int r = 0; r < p->ranks; r++) p->weights_from[r] = layout_span(&p->layout[r], 0, 0).first;
    b->options.weight_sets = b->weight_sets;
    return 0;
}

/* All schedules, and the most that they need. */
static int build_schedules(struct builder *b) {
    struct pipeline *p = b->out;
    for (int r = 0; r < p->ranks; r++) {
        for (int c = 0; c < p->layout->chunks; c++) p->activation_sets[p->layout->chunks * r + c] = 0;
        p->blocks[r] = p->narrow_blocks[r] = p->actions[r] = p->weight_sets[r] = 0;
    }
    p->messages = 0;
    b->options.micro_batches = p->micro_batches;
    TRY(introduce(b, p->introduced));
    TRY(schedule(b, p->distances, &p->routes, &p->schedule));
    return b->options.forward_only ? 0 : build_smaller(b);
}

static void free_schedules(struct schedule *introduced, int distances, struct schedule *all) {
    for (int a = 0; introduced && a < distances; a++) schedule_free(&introduced[a]);
    schedule_free(all);
}

static void forget_schedules(struct pipeline *p) {
    free_schedules(p->introduced, p->distances, &p->schedule);
    routes_free(&p->routes);
    for (int i = 0; i < p->num_smaller; i++) {
        free_schedules(p->smaller[i].introduced, p->distances, &p->smaller[i].schedule);
        free(p->smaller[i].introduced);
    }
    free(p->smaller);
    p->smaller = NULL;
    p->num_smaller = 0;
}

static int build(struct builder *b) {
    const struct config *config = b->config;
    const struct partition_place *place = b->place;
    struct pipeline *p = b->out;
    struct layout first;
    TRY(validate_countable(config, place->batch_parts, b->options.micro_batches));
    if (place->copies % config->mesh.sum_group)
        return gdn_fail(GDN_INPUT,
                        "mesh.sum_group: %d does not divide the %d ranks of mesh.data x mesh.context, of which it is "
                        "a group; 1 is for none",
                        config->mesh.sum_group, place->copies);
    TRY(placement_create(config, place->copies, place->tensor_index, 0, &first));
    p->stage = first.stage;
    if (!b->options.forward_only) {
        TRY(boundary_validate(config,
                              batch_largest(&config->train) / place->batch_parts / b->options.micro_batches));
        first.compress = config->mesh.compress_boundary;
        first.feedback = config->mesh.compress_feedback;
        first.compress_over = config->mesh.size[AXIS_CONTEXT];
    }
    TRY(reserve(b));
    TRY(lay_out(b, &first));
    TRY(introduce_edges(b));
    if (!b->options.forward_only) b->options.shards = p->shards, b->options.share = p->share;

    bool waits = config->mesh.schedule == SCHEDULE_ZERO_BUBBLE && !b->options.forward_only;
    int64_t most = 0;
    const struct weights_pipeline of = weights_of(b);
    if (waits) {
        TRY(weights_choose(&of, &b->options, b->weight_sets, p->weights_from, &most));
        b->options.weight_sets = b->weight_sets;
    }
    if (first.v) TRY(bound_v(b, &of));

    const struct weights_buffers has = {p->activation_sets, p->blocks, p->narrow_blocks, p->weight_sets};
    for (bool fits = false; !fits;) {
        forget_schedules(p);
        TRY(build_schedules(b));
        fits = true;
        if (first.v && !b->options.forward_only) TRY(weights_fit_v(&of, &has, b->weight_sets, &fits));
    }
    p->options = b->options;
    p->options.weight_sets = NULL; /* the builder's; sets of edges are chosen without them (train.prune) */
    p->options.activation_sets = NULL, p->options.times = NULL;
    return waits ? weights_fit(&of, &has, most, p->weights_from) : 0;
}

int pipeline_create(const struct config *config, const struct partition_place *place, int micro_batches,
                    bool training, struct pipeline *out) {
    *out = (struct pipeline){.ranks = config->mesh.size[AXIS_PIPELINE],
                             .distances = config->model.delta.num_distances,
                             .micro_batches = micro_batches};
    struct builder b = {.config = config,
                        .place = place,
                        .out = out,
                        .options = {.micro_batches = micro_batches,
                                    .num_layers = config->model.num_layers,
                                    .forward_only = !training,
                                    .overlap = config->mesh.overlap}};
    int status = build(&b);
    free(b.weight_sets);
    free(b.in_flight);
    free(b.times);
    if (status) pipeline_free(out);
    return status;
}

void pipeline_free(struct pipeline *p) {
    pipeline_choose(p, NULL, -1); /* frees those that are */
    for (int r = 0; r < p->ranks; r++) {
        if (p->shards) shards_free(&p->shards[r]);
        if (p->table) params_free(&p->table[r]);
    }
    forget_schedules(p);
    free(p->introduced);
    for (int a = 0; p->active && a <= p->distances; a++) edge_set_free(&p->active[a]);
    free(p->active);
    edges_free(&p->edges);
    free(p->stage);
    free(p->layout);
    free(p->table);
    free(p->shards);
    free(p->activation_sets);
    free(p->blocks);
    free(p->narrow_blocks);
    free(p->actions);
    free(p->weight_sets);
    free(p->weights_from);
    *p = (struct pipeline){0};
}
