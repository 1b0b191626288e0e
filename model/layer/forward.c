/* The forward pass (model.md, 1) of the embedding and of a layer without its delta connections. Over the
 * tensor axis heads, MLP channels and vocabulary are divided: o_proj and down_proj give this rank's terms of
 * a sum, and so does the embedding, of the tokens that are elsewhere zeros. */
#include "model/base/dropout.h"
#include "model/base/terms.h"
#include "model/layer/stream.h"

void norm_rows(struct model *m, const real *x, struct tensor norm, real *n, real *rstd) {
    m->ops->rms_norm(m->rows, m->config.hidden_size, x, norm.w, m->config.norm_eps, n, rstd);
    stream_written(m, n);
}

void layer_expand(struct model *m, int l) {
    struct layer *layer = &m->layer[l];
    long T = m->T, D = m->config.hidden_size, F = m->trunk->F;
    m->ops->linear(mlp_weight_id(layer, WEIGHT_GATE_UP), 'N', 'T', T, 2 * F, D, 1, stream_all(m, layer->n2),
                   D, layer->gate_up.w, D, 0, layer->gu, 2 * F);
}

/* Residual dropout of what a block adds to the stream, own rows [R, D]. */
static void drop_rows(struct model *m, enum dropout_site site, int l, real *x) {
    const double rate = m->config.dropout.residual;
    const long D = m->config.hidden_size;
    if (!drops(m, rate)) return;
    const struct mask mask = dropout_mask(m, site, l, 0, rate);
    dropout_rows(m, &mask, m->row0, m->rows, D, x, D, x, D);
}

/* What the mixer has computed enters the stream, f [R, D]; and the MLP's norm of what is there then. */
static void add_mixed(struct model *m, int l, const real *x, const real *f) {
    struct layer *layer = &m->layer[l];
    if (m->trunk->streams || m->config.residual == RESIDUAL_BF16) {
        write_block(m, l, BLOCK_MIXER, x, f, layer->a);
        stream_round(m, layer->a);
        begin_block(m, l, BLOCK_MLP, layer->a);
        norm_rows(m, read_block(m, l, BLOCK_MLP, layer->a), layer->norm2, layer->n2, layer->rstd2);
        return;
    }
    m->ops->add_rms_norm(m->rows, m->config.hidden_size, x, f, layer->norm2.w, m->config.norm_eps, layer->a,
                         layer->n2, layer->rstd2);
    stream_written(m, layer->n2);
}

void layer_forward(struct model *m, int l) {
    const struct ops *ops = m->ops;
    struct trunk *t = m->trunk;
    struct layer *layer = &m->layer[l];
    long T = m->T, F = t->F;
    const real *x = layer_input(m, l);
    real *sum = own_rows(m, t->t1), *y = layer->y ? layer->y : node_rows(m, l);
    begin_block(m, l, BLOCK_MIXER, x);
    norm_rows(m, read_block(m, l, BLOCK_MIXER, x), layer->norm1, layer->n1, layer->rstd1);
    mix_forward(m, &layer->mixing, stream_all(m, layer->n1), t->t1);
    block_sum(m, t->t1);
    drop_rows(m, DROP_MIXER, l, sum);
    add_mixed(m, l, x, sum);
    layer_expand(m, l);
    ops->swiglu(T, F, layer->gu, t->h);
    linear_terms(m, &(struct terms){.weight_id = mlp_weight_id(layer, WEIGHT_DOWN),
                                    .transposed = 'T',
                                    .k = F,
                                    .a = t->h,
                                    .lda = F,
                                    .w = layer->down.w,
                                    .ldw = F,
                                    .out = t->t1});
    block_sum(m, t->t1);
    drop_rows(m, DROP_MLP, l, sum);
    write_block(m, l, BLOCK_MLP, layer->a, sum, y);
    stream_round(m, y);
    stream_written(m, y);
    if (layer->policy != POLICY_NONE || layer->stored.count) t->owner = layer;
    store_layer(m, l);
}

void embedding_forward(struct model *m) {
    struct trunk *t = m->trunk;
    long D = m->config.hidden_size;
    real *terms = m->activation_set->x0 && !t->streams ? m->activation_set->x0 : t->t1;
    m->ops->embed(m->T, D, t->input, t->first_token, t->V, t->embed.w, terms);
    block_sum(m, terms);
    begin_streams(m, own_rows(m, terms), node_rows(m, -1));
    stream_round(m, node_rows(m, -1));
}

void layer_pass_by(struct model *m, int l, const real *x) {
    struct layer *layer = &m->layer[l];
    norm_rows(m, x, layer->norm1, layer->n1, layer->rstd1);
    layer->mixing.row->pass_by(m, &layer->mixing, layer->n1);
}
