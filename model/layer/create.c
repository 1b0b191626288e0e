/* Finds the tensors of a rank's layers, of embedding and head, and lays out their buffers. */
#include "model/layer/layer.h"
#include "model/params/exits.h"

/* Logits are computed in blocks of rows, of this many elements or, with large vocabularies, rows: more tokens
 * cost no more memory. A product of fewer rows reads the head's matrix, which is larger than any cache, for
 * too little arithmetic (train/benchmark/bf16.md, gpu.md). */
enum { LOGIT_ELEMENTS = 1 << 20, LOGIT_ROWS = 1024 };

int first_weight(const struct model_config *config, int l) {
    return mixer_weights_below(config, l) + l * MLP_WEIGHTS;
}

bool create_layer(struct model *m, int l, struct layer *out) {
    return mixing_create(m, l, first_weight(&m->config, l), &out->mixing);
}

void free_layer(struct layer *layer) {
    mixing_free(&layer->mixing);
}

void copy_layer(struct layer *to, const struct layer *from) {
    struct mixing mixing = to->mixing;
    *to = *from;
    to->mixing = mixing;
    mixing_copy(&to->mixing, &from->mixing);
}

void find_ends(struct model *m) {
    struct trunk *t = m->trunk;
    t->embed = find_tensor(m, "embed_tokens.weight");
    t->norm = find_tensor(m, "norm.weight");
    t->head = m->config.tie_embeddings ? t->embed : find_tensor(m, "lm_head.weight");
}

void find_layer(struct model *m, int l) {
    struct layer *layer = &m->trunk->held[l];
    layer->norm1 = find_tensor(m, "layers.%d.input_layernorm.weight", l);
    layer->mixing.row->find(m, &layer->mixing);
    layer->norm2 = find_tensor(m, "layers.%d.post_attention_layernorm.weight", l);
    layer->gate_up = find_tensor(m, "layers.%d.mlp.gate_proj.weight", l);
    layer->down = find_tensor(m, "layers.%d.mlp.down_proj.weight", l);
    if (exit_of(&m->config, l) >= 0) layer->exit_norm = find_tensor(m, "layers.%d.exit_norm.weight", l);
}

/* Of a layer without its mixer, or what layers share. Rules that enter at the heads compute from n1 again, so
 * in bf16 theirs is not kept (recompute.c). */
static void lay_out_saved(struct model *m, struct layer *layer, long T) {
    struct layer *shared = &m->trunk->shared;
    long D = m->config.hidden_size, rows = m->rows_max;
    if (layer != shared && layer->mixing.inlet && m->bf16_activations)
        layer->n1 = shared->n1;
    else
        SAVE_BF16(m, layer, shared, n1, rows * D, POLICY_SELECTIVE);
    SAVE_AS(m, m->bf16_stream, layer, shared, a, rows * m->stream, POLICY_NO_BACKWARD);
    SAVE_BF16(m, layer, shared, n2, rows * D, POLICY_SELECTIVE);
    SAVE(m, layer, shared, rstd2, rows, POLICY_NO_BACKWARD);
    SAVE_BF16(m, layer, shared, gu, T * 2 * m->trunk->F, POLICY_FULL);
}

void lay_out_layer(struct model *m, struct layer *layer, long T) {
    m->stored = &layer->stored;
    lay_out_saved(m, layer, T);
    lay_out_mixing(m, &layer->mixing, T);
    m->stored = NULL;
}

void share_layer(struct model *m, int l) {
    struct layer *shared = &m->trunk->shared, *layer = &m->trunk->held[l];
    shared->policy = (int)largest(shared->policy, layer->policy);
    mixing_share(m, &layer->mixing);
}

void lay_out_shared_layer(struct model *m, long T) {
    lay_out_saved(m, &m->trunk->shared, T);
    lay_out_shared_mixers(m, T);
}

static void lay_out_head(struct model *m, long T) {
    struct trunk *t = m->trunk;
    long part = (m->config.vocab_size + m->tensor->size - 1) / m->tensor->size; /* alike on all ranks */
    t->logit_rows = largest(LOGIT_ELEMENTS / part, LOGIT_ROWS);
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

void lay_out_layer_scratch(struct model *m, long T, bool head) {
    struct trunk *t = m->trunk;
    struct arena *a = &m->scratch;
    long D = m->config.hidden_size;
    t->input = arena_take(a, (size_t)T * sizeof *t->input);
    t->target = arena_take(a, (size_t)T * sizeof *t->target);
    if (m->documents) t->start = arena_take(a, (size_t)(T * m->context->size) * sizeof *t->start);
    if (m->padding) t->counts = take(a, T);
    t->t1 = take(a, T * D);
    if (m->rows_divided) t->full = take(a, T * D);
    if (t->streams) t->read = take(a, m->rows_max * D);
    if (!m->training) t->t2 = take(a, m->rows_max * m->stream);
    t->h = take(a, T * t->F);
    if (head) lay_out_head(m, T);
    if (!m->training) return;
    t->dgu = take(a, T * 2 * t->F);
    t->dh = take(a, T * t->F);
    if (t->streams || m->config.dropout.residual > 0) t->added = take(a, T * D);
}
