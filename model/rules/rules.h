/* Private to model/: the table of rules between layers (model/rule/rule.h), and the walks over the rules that
 * a configuration or a model has. */
#ifndef GDN_RULES_H
#define GDN_RULES_H

#include "model/rule/rule.h"

/* The rows of gdn beside the delta rule, in files of their own. */
extern const struct rule rule_lane;
extern const struct rule rule_mix;
extern const struct rule rule_dense;
extern const struct rule rule_value;
extern const struct rule rule_depth_attention;
extern const struct rule rule_hyper;

/* table.c. Adds a row, for programs beside gdn: before anything else of the program. Returns its number
 * (model_config.rules). */
int rule_register(const struct rule *row);
/* The row of a number, of which 0 is the delta rule's; the names of those that may stand in model.rules,
 * "lane|mix", of which the first has number 1. */
const struct rule *rules_row(int number);
const char *rules_words(void);
/* The rules of a configuration, which outlives them, in order, into out [MAX_RULES]; returns how many. */
int rules_of(const struct model_config *config, struct rule_entry *out);
/* Which of these rules may have its sources travel as projections; −1: none. */
int rules_narrow(const struct rule_entry *rule, int count);
/* What their rows say of values that do not go together on so many tensor ranks, of which `sharing` share
 * each connection's channels; NULL where all do. entry: of model.rules, where it is of one. */
const struct conflict *rules_conflict(const struct model_config *config, int tensor, int sharing, int *entry);

/* Do stages of later layers hold tensors of the first for one of its rules (rule.borrowed)? */
bool rules_borrow(const struct model_config *config);

/* edges.c. The table of the edges of all rules, those of a layer in the rules' order. Not collective. Fails
 * only without memory. Free with edges_free. */
int edges_create(const struct model_config *config, struct edges *out);
/* For programs beside gdn: every table is made of what `change` leaves of its list of `count` edges, which it
 * may introduce otherwise; returns how many. NULL: none. Before anything else of the program. */
typedef int edges_change(const struct model_config *config, struct edge *list, int count);
void edges_register(edges_change *change);

/* create.c: the rules of m->config, after m->edges: false without memory; a layer of an activation set, false
 * likewise; both freed in any case. */
bool rules_create(struct model *m);
void rules_free(struct model *m);
bool rules_create_layers(struct model *m, struct span span, struct rule_layer **out);
void rules_free_layers(const struct model *m, struct rule_layer *layers);
/* Before any call below (GDN_INTERNAL without memory); the tensors of layer l; the recompute policy of its
 * rules. */
int rules_prepare(struct model *m);
void rules_find(struct model *m, int l);
void rules_set_policy(struct model *m, int l, int policy);
/* Does a rule enter the layer there? */
bool rules_enter(const struct model *m, int l, enum rule_place place);
/* Does one read the tokens of a pass? */
bool rules_read_tokens(const struct model *m);
/* Does one read the inverse rms of its sources? */
bool rules_read_rms(const struct model *m);
/* Generation (decode.c): what rows keep of the tokens so far, in the layers of the decoder's only set: false
 * without memory (freed with the layers); its room; forgets all tokens. */
bool rules_create_decode(struct model *m, const struct activation_set *set);
void rules_lay_out_decode(struct model *m, const struct activation_set *set, struct arena *arena,
                          long capacity);
void rules_reset(struct model *m, const struct activation_set *set);
/* What the rules of layer l save in an activation set, with the streams before and behind them; what those of
 * this rank do not keep: rules_share first for each of its layers; scratch. */
void rules_lay_out(struct model *m, struct activation_set *set, int l, long T);
void rules_share(struct model *m, int l);
void rules_lay_out_shared(struct model *m, long T);
void rules_lay_out_scratch(struct model *m, long T);

/* pass.c: where a forward pass adds its sums to, NULL when it is done. A place of a layer in the stream
 * forward, from the stream that is there; backward, from the gradient of what is behind it to that of what is
 * before, m->g; after sources of a layer have come back from factors. */
void rules_begin(struct model *m, struct loss_sums *sums);
void rules_forward(struct model *m, int l, enum rule_place place);
void rules_backward(struct model *m, int l, enum rule_place place);
/* What enters a layer's queries, keys and values, in those passes of its mixer; NULL where no rule does. */
const struct inlet *rules_inlet(const struct model *m, int l);
/* Behind a layer's forward pass: keeps in bf16 what its rules save so. Before its backward pass: brings that
 * back, with the stream beside its rules; and what follows from sources that have come back from low-rank
 * factors. */
void rules_store(struct model *m, int l);
void rules_load(struct model *m, int l);
void rules_renew(struct model *m, int l);

#endif
