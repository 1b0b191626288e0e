/* The table of rules between layers, and what it says of a configuration. */
#include "kernels/base/append.h"
#include "model/delta/gate.h"
#include "model/mixer/mixer.h"
#include "model/params/stream.h"
#include "model/rules/rules.h"

#include <stdlib.h>

enum { MAX_ROWS = 16 };

static const struct rule *row[MAX_ROWS] = {&rule_delta, &rule_lane,  &rule_mix,
                                           &rule_dense, &rule_value, &rule_depth_attention,
                                           &rule_hyper};
static int rows = 7;

int rule_register(const struct rule *another) {
    if (rows == MAX_ROWS) abort();
    row[rows] = another;
    return rows++;
}

const struct rule *rules_row(int number) {
    return row[number];
}

const char *rules_words(void) {
    static char words[MAX_ROWS * RULE_NAME];
    size_t used = 0;
    for (int i = 1; i < rows; i++)
        used = text_append(words, sizeof words, used, "%s%s", i > 1 ? "|" : "", row[i]->name);
    return words;
}

static void add(const struct rule *rule, const struct rule_config *settings, struct rule_entry *out,
                int *count) {
    int before = 0;
    for (int r = 0; r < *count; r++) before += out[r].row == rule;
    out[(*count)++] = (struct rule_entry){rule, settings, before};
}

/* The delta rule is there where it has connections, and first. */
int rules_of(const struct model_config *config, struct rule_entry *out) {
    static const struct rule_config delta = {.place = PLACE_AFTER};
    int count = 0;
    if (delta_connects(&config->delta)) add(&rule_delta, &delta, out, &count);
    for (int i = 0; i < config->num_rules && count < MAX_RULES; i++)
        add(row[config->rules[i].row], &config->rules[i], out, &count);
    return count;
}

int rules_narrow(const struct rule_entry *rule, int count) {
    for (int r = 0; r < count; r++)
        if (rule[r].row->widths) return r;
    return -1;
}

/* `edge` has room for those of a layer. */
static bool enters(const struct model_config *config, const struct rule_entry *rule, int layer,
                   struct edge *edge) {
    return rule->row->edges(config, rule->settings, layer, edge) > 0 || rule_enters_alone(rule, layer);
}

/* Does it enter queries, keys or values of a layer whose mixer has none? */
static bool enters_nowhere(const struct model_config *config, const struct rule_entry *rule) {
    struct edge edge[config->num_layers + 1];
    bool nowhere = false;
    for (enum rule_place place = PLACE_QUERY; place <= PLACE_VALUE; place++)
        for (int l = 0; rule_enters_at(rule->settings, place) && l < config->num_layers && !nowhere; l++) {
            const struct mixer *mixer = mixer_of(config, l);
            if (mixer->place_width && mixer->place_width(config, place)) continue;
            nowhere = enters(config, rule, l, edge);
        }
    return nowhere;
}

/* Does a rule of model.rules enter no layer? */
static bool is_idle(const struct model_config *config, const struct rule_entry *rule) {
    struct edge edge[config->num_layers + 1];
    int n = rule->row == &rule_delta; /* whose distances may be longer than the model */
    for (int l = 0; !n && l < config->num_layers; l++) n = enters(config, rule, l, edge);
    return !n;
}

/* The highest of the layers, or of the sources, that it names; −1 where there are none. */
static int highest_layer(const struct rule_config *settings) {
    return settings->num_layers ? settings->layers[settings->num_layers - 1] : -1;
}

static int highest_source(const struct rule_config *settings) {
    int highest = -1;
    for (int i = 0; i < settings->num_sources; i++) highest = (int)largest(highest, settings->sources[i]);
    return highest;
}

/* Of one rule. */
static const struct conflict *conflict_of(const struct model_config *config, const struct rule_entry *rule,
                                          int tensor, int sharing) {
    static const char beyond[] = "a rule between layers names a layer that the model does not have",
                      idle[] = "a rule between layers enters no layer, or has no source below those that "
                               "it enters";
    static const struct conflict
        elsewhere = {"a rule between layers does not enter at this place",
                     {"model.rules[].kind", "model.rules[].place"}},
        nowhere = {"a rule between layers enters queries, keys or values of layers whose "
                   "mixer has none",
                   {"model.rules[].kind", "model.rules[].place"}},
        no_layer = {beyond, {"model.rules[].layers", "model.num_layers"}},
        no_source = {beyond, {"model.rules[].sources", "model.num_layers"}},
        idle_of_all = {idle,
                       {"model.rules[].sources", "model.rules[].distances", "model.rules[].dilation",
                        "model.rules[].period", "model.num_layers"}},
        idle_of_listed = {idle,
                          {"model.rules[].sources", "model.rules[].distances", "model.rules[].layers",
                           "model.rules[].period"}};
    const struct conflict *own = NULL;
    if (!(rule->row->places >> rule->settings->place & 1)) return &elsewhere;
    if (highest_layer(rule->settings) >= config->num_layers) return &no_layer;
    if (highest_source(rule->settings) >= config->num_layers) return &no_source;
    if (enters_nowhere(config, rule)) return &nowhere;
    if (rule->row->conflict) own = rule->row->conflict(config, rule->settings, tensor, sharing);
    if (own || !is_idle(config, rule)) return own;
    return rule->settings->num_layers ? &idle_of_listed : &idle_of_all;
}

/* A rule of several streams, number `at` of the list, has them for itself: what others read of them, and add
 * to which, none says. */
static const struct conflict *conflict_of_streams(const struct rule_entry *rule, int count, int *at) {
    static char why[192];
    static const struct conflict beside = {
        why, {"model.rules[].kind", "model.delta.distances", "model.delta.edges"}};
    const struct rule *several = NULL, *other = NULL;
    for (int r = 0; r < count; r++)
        if (rule[r].row->streams) several = rule[r].row, *at = r;
    for (int r = 0; several && r < count; r++)
        if (rule[r].row != several || rule[r].before) other = rule[r].row;
    if (!other) return NULL;
    text_append(why, sizeof why, 0, "%s has several residual streams, and %s %s: it is expected alone, without %s",
                several->name, other->name, other == several ? "once more says how many" : "reads and adds to one",
                other == &rule_delta ? "connections" : "other rules");
    return &beside;
}

const struct conflict *rules_conflict(const struct model_config *config, int tensor, int sharing,
                                      int *entry) {
    struct rule_entry rule[MAX_RULES];
    int count = rules_of(config, rule), at = 0;
    const struct conflict *found = conflict_of_streams(rule, count, &at);
    for (int r = 0; r < count && !found; r++) {
        found = conflict_of(config, &rule[r], tensor, sharing);
        at = r;
    }
    *entry = at - (count - config->num_rules); /* behind the delta rule */
    return found;
}

bool rules_borrow(const struct model_config *config) {
    struct rule_entry rule[MAX_RULES];
    for (int r = 0, count = rules_of(config, rule); r < count; r++)
        if (rule[r].row->borrowed && rule[r].row->borrowed(rule[r].settings)) return true;
    return false;
}

struct route_widths model_route_widths(const struct model_config *config, const struct layout *layout) {
    struct rule_entry rule[MAX_RULES];
    int narrow = rules_narrow(rule, rules_of(config, rule));
    if (narrow < 0) return (struct route_widths){.node = stream_width(config)};
    return rule[narrow].row->widths(config, rule[narrow].settings, layout);
}

long projected_width(const struct model_config *config, const struct layout *layout) {
    return model_route_widths(config, layout).edge;
}

static const struct rule *of_edge(const struct model *m, int edge) {
    return m->rules->rule[m->edges.edge[edge].rule].entry.row;
}

void model_project(struct model *m, int edge, const real *s, long T, real *projected) {
    double began = rule_clock(m);
    of_edge(m, edge)->project(m, edge, s, T, projected);
    m->rules->seconds += rule_clock(m) - began;
}

void model_unproject(struct model *m, int edge, const real *s, long T, const real *projected_gradient,
                     real *source_gradient) {
    double began = rule_clock(m);
    of_edge(m, edge)->unproject(m, edge, s, T, projected_gradient, source_gradient);
    m->rules->seconds += rule_clock(m) - began;
}
