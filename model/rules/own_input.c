/* Queries, keys or values of an input of their own. */
#include "model/rules/own_input.h"

#include <string.h>

/* The map of a place's, and its bias. */
static const char *const map_name[][2] = {
    [PLACE_QUERY] = {"self_attn.q_proj.weight", "self_attn.q_proj.bias"},
    [PLACE_KEY] = {"self_attn.k_proj.weight", "self_attn.k_proj.bias"},
    [PLACE_VALUE] = {"self_attn.v_proj.weight", "self_attn.v_proj.bias"}};

const struct conflict *own_input_conflict(const struct model_config *config) {
    static const struct conflict other = {
        "a rule between layers uses the layers' own maps to queries, keys or values, which are those of "
        "attention, and a layer has another mixer",
        {"model.rules[].kind"}};
    for (int l = 0; l < config->num_layers; l++)
        if (strcmp(mixer_of(config, l)->name, "attention") != 0) return &other;
    return NULL;
}

double own_input_flops(const struct model_config *config, enum rule_place place) {
    return 2.0 * config->hidden_size * (double)rule_width(config, place);
}

void own_input_find(const struct model *m, int layer, enum rule_place place, struct own_input *input) {
    input->norm = rule_find_trunk(m, layer, "input_layernorm.weight");
    input->map = rule_find_trunk(m, layer, map_name[place][0]);
    if (m->config.attention_bias != BIAS_NONE) input->bias = rule_find_trunk(m, layer, map_name[place][1]);
}

void own_input_lay_out_stream(struct model *m, struct own_stream *stream) {
    long count = m->rows_max * m->config.hidden_size;
    stream->own = take(&m->scratch, count);
    if (m->training) stream->down = take(&m->scratch, count);
}

void own_input_lay_out_scratch(struct model *m, struct own_input_scratch *s, long T) {
    long D = m->config.hidden_size;
    s->rstd = take(&m->scratch, m->rows_max);
    s->n = take(&m->scratch, T * D);
    if (m->training) s->dn = take(&m->scratch, T * D);
}

/* All rows of s->n. */
static void norm(struct model *m, const struct rule_layer *x, const struct own_input *input,
                 const struct own_input_scratch *s, const real *own) {
    long D = m->config.hidden_size;
    m->ops->rms_norm(m->rows, D, own, input->norm.w, m->config.norm_eps, own_rows(m, s->n), s->rstd);
    block_full(m, s->n);
    if (!x->heads->empty) m->ops->add_columns(m->T, D, -1, x->heads->n, D, s->n, D);
}

/* What the layer would have computed without the rule is not the rule's time. */
static void layers_own(struct model *m, double began) {
    m->rules->seconds -= rule_clock(m) - began;
}

void own_input_forward(struct model *m, const struct rule_layer *x, const struct own_input *input,
                       const struct own_input_scratch *s, const real *own) {
    const struct heads *heads = x->heads;
    long D = m->config.hidden_size, H = heads->count * heads->width;
    norm(m, x, input, s, own);
    double began = rule_clock(m);
    m->ops->gemm('N', 'T', m->T, H, D, 1, s->n, D, input->map.w, D, heads->empty ? 0 : 1, heads->at,
                 heads->ld);
    if (!heads->empty) return;
    if (input->bias.w) m->ops->add_columns(m->T, H, 1, input->bias.w, 0, heads->at, heads->ld);
    layers_own(m, began);
}

/* What comes by way of the norm is summed over tensor ranks, each of which has its heads' part; then each has
 * all own rows for the norm's weights, as the layer has. */
void own_input_backward(struct model *m, const struct rule_layer *x, const struct own_input *input,
                        const struct own_input_scratch *s, const struct own_stream *stream) {
    const struct ops *ops = m->ops;
    const struct heads *heads = x->heads;
    long T = m->T, D = m->config.hidden_size, H = heads->count * heads->width;
    norm(m, x, input, s, stream->own);
    double began = rule_clock(m);
    weight_gradient(m, NO_WEIGHT_ID, H, D, T, 1, heads->at, heads->ld, s->n, D, input->map.g, D);
    ops->gemm('N', 'N', T, D, H, 1, heads->at, heads->ld, input->map.w, D, 0, s->dn, D);
    if (heads->empty)
        layers_own(m, began);
    else
        ops->add_columns(T, D, -1, s->dn, D, heads->dn, D);
    block_sum(m, s->dn);
    ops->zero(m->rows * D, stream->down);
    ops->rms_norm_back(m->rows, D, stream->own, input->norm.w, s->rstd, own_rows(m, s->dn), stream->down,
                       input->norm.g);
}
