#include "train/partition/weights.h"

#include <stdlib.h>

#include "dist/comm/axis.h"
#include "kernels/base/status.h"
#include "model/params/stream.h"
#include "model/table/params.h"
#include "train/config/rows.h"
#include "train/memory/memory.h"
#include "train/memory/state.h"
#include "train/optimizer/groups.h"
#include "train/partition/policies.h"

/* What the steps below have in common. */
struct fitting {
    const struct weights_pipeline *of;
    const struct config *config;
    long batch, length; /* of a micro-batch: rows and their tokens */
    struct recompute *policy;       /* [num_layers] */
    struct model_weight_size *size; /* [num_layers] of a weight set of the rank in hand */
};

/* What a rank's passes have, but for weight sets. */
struct buffers {
    const int *activation_sets; /* [1] */
    int blocks, narrow_blocks;
};

static int begin(const struct weights_pipeline *of, struct fitting *out) {
    const struct config *config = of->config;
    size_t layers = (size_t)config->model.num_layers;
    *out = (struct fitting){
        .of = of,
        .config = config,
        .length = config_row_length(config),
        .batch = config_rows(config, of->batch),
        .policy = calloc(layers, sizeof *out->policy),
        .size = calloc(layers, sizeof *out->size),
    };
    if (!out->policy || !out->size)
        return gdn_fail(GDN_INTERNAL, "out of memory for the sizes of %zu layers", layers);
    recompute_fixed(&config->train, config->model.num_layers, out->policy);
    return 0;
}

static void end(struct fitting *f) {
    free(f->policy);
    free(f->size);
}

/* Of weights, gradients and the optimiser. */
static int64_t state_bytes(const struct fitting *f, const struct table *table, int rank) {
    struct state_memory state;
    state_plan(&state, NULL, config_weight_copy(f->config), table, STATE_TRAINING, &f->of->shards[rank]);
    return state_planned_weights(&state) + (int64_t)(state.gradients.used + state.optimizer.used);
}

/* Bytes that a rank's passes hold, without weight sets. */
static int held_bytes(const struct fitting *f, const struct layout *layout, const struct table *table,
                      const struct buffers *has, int64_t *bytes) {
    const struct model_config *config = &f->config->model;
    struct axis tensor = axis_planned("tensor", layout->size[AXIS_TENSOR], layout->index[AXIS_TENSOR]);
    struct axis context = axis_planned("context", f->config->mesh.size[AXIS_CONTEXT], 0);
    const struct model_part part = {
        .layout = layout,
        .tensor = &tensor,
        .context = &context,
        .context_exchange = f->config->mesh.context_exchange,
        .activation_sets = has->activation_sets,
        .recompute = f->policy,
        .compress_sources = f->config->train.compress_sources,
        .bf16_activations = f->config->train.activations == ACTIVATIONS_BF16,
        .documents = f->config->data.documents == DOCUMENTS_MASK,
        .padding = f->config->data.packing == PACKING_BEST_FIT,
    };
    struct model *model;
    struct model_memory memory = {0};
    int status = model_create_planned(config, table, &part, f->batch, f->length, true, &model);
    if (!status) model_memory(model, &memory);
    model_free(model);
    axis_free(&tensor);
    long columns = has->blocks * stream_width(config) + has->narrow_blocks * projected_width(config, layout);
    *bytes = memory.activations + memory.sources + memory.workspace +
             f->batch * f->length * columns * (int64_t)sizeof(real);
    return status;
}

/* What a weight set has of each layer. */
static int sizes(const struct fitting *f, const struct layout *layout, const struct table *table) {
    const struct model_part part = {.layout = layout,
                                    .documents = f->config->data.documents == DOCUMENTS_MASK,
                                    .padding = f->config->data.packing == PACKING_BEST_FIT};
    return model_weight_sizes(&f->config->model, table, &part, f->batch, f->length, f->size);
}

/* Bytes of so many weight sets of the layers from `from` on. */
static int64_t weight_bytes(const struct fitting *f, struct span span, int sets, int from) {
    return sets * (int64_t)model_weight_size_of(f->size, span, from).elements * (int64_t)sizeof(real);
}

/* The lowest layer from which on they fit into so many bytes. */
static int lowest(const struct fitting *f, struct span span, int sets, int64_t bytes) {
    int from = span.end;
    while (from > span.first && weight_bytes(f, span, sets, from - 1) <= bytes) from--;
    return from;
}

/* The bytes that a rank of a tensor index holds with these buffers, and with `sized` f->size. */
static int look_at(const struct fitting *f, int rank, int tensor, const struct buffers *has, bool sized,
                   int64_t *bytes) {
    struct layout layout = f->of->layout[rank];
    struct table table;
    layout.index[AXIS_TENSOR] = tensor;
    TRY(params_create(&f->config->model, &layout, &table));
    optimizer_treat(&f->config->train, &table);
    int status = held_bytes(f, &layout, &table, has, bytes);
    *bytes += state_bytes(f, &table, rank);
    if (!status && sized) status = sizes(f, &layout, &table);
    params_free(&table);
    return status;
}

static int tensor_ranks(const struct fitting *f) {
    return f->of->layout[0].size[AXIS_TENSOR];
}

static struct buffers buffers_of(const struct schedule *schedule, int rank) {
    return (struct buffers){&schedule->activation_sets[rank], schedule->blocks[rank],
                            schedule->narrow_blocks[rank]};
}

/* The number of sets by which most waits, from whichever layer each number allows, and that layer; of the
 * same, fewer sets of more layers. `from` [sets + 1] is what each number allows. */
static void choose(const struct fitting *f, struct span span, int sets, const int *from, int *best,
                   int *from_best) {
    int64_t most = 0;
    *best = 0, *from_best = span.end;
    for (int k = 1; k <= sets; k++) {
        int64_t bytes = weight_bytes(f, span, k, from[k]);
        if (bytes > most) most = bytes, *best = k, *from_best = from[k];
    }
}

static int choose_rank(struct fitting *f, const struct schedule *usual, int rank, int64_t most, int *sets,
                       int *from_best) {
    const struct span span = f->of->layout[rank].stage[rank];
    const struct buffers has = buffers_of(usual, rank);
    const int useful = rank + (f->config->mesh.schedule_memory > 0 ? 1 : 0),
              at_most = useful < f->of->micro_batches ? useful : f->of->micro_batches;
    int from[at_most + 1];
    for (int k = 0; k <= at_most; k++) from[k] = span.first;
    for (int t = 0; t < tensor_ranks(f); t++) {
        int64_t bytes;
        TRY(look_at(f, rank, t, &has, true, &bytes));
        for (int k = 1; k <= at_most; k++) {
            int own = lowest(f, span, k, most - bytes);
            if (own > from[k]) from[k] = own;
        }
    }
    choose(f, span, at_most, from, sets, from_best);
    return 0;
}

/* With 1F1B's schedule of the largest steps. */
static int choose_all(struct fitting *f, const struct schedule *usual, int *weight_sets, int *from,
                      int64_t *most) {
    const double given = f->config->mesh.schedule_memory * GIB;
    *most = (int64_t)given;
    for (int r = 0; r < f->of->ranks && !given; r++)
        for (int t = 0; t < tensor_ranks(f); t++) {
            const struct buffers has = buffers_of(usual, r);
            int64_t bytes;
            TRY(look_at(f, r, t, &has, false, &bytes));
            if (bytes > *most) *most = bytes;
        }
    for (int r = 0; r < f->of->ranks; r++) TRY(choose_rank(f, usual, r, *most, &weight_sets[r], &from[r]));
    return 0;
}

int weights_choose(const struct weights_pipeline *of, const struct schedule_options *options,
                   int *weight_sets, int *from, int64_t *most) {
    struct schedule_options usual_options = *options;
    struct schedule usual = {0};
    struct routes routes = {0};
    struct fitting f;
    usual_options.weight_sets = NULL;
    int status = begin(of, &f);
    if (!status) status = routes_create(of->edges, of->active, of->layout, of->widths, &routes);
    if (!status) status = schedule_create(of->edges, &routes, of->layout, &usual_options, &usual);
    if (!status) status = choose_all(&f, &usual, weight_sets, from, most);
    schedule_free(&usual);
    routes_free(&routes);
    end(&f);
    return status;
}

/* What V ranks need. */
struct v_needs {
    int64_t bytes; /* without weight sets */
    int64_t set;   /* of a weight set */
};

/* A rank's, of the tensor index that needs most. `activation_sets` [chunks]. */
static int v_needs_of(struct fitting *f, int rank, const struct buffers *has, struct v_needs *out) {
    const struct layout *layout = &f->of->layout[rank];
    *out = (struct v_needs){0};
    for (int t = 0; t < tensor_ranks(f); t++) {
        int64_t bytes;
        TRY(look_at(f, rank, t, has, true, &bytes));
        if (out->bytes < bytes) out->bytes = bytes;
        for (int c = 0; c < layout->chunks; c++) {
            const struct span span = layout->stage[layout_stage(layout, rank, c)];
            int64_t set = weight_bytes(f, span, 1, span.first);
            if (out->set < set) out->set = set;
        }
    }
    return 0;
}

/* With `in_flight` activation sets on each rank: how many weight sets there is room for, at most 2 for each rank,
 * and the first rank that lacks bytes for one; −1: none. */
static int try_in_flight(struct fitting *f, const struct routes *routes, const struct schedule_options *options,
                         int in_flight, const struct v_bounds *bounds, int *lacks, int64_t *least) {
    const int ranks = f->of->ranks;
    const int64_t most = (int64_t)(f->config->mesh.schedule_memory * GIB);
    struct schedule_options tried = *options;
    struct schedule schedule;
    for (int r = 0; r < ranks; r++) bounds->activation_sets[r] = in_flight, bounds->weight_sets[r] = 2 * ranks;
    tried.activation_sets = bounds->activation_sets, tried.weight_sets = bounds->weight_sets;
    TRY(schedule_create(f->of->edges, routes, f->of->layout, &tried, &schedule));
    int status = 0;
    *lacks = -1;
    for (int r = 0; !status && r < ranks; r++) {
        const struct buffers has = {&schedule.activation_sets[f->of->layout->chunks * r], schedule.blocks[r],
                                    schedule.narrow_blocks[r]};
        struct v_needs needs;
        if ((status = v_needs_of(f, r, &has, &needs))) break;
        int64_t room = (most - needs.bytes) / (needs.set ? needs.set : 1);
        if (room < 1 && *lacks < 0) *lacks = r, *least = needs.bytes + needs.set;
        bounds->weight_sets[r] = room < 1 ? 1 : room > 2 * ranks ? 2 * ranks : (int)room;
    }
    schedule_free(&schedule);
    return status;
}

/* The most activation sets, up to what is of use, with which all ranks have a weight set. */
static int choose_v(struct fitting *f, const struct routes *routes, const struct schedule_options *options,
                    const struct v_bounds *bounds) {
    int enough = 2 * f->of->ranks, least = 2, lacks;
    int64_t bytes = 0;
    TRY(try_in_flight(f, routes, options, enough, bounds, &lacks, &bytes));
    if (lacks < 0) return 0;
    TRY(try_in_flight(f, routes, options, least, bounds, &lacks, &bytes));
    if (lacks >= 0)
        return gdn_fail(GDN_INPUT,
                        "mesh.schedule_memory is %g GiB, of which pipeline rank %d needs %.3g at least in "
                        "zero_bubble_v",
                        f->config->mesh.schedule_memory, lacks, (double)bytes / GIB);
    while (enough - least > 1) {
        int between = (least + enough) / 2;
        TRY(try_in_flight(f, routes, options, between, bounds, &lacks, &bytes));
        *(lacks < 0 ? &least : &enough) = between;
    }
    return try_in_flight(f, routes, options, least, bounds, &lacks, &bytes);
}

int weights_bound_v(const struct weights_pipeline *of, const struct schedule_options *options,
                    const struct v_bounds *bounds) {
    for (int r = 0; r < of->ranks; r++) bounds->activation_sets[r] = 2 * of->ranks, bounds->weight_sets[r] = 1;
    if (!(of->config->mesh.schedule_memory > 0) || options->forward_only) return 0;
    struct routes routes = {0};
    struct fitting f;
    int status = begin(of, &f);
    if (!status) status = routes_create(of->edges, of->active, of->layout, of->widths, &routes);
    if (!status) status = choose_v(&f, &routes, options, bounds);
    routes_free(&routes);
    end(&f);
    return status;
}

int weights_fit_v(const struct weights_pipeline *of, const struct weights_buffers *has, int *weight_sets,
                  bool *fits) {
    const int64_t most = (int64_t)(of->config->mesh.schedule_memory * GIB);
    struct fitting f;
    int status = begin(of, &f);
    *fits = true;
    for (int r = 0; !status && most && r < of->ranks; r++) {
        const struct buffers own = {&has->activation_sets[of->layout->chunks * r], has->blocks[r],
                                    has->narrow_blocks[r]};
        struct v_needs needs;
        status = v_needs_of(&f, r, &own, &needs);
        if (status || needs.bytes + has->weight_sets[r] * needs.set <= most) continue;
        *fits = false;
        weight_sets[r] = has->weight_sets[r] - 1;
    }
    end(&f);
    return status;
}

static int fit_all(struct fitting *f, const struct weights_buffers *all, int64_t most, int *from) {
    for (int r = 0; r < f->of->ranks; r++)
        for (int t = 0; t < tensor_ranks(f) && all->weight_sets[r]; t++) {
            const struct buffers has = {&all->activation_sets[r], all->blocks[r], all->narrow_blocks[r]};
            int64_t bytes;
            TRY(look_at(f, r, t, &has, true, &bytes));
            int own = lowest(f, f->of->layout[r].stage[r], all->weight_sets[r], most - bytes);
            if (own > from[r]) from[r] = own;
        }
    return 0;
}

int weights_fit(const struct weights_pipeline *of, const struct weights_buffers *has, int64_t most,
                int *from) {
    struct fitting f;
    int status = begin(of, &f);
    if (!status) status = fit_all(&f, has, most, from);
    end(&f);
    return status;
}
