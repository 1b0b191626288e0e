/* A pass of one micro-batch through one chunk of layers, and what it exchanges with other chunks: nodes'
 * outputs forward, their gradients backward (struct pass). A whole model is one chunk. */
#include "kernels/base/status.h"
#include "model/base/dropout.h"
#include "model/base/weight_gradients.h"
#include "model/pass/private.h"

#include <string.h>

/* The tokens, and what their marks say. Where documents start is known of whole sequences alone. */
static void cut_rows(struct model *m, const struct chunk *chunk) {
    const struct pass *pass = m->pass;
    const struct trunk *t = m->trunk;
    const int context = m->context->size;
    int32_t *start = context > 1 ? NULL : t->start;
    if (pass->rows &&
        (chunk->first || chunk->last || chunk->exits || rules_read_tokens(m) || start || t->counts))
        m->ops->cut_tokens(m->B, m->S, pass->rows, t->input, t->target, start, t->counts);
    if (pass->whole && context > 1 && t->start)
        m->ops->cut_tokens(m->B / 2, whole_length(m), pass->whole, NULL, NULL, t->start, NULL);
}

void begin_pass(struct model *m, const struct pass *pass) {
    const struct chunk *chunk = &m->passes->chunk[pass->chunk];
    m->pass = pass;
    m->B = pass->batch, m->S = pass->length, m->T = m->B * m->S;
    m->row0 = m->rows_divided ? axis_first_row(m->tensor, m->T, m->tensor->index) : 0;
    m->rows = (m->rows_divided ? axis_first_row(m->tensor, m->T, m->tensor->index + 1) : m->T) - m->row0;
    m->gradients = m->training && !pass->evaluate;
    m->span = chunk->span;
    m->activation_set = &chunk->activation_set[pass->activation_set];
    m->layer = m->activation_set->layer;
    m->g = pass->gradient;
    m->start = m->trunk->start;
    m->counts = m->trunk->counts;
    cut_rows(m, chunk);
}

int model_status(const struct model *model) {
    if (model->status) return model->status;
    if (model->tensor->status) return model->tensor->status;
    return model->context->status ? model->context->status : model->ops->device->status();
}

static const struct chunk *chunk_of(const struct model *m) {
    return &m->passes->chunk[m->pass->chunk];
}

/* It is kept; later layers read all rows of a source, and other stages those of the stream. */
static void share_node(struct model *m, int node) {
    store_node(m, node);
    bool leaves = node == m->span.end - 1 && !chunk_of(m)->last;
    if (m->rows_divided && (leaves || node_is_read(m, node))) gather_node(m, node);
}

static const real *last_output(const struct model *m) {
    return node_rows(m, m->config.num_layers - 1);
}

void embed_forward(struct model *m) {
    memset(m->activation_set->rstd_known, 0,
           ((size_t)m->config.num_layers + 1) * sizeof *m->activation_set->rstd_known);
    if (!chunk_of(m)->first) return;
    embedding_forward(m);
    share_node(m, -1);
}

/* The layer's output is that of the node below, whose inverse rms later layers may ask the layer for. */
static void skip_layer(struct model *m, int l) {
    const real *below = node_rows(m, l - 1);
    m->ops->copy(m->rows * m->stream, below, node_rows(m, l));
    if (rules_read_rms(m))
        m->ops->row_rstd(m->rows, m->config.hidden_size, below, m->config.norm_eps, m->layer[l].rstd1);
}

static void compute_layer(struct model *m, int l) {
    rules_forward(m, l, PLACE_BEFORE);
    layer_forward(m, l);
    rules_forward(m, l, PLACE_AFTER);
    rules_store(m, l);
}

void layers_forward(struct model *m, int first, int end, struct loss_sums *sums) {
    for (int l = first; l < end; l++) {
        (drops_layer(m, l) ? skip_layer : compute_layer)(m, l);
        share_node(m, l);
        compress_sources(m, l);
        if (!m->gradients) exit_loss(m, l, sums);
        if (m->pass->behind_layer) m->pass->behind_layer(m->pass->caller, l);
    }
}

void chunk_forward(struct model *m, struct loss_sums *sums) {
    rules_begin(m, sums);
    embed_forward(m);
    layers_forward(m, m->span.first, m->span.end, sums);
    rules_begin(m, NULL);
}

void model_stage_forward(struct model *m, const struct pass *pass, struct loss_sums *sums) {
    begin_pass(m, pass);
    check_turns(m);
    chunk_forward(m, sums);
    if (chunk_of(m)->last && !m->gradients) head_loss(m, last_output(m), sums);
}

/* Starts or goes on with a walk; records a failure where the call is not the one that comes next. */
static bool step_walk(struct model *m, int layer) {
    const struct pass *pass = m->pass;
    struct walk *walk = &m->passes->walk;
    int top = chunk_of(m)->last ? m->config.num_layers : m->span.end - 1;
    if (layer == top) {
        *walk = (struct walk){.on = true,
                              .chunk = pass->chunk,
                              .activation_set = pass->activation_set,
                              .next = top,
                              .owed = walk->owed};
        m->g_full = true;
        if (pass->weight_set) begin_weight_set(m, weight_set_of(m, pass));
        begin_source_gradients(m);
    }
    if (walk->on && walk->chunk == pass->chunk && walk->activation_set == pass->activation_set &&
        walk->next == layer)
        return true;
    pass_failed(
        m,
        gdn_fail(
            GDN_INTERNAL,
            "a backward pass of layers %d to %d goes on at layer %d, but layer %d of activation set %d comes "
            "next",
            m->span.first, m->span.end - 1, layer, walk->next, walk->activation_set));
    return false;
}

static void finish_walk(struct model *m) {
    m->passes->walk.on = false;
    check_source_gradients(m);
    if (!chunk_of(m)->first) gradient_full(m);
}

static void compute_layer_back(struct model *m, int l) {
    defer_weight_gradients(m, weight_set_of(m, m->pass), l);
    rules_backward(m, l, PLACE_AFTER);
    layer_backward(m, l);
    rules_backward(m, l, PLACE_BEFORE);
}

/* What the layer would have overwritten. */
static void clear_projected_gradients(struct model *m, int l) {
    real *const *gradient = m->pass->projected_gradient;
    for (int e = m->edges.first[l]; gradient && e < m->edges.first[l + 1]; e++)
        if (gradient[e]) m->ops->zero(m->T * projected_width(&m->config, &m->layout), gradient[e]);
}

/* One layer with its exit and the rules that enter it: what they leave at their sources is collected further
 * down. */
static void go_back_layer(struct model *m, int l, struct loss_sums *sums) {
    exit_loss(m, l, sums);
    load_nodes(m, l);
    rules_load(m, l);
    gather_sources(m, l);
    decompress_sources(m, l);
    open_source_gradients(m, l);
    if (drops_layer(m, l))
        clear_projected_gradients(m, l);
    else
        compute_layer_back(m, l);
    collect_source_gradient(m, l - 1);
}

void model_stage_backward(struct model *m, const struct pass *pass, int layer, int end,
                          struct loss_sums *sums) {
    begin_pass(m, pass);
    if (!step_walk(m, layer)) return;
    int bottom = chunk_of(m)->first ? -1 : m->span.first;
    for (int l = layer; l >= end; l--) {
        if (l == m->config.num_layers) {
            load_nodes(m, l);
            head_loss(m, last_output(m), sums);
        } else if (l >= 0) {
            go_back_layer(m, l, sums);
        } else {
            embedding_backward(m);
        }
    }
    m->passes->walk.next = end - 1;
    if (end == bottom) finish_walk(m);
}

static struct pass full_pass(struct model *m, const int32_t *rows, long batch, long length,
                             const struct loss_options *options, bool evaluate) {
    if (m->passes->rows_of_pass) {
        m->ops->device->upload(m->passes->rows_of_pass, rows, (size_t)(batch * (length + 1)) * sizeof *rows);
        rows = m->passes->rows_of_pass;
    }
    return (struct pass){.rows = rows,
                         .batch = batch,
                         .length = length,
                         .options = options,
                         .evaluate = evaluate,
                         .gradient = m->passes->full_g};
}

static struct loss_sums *begin_sums(struct model *m) {
    m->ops->device->clear(m->passes->sums_of_pass, sizeof *m->passes->sums_of_pass);
    return m->passes->sums_of_pass;
}

void model_hold(const struct model *model) {
    const struct state *state = model->state;
    if (state->copy) model->ops->hold(state->weight, model->table->total, state->copy);
}

void model_release(const struct model *model) {
    if (model->state->copy) model->ops->release();
}

long model_measured(const struct model *model, const struct edge_set *active) {
    return edge_set_measured(active, &model->edges);
}

static void take_sums(struct model *m, struct loss_sums *out) {
    *out = (struct loss_sums){0}; /* of a planned model */
    m->ops->device->download(out, m->passes->sums_of_pass, sizeof *out);
}

void model_train(struct model *model, const int32_t *rows, long batch, long length,
                 const struct loss_options *options, struct loss_sums *out) {
    struct pass pass = full_pass(model, rows, batch, length, options, false);
    struct loss_sums *sums = begin_sums(model);
    model_stage_forward(model, &pass, sums);
    model_stage_backward(model, &pass, model->config.num_layers, -1, sums);
    take_sums(model, out);
}

void model_loss(struct model *model, const int32_t *rows, long batch, long length,
                const struct loss_options *options, struct loss_sums *out) {
    struct pass pass = full_pass(model, rows, batch, length, options, true);
    model_stage_forward(model, &pass, begin_sums(model));
    take_sums(model, out);
}
