#include "model/table/flops.h"
#include "model/mixer/mixer.h"
#include "model/params/exits.h"
#include "model/rules/rules.h"

/* Of the products of a layer's mixer that the first rule at their place has in its stead; n: a rule's
 * sources there, 0 where it does not enter. */
static double spared_flops(const struct model_config *m, const struct rule_entry *rule, const int *n,
                           int count) {
    double flops = 0;
    for (enum rule_place place = PLACE_QUERY; place <= PLACE_VALUE; place++) {
        int r = 0;
        while (r < count && !(n[r] && rule_enters_at(rule[r].settings, place))) r++;
        if (r < count && rule_projects(&rule[r], place))
            flops += 2.0 * m->hidden_size * (double)rule_width(m, place);
    }
    return flops;
}

/* Of layer l. */
static double layer_flops(const struct model_config *m, const struct edges *edges,
                          const struct edge_set *active, int l, long length) {
    struct rule_entry rule[MAX_RULES];
    double D = m->hidden_size, F = m->intermediate_size;
    double flops = mixer_of(m, l)->flops(m, length) + 2 * 3 * D * F;
    int n[MAX_RULES] = {0};
    for (int e = edges->first[l]; e < edges->first[l + 1]; e++)
        n[edges->edge[e].rule] += edge_set_has(active, e);
    int count = rules_of(m, rule);
    for (int r = 0; r < count; r++) {
        if (rule_enters_alone(&rule[r], l) && !n[r]) n[r] = 1;
        flops += rule[r].row->flops(m, rule[r].settings, n[r]);
    }
    flops -= spared_flops(m, rule, n, count);
    if (exit_of(m, l) >= 0) flops += exit_share(&m->exit) * model_head_flops(m);
    return flops;
}

void model_layer_flops(const struct model_config *m, const struct edges *edges, const struct edge_set *active,
                       long length, double *out) {
    for (int l = 0; l < m->num_layers; l++) out[l] = layer_flops(m, edges, active, l, length);
}

double model_head_flops(const struct model_config *m) {
    return 2.0 * m->hidden_size * m->vocab_size;
}

double model_flops_per_token(const struct model_config *m, const struct edges *edges,
                             const struct edge_set *active, long length) {
    double forward = model_head_flops(m);
    for (int l = 0; l < m->num_layers; l++) forward += layer_flops(m, edges, active, l, length);
    return 3 * forward; /* the backward pass computes each product twice, once for either factor */
}
