/* Creates the rules of a model: finds their tensors and lays out their buffers. */
#include "kernels/base/status.h"
#include "model/rules/rules.h"

#include <stdlib.h>
#include <string.h>

static struct rule_layer *layer_of(struct activation_set *set, int r, int l) {
    return set->rule[r] + l;
}

static bool enters_at(const struct model *m, int r, enum rule_place place) {
    return rule_enters_at(m->rules->rule[r].entry.settings, place);
}

static size_t own_bytes(const struct model *m, const struct rule *row) {
    return row->own_bytes + (row->more_bytes ? row->more_bytes(&m->config) : 0);
}

/* The row's own struct of a layer, zeroed. */
static bool create_own(const struct model *m, struct rule_layer *x) {
    x->own = calloc(1, own_bytes(m, x->row));
    return x->own;
}

/* A layer of rule r, without what the row keeps of it. */
static struct rule_layer enter(const struct model *m, int r, int l) {
    const struct rule_entry *entry = &m->rules->rule[r].entry;
    struct rule_layer x = {.row = entry->row, .entry = entry, .number = r, .layer = l};
    for (int e = m->edges.first[l]; e < m->edges.first[l + 1]; e++) {
        if (m->edges.edge[e].rule != r) continue;
        if (!x.n++) x.edge = &m->edges.edge[e];
    }
    x.enters = x.n || rule_enters_alone(entry, l);
    return x;
}

static bool create_rule(struct model *m, int r) {
    struct model_rule *rule = &m->rules->rule[r];
    const struct rule *row = rule->entry.row;
    rule->shared = (struct rule_layer){.row = row, .entry = &rule->entry, .number = r, .layer = -1};
    rule->common = calloc(1, row->common_bytes + 1);
    rule->held = calloc((size_t)m->config.num_layers + 1, sizeof *rule->held);
    bool there = rule->common && rule->held && create_own(m, &rule->shared);
    for (int l = 0; there && l < m->config.num_layers; l++) {
        rule->held[l] = enter(m, r, l);
        there = !rule->held[l].enters || create_own(m, &rule->held[l]);
    }
    return there;
}

bool rules_create(struct model *m) {
    struct rule_entry entry[MAX_RULES];
    struct rules *rules = m->rules;
    rules->count = rules_of(&m->config, entry);
    rules->streams = -1;
    rules->source_gradient = calloc((size_t)m->config.num_layers + 1, sizeof *rules->source_gradient);
    bool there = rules->source_gradient;
    for (int r = 0; r < rules->count; r++) {
        rules->rule[r].entry = entry[r];
        if (!entry[r].row->streams) continue;
        rules->streams = r;
        m->trunk->streams = entry[r].row->streams;
    }
    for (int r = 0; there && r < rules->count; r++) there = create_rule(m, r);
    return there;
}

void rules_free_layers(const struct model *m, struct rule_layer *layers) {
    for (int l = 0; layers && l < m->config.num_layers; l++) {
        free(layers[l].own);
        free(layers[l].decode);
    }
    free(layers);
}

void rules_free(struct model *m) {
    for (int r = 0; r < m->rules->count; r++) {
        struct model_rule *rule = &m->rules->rule[r];
        if (rule->common && rule->entry.row->release) rule->entry.row->release(rule->common);
        free(rule->common);
        free(rule->shared.own);
        rules_free_layers(m, rule->held);
    }
    free(m->rules->source_gradient);
}

bool rules_create_layers(struct model *m, struct span span, struct rule_layer **out) {
    for (int r = 0; r < m->rules->count; r++) {
        out[r] = calloc((size_t)m->config.num_layers + 1, sizeof *out[r]);
        for (int l = span.first; out[r] && l < span.end; l++) {
            out[r][l] = enter(m, r, l);
            if (out[r][l].enters && !create_own(m, &out[r][l])) return false;
        }
        if (!out[r]) return false;
    }
    return true;
}

int rules_prepare(struct model *m) {
    for (int r = 0; r < m->rules->count; r++) {
        struct model_rule *rule = &m->rules->rule[r];
        const struct rule *row = rule->entry.row;
        if (m->documents && row->decode_bytes) /* what it reads of a layer is not the token's own alone */
            return gdn_fail(
                GDN_INPUT,
                "data.documents: mask: the rule between layers %s sees all documents of a sample; join "
                "is expected",
                row->name);
        if (rule->entry.row->prepare) TRY(rule->entry.row->prepare(m, rule));
    }
    return 0;
}

void rules_find(struct model *m, int l) {
    for (int r = 0; r < m->rules->count; r++) {
        const struct rule_layer *x = &m->rules->rule[r].held[l];
        if (x->enters && x->row->find) x->row->find(m, x);
    }
}

bool rules_enter(const struct model *m, int l, enum rule_place place) {
    for (int r = 0; r < m->rules->count; r++)
        if (enters_at(m, r, place) && m->rules->rule[r].held[l].enters) return true;
    return false;
}

bool rules_read_tokens(const struct model *m) {
    for (int r = 0; r < m->rules->count; r++) {
        const struct rule_entry *entry = &m->rules->rule[r].entry;
        if (entry->row->tokens && entry->row->tokens(entry->settings)) return true;
    }
    return false;
}

bool rules_read_rms(const struct model *m) {
    for (int r = 0; r < m->rules->count; r++) {
        const struct rule_entry *entry = &m->rules->rule[r].entry;
        if (entry->row->rms && entry->row->rms(&m->config, entry->settings)) return true;
    }
    return false;
}

void rules_set_policy(struct model *m, int l, int policy) {
    for (int r = 0; r < m->rules->count; r++) m->rules->rule[r].held[l].policy = policy;
}

/* [R, W] of the stream beside a rule: the backward pass reads it. */
static real *lay_out_stream(struct model *m, struct rule_layer *x) {
    long count = m->rows_max * m->stream;
    if (m->training && !m->bf16_stream) return take(&m->saved, count);
    if (m->training) x->kept = arena_take(&m->saved, (size_t)count * sizeof *x->kept);
    return m->rules->rule[x->number].stream;
}

static bool in_stream(const struct model *m, int r) {
    return enters_at(m, r, PLACE_BEFORE) || enters_at(m, r, PLACE_AFTER);
}

/* One stream between two rules of a place, and one beyond the block: before the layer's, behind it. */
static void lay_out_streams(struct model *m, struct activation_set *set, int l) {
    struct layer *layer = &set->layer[l];
    struct rule_layer *behind = NULL;
    layer->x = layer->y = NULL;
    for (int r = 0; r < m->rules->count; r++) {
        struct rule_layer *x = layer_of(set, r, l);
        if (!x->enters || !in_stream(m, r)) continue;
        real *stream = lay_out_stream(m, x);
        if (enters_at(m, r, PLACE_BEFORE)) {
            x->in = layer->x;
            layer->x = x->out = stream;
            continue;
        }
        x->in = stream;
        x->out = NULL;
        if (behind) behind->out = stream;
        if (!behind) layer->y = stream;
        behind = x;
    }
}

void rules_lay_out(struct model *m, struct activation_set *set, int l, long T) {
    for (int r = 0; r < m->rules->count; r++) {
        struct rule_layer *x = layer_of(set, r, l);
        const struct model_rule *rule = &m->rules->rule[r];
        if (!x->enters) continue;
        x->policy = rule->held[l].policy;
        memcpy(x->own, rule->held[l].own, own_bytes(m, x->row));
        x->stored.count = 0;
        m->stored = &x->stored;
        if (x->row->lay_out) x->row->lay_out(m, x, rule->shared.own, T);
        m->stored = NULL;
    }
    lay_out_streams(m, set, l);
}

void rules_share(struct model *m, int l) {
    for (int r = 0; r < m->rules->count; r++) {
        const struct rule_layer *from = &m->rules->rule[r].held[l];
        struct rule_layer *to = &m->rules->rule[r].shared;
        to->policy = (int)largest(to->policy, from->policy);
        if ((from->policy == POLICY_NONE && !m->bf16_activations) || !from->enters) continue;
        to->enters = true;
        to->n = (int)largest(to->n, from->n);
    }
}

void rules_lay_out_shared(struct model *m, long T) {
    for (int r = 0; r < m->rules->count; r++) {
        const struct rule_layer *x = &m->rules->rule[r].shared;
        if (x->enters && x->row->lay_out) x->row->lay_out(m, x, x->own, T);
    }
}

/* The most edges of a rule into one layer of this rank; −1: it enters none. */
static int most(const struct model *m, int r) {
    long n = -1;
    for (int c = 0; c < m->layout.chunks; c++) {
        struct span span = layout_span(&m->layout, c, m->config.num_layers);
        for (int l = span.first; l < span.end; l++)
            if (m->rules->rule[r].held[l].enters) n = largest(n, m->rules->rule[r].held[l].n);
    }
    return (int)n;
}

void rules_lay_out_scratch(struct model *m, long T) {
    bool behind = false;
    for (int r = 0; r < m->rules->count; r++) {
        struct model_rule *rule = &m->rules->rule[r];
        const struct rule *row = rule->entry.row;
        int n = most(m, r);
        if (n < 0) continue;
        if (row->lay_out_scratch) row->lay_out_scratch(m, rule, T, n);
        if ((m->training && !m->bf16_stream) || !in_stream(m, r)) continue;
        if (!m->training && enters_at(m, r, PLACE_AFTER) && !behind)
            rule->stream = m->trunk->t2, behind = true;
        else
            rule->stream = take(&m->scratch, m->rows_max * m->stream);
    }
}
