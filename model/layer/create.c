/* Finds the tensors of a rank's layers, of embedding and head, and lays out their buffers. */
#include "model/layer/layer.h"

/* Logits are computed in blocks of rows, about this many elements at a time: a vocabulary never costs T·V. */
enum { LOGIT_ELEMENTS = 1 << 20 };

void find_ends(struct model *m) {
    struct trunk *t = m->trunk;
    t->embed = find_tensor(m, "embed_tokens.weight");
    t->norm = find_tensor(m, "norm.weight");
    t->head = m->config.tie_embeddings ? t->embed : find_tensor(m, "lm_head.weight");
}

void find_layer(struct model *m, int l) {
    struct layer *layer = &m->trunk->held[l];
    layer->norm1 = find_tensor(m, "layers.%d.input_layernorm.weight", l);
    find_attention(m, l, &layer->attention);
    layer->norm2 = find_tensor(m, "layers.%d.post_attention_layernorm.weight", l);
    layer->gate_up = find_tensor(m, "layers.%d.mlp.gate_proj.weight", l);
    layer->down = find_tensor(m, "layers.%d.mlp.down_proj.weight", l);
}

void lay_out_layer(struct model *m, struct layer *layer, long T) {
    struct layer *shared = &m->trunk->shared;
    long D = m->config.hidden_size, rows = m->rows_max;
    SAVE(m, layer, shared, n1, rows * D, POLICY_SELECTIVE);
    lay_out_attention(m, &layer->attention, &shared->attention, T);
    SAVE(m, layer, shared, a, rows * D, POLICY_NO_BACKWARD);
    SAVE(m, layer, shared, n2, rows * D, POLICY_SELECTIVE);
    SAVE(m, layer, shared, rstd2, rows, POLICY_NO_BACKWARD);
    SAVE(m, layer, shared, gu, T * 2 * m->trunk->F, POLICY_FULL);
}

void share_layer(struct model *m, int l) {
    struct layer *shared = &m->trunk->shared;
    shared->policy = (int)largest(shared->policy, m->trunk->held[l].policy);
    shared->attention.policy = shared->policy;
}

void lay_out_shared_layer(struct model *m, long T) {
    lay_out_layer(m, &m->trunk->shared, T);
}

static void lay_out_head(struct model *m, long T) {
    struct trunk *t = m->trunk;
    long part = (m->config.vocab_size + m->tensor->size - 1) / m->tensor->size; /* alike on all ranks */
    t->logit_rows = LOGIT_ELEMENTS / part;
    if (t->logit_rows < 1) t->logit_rows = 1;
    if (t->logit_rows > T) t->logit_rows = T;
    t->nf = m->rows_divided ? t->full : take(&m->scratch, T * m->config.hidden_size);
    t->rstdf = take(&m->scratch, m->rows_max);
    t->losses = take(&m->scratch, T);
    t->logits = take(&m->scratch, t->logit_rows * t->V);
    if (m->tensor->size == 1) return;
    t->largest = take(&m->scratch, t->logit_rows);
    t->exp_sums = take(&m->scratch, 2 * t->logit_rows);
    m->sums = largest(m->sums, 2 * t->logit_rows);
}

void lay_out_layer_scratch(struct model *m, long T, bool last) {
    struct trunk *t = m->trunk;
    struct arena *a = &m->scratch;
    long D = m->config.hidden_size;
    t->input = arena_take(a, (size_t)T * sizeof *t->input);
    t->target = arena_take(a, (size_t)T * sizeof *t->target);
    t->t1 = take(a, T * D);
    if (m->rows_divided) t->full = take(a, T * D);
    if (!m->training) t->t2 = take(a, m->rows_max * D);
    t->h = take(a, T * t->F);
    if (last) lay_out_head(m, T);
    if (!m->training) return;
    t->dgu = take(a, T * 2 * t->F);
    t->dh = take(a, T * t->F);
}
