/* Passes through the rules of a layer. */
#include "model/rules/rules.h"

#include <math.h>

static struct rule_layer *layer_of(const struct model *m, int r, int l) {
    return m->activation_set->rule[r] + l;
}

static bool enters_at(const struct rule_layer *x, enum rule_place place) {
    return x->enters && rule_enters_at(x->entry->settings, place);
}

void rules_begin(struct model *m, struct loss_sums *sums) {
    m->rules->sums = sums;
}

static void watch(struct model *m, const struct rule_layer *x) {
    if (x->row->watch && m->pass->watch && m->pass->watch->layer[x->layer]) x->row->watch(m, x);
}

/* The stream beside a rule that is no node's, own rows. */
static real *beside(const struct rule_layer *x) {
    return rule_enters_at(x->entry->settings, PLACE_BEFORE) ? x->out : x->in;
}

/* Whether it has saved buffers of those that layers use in turn. */
static bool uses_shared(const struct rule_layer *x) {
    return x->policy != POLICY_NONE || x->stored.count > 0;
}

static void store_stream(struct model *m, const struct rule_layer *x) {
    if (x->kept && m->gradients) m->ops->to_bf16(m->rows * m->stream, beside(x), x->kept);
}

void rules_store(struct model *m, int l) {
    for (int r = 0; r < m->rules->count; r++) stored_keep(m, &layer_of(m, r, l)->stored);
}

void rules_load(struct model *m, int l) {
    long count = m->rows * m->stream;
    for (int r = 0; r < m->rules->count; r++) {
        const struct rule_layer *x = layer_of(m, r, l);
        struct model_rule *rule = &m->rules->rule[r];
        stored_bring(m, &x->stored);
        if (x->stored.count && rule->owner != x) rule->owner = NULL;
        if (!x->kept) continue;
        m->ops->from_bf16(1, count, x->kept, beside(x), count);
        stream_written(m, beside(x));
    }
}

static void forward(struct model *m, struct model_rule *rule, const struct rule_layer *x) {
    const real *in = rule_rows(m, x);
    real *out = x->out ? x->out : node_rows(m, x->layer);
    bool active = rule_active(m, x);
    double began = rule_clock(m);
    if (!x->in) stream_written(m, in); /* by another layer, chunk or stage since it was last looked at */
    m->ops->copy(m->rows * m->stream, in, out);
    if (active) x->row->forward(m, x, out, m->rules->sums);
    if (active) stream_round(m, out);
    stream_written(m, out);
    store_stream(m, x);
    if (active && uses_shared(x)) rule->owner = x;
    m->rules->seconds += rule_clock(m) - began;
    if (active) watch(m, x);
}

void rules_forward(struct model *m, int l, enum rule_place place) {
    for (int r = 0; r < m->rules->count; r++) {
        struct rule_layer *x = layer_of(m, r, l);
        if (!enters_at(x, place)) continue;
        x->at = place;
        forward(m, &m->rules->rule[r], x);
    }
}

/* What the layer has not kept, unless what layers share still has it, to the bit of the forward pass. */
static void again(struct model *m, struct model_rule *rule, const struct rule_layer *x) {
    if (x->policy == POLICY_NONE) return;
    if (rule->owner != x && x->row->again) x->row->again(m, x);
    rule->owner = x;
}

/* The backward pass at a rule's last place uses it up. */
static void use_up(struct model_rule *rule, const struct rule_layer *x) {
    bool last = x->at == PLACE_BEFORE || !x->entry->settings->channels;
    if (last && uses_shared(x)) rule->owner = NULL;
}

static void go_back(struct model *m, struct model_rule *rule, const struct rule_layer *x) {
    again(m, rule, x);
    if (x->heads) stored_bring(m, &x->stored); /* a mixer that computes again has the rule do so, too */
    stored_round(m, &x->stored);
    x->row->backward(m, x);
    use_up(rule, x);
}

void rules_backward(struct model *m, int l, enum rule_place place) {
    for (int r = m->rules->count - 1; r >= 0; r--) {
        struct rule_layer *x = layer_of(m, r, l);
        if (!enters_at(x, place) || !rule_active(m, x)) continue;
        gradient_full(m);
        double began = rule_clock(m);
        x->at = place;
        go_back(m, &m->rules->rule[r], x);
        m->rules->seconds += rule_clock(m) - began;
        m->g_full = !m->rows_divided;
    }
}

/* The first rule that is active there; m->rules->count: none. */
static int first_at(const struct model *m, int l, enum rule_place place) {
    int r = 0;
    for (; r < m->rules->count; r++) {
        const struct rule_layer *x = layer_of(m, r, l);
        if (enters_at(x, place) && rule_active(m, x)) break;
    }
    return r;
}

static bool instead(const struct model *m, int l, enum rule_place place) {
    int r = first_at(m, l, place);
    return r < m->rules->count && rule_projects(&m->rules->rule[r].entry, place);
}

/* At queries, keys or values: in the forward pass, or where the mixer computes again. What the first rule has
 * written the others add to. */
static void heads_forward(struct model *m, int l, enum rule_place place, const struct heads *heads) {
    struct heads there = *heads;
    for (int r = first_at(m, l, place); r < m->rules->count; r++) {
        struct rule_layer *x = layer_of(m, r, l);
        if (!enters_at(x, place) || !rule_active(m, x)) continue;
        double began = rule_clock(m);
        x->heads = &there, x->at = place;
        if (x->entry->settings->channels) again(m, &m->rules->rule[r], x);
        x->row->forward(m, x, there.at, m->rules->sums);
        there.empty = false;
        if (uses_shared(x)) m->rules->rule[r].owner = x;
        m->rules->seconds += rule_clock(m) - began;
        if (m->rules->sums) watch(m, x);
        x->heads = NULL;
    }
}

static void heads_backward(struct model *m, int l, enum rule_place place, const struct heads *heads) {
    struct heads there = *heads;
    for (int r = m->rules->count - 1, first = first_at(m, l, place); r >= first; r--) {
        struct rule_layer *x = layer_of(m, r, l);
        if (!enters_at(x, place) || !rule_active(m, x)) continue;
        double began = rule_clock(m);
        there.empty = heads->empty && r == first;
        x->heads = &there, x->at = place;
        go_back(m, &m->rules->rule[r], x);
        x->heads = NULL;
        m->rules->seconds += rule_clock(m) - began;
    }
}

const struct inlet *rules_inlet(const struct model *m, int l) {
    static const struct inlet inlet = {instead, heads_forward, heads_backward};
    bool enter = false;
    for (enum rule_place place = PLACE_QUERY; place <= PLACE_VALUE; place++)
        enter = enter || rules_enter(m, l, place);
    return enter ? &inlet : NULL;
}

void rules_renew(struct model *m, int l) {
    for (int r = 0; r < m->rules->count; r++) {
        const struct rule_layer *x = layer_of(m, r, l);
        if (x->enters && x->row->renew) x->row->renew(m, x);
    }
}

double model_connection_seconds(const struct model *model) {
    return model->ops->device->host ? model->rules->seconds : NAN;
}
