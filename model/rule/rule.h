/* Private to model/: rules between layers, what enters a layer of the outputs of nodes below it. A rule is a
 * row of a table (model/rules/): which sources it reads, where it enters, its tensors and passes. Passes,
 * parameter table, counts and checks walk the rules of a model, each of which adds to the stream, or to a
 * layer's queries, keys or values, where it enters: out = in + what it makes of its sources and of `in`.
 * Rules that enter at one place do so in the order of the model's list, each reading what those before it
 * have left. All start as no change. */
#ifndef GDN_RULE_H
#define GDN_RULE_H

#include <stddef.h>

#include "model/base/base.h"
#include "model/layer/stream.h"
#include "model/mixer/mixer.h"
#include "model/params/leaf.h"

enum { RULE_LEAVES = 16 }; /* of a connection, or of a layer, at most */

struct rule;

/* A rule of a configuration: its row, and what its entry in the model's list says. */
struct rule_entry {
    const struct rule *row;
    const struct rule_config *settings; /* the configuration's */
    int before;                         /* entries of the same row before it */
};

/* A rule in a layer, of one activation set, or where tensors are held. */
struct rule_layer {
    const struct rule *row;
    const struct rule_entry *entry; /* the model's */
    int number;                     /* of the rule in the model's list: edge.rule */
    int layer;
    int policy;              /* enum recompute_policy, or POLICY_NO_BACKWARD */
    bool enters;             /* the layer: by edges, with the tokens, or around its blocks */
    int n;                   /* edges that lead into the layer */
    const struct edge *edge; /* [n] */
    enum rule_place at;      /* where: during calls of the row's passes */
    void *own;               /* the row's: tensors, saved buffers; NULL where it does not enter */
    struct stored_list stored; /* of these what is kept in bf16; else empty */
    real *in, *out; /* [R, W] the stream before and behind it; NULL: the output of node l − 1, of node l */
    uint16_t *kept; /* [R, W] of the one that is no node's, where it is kept in bf16; else NULL */
    const struct heads *heads; /* at queries, keys and values: during calls of the row's passes */
    void *decode;              /* the row's: what it keeps of the tokens so far, in generation; else NULL */
};

/* A rule of a model. */
struct model_rule {
    struct rule_entry entry;
    struct rule_layer *held;        /* [num_layers] tensors; activation sets have copies */
    struct rule_layer shared;       /* the saved buffers that layers do not have of their own */
    const struct rule_layer *owner; /* for whose backward pass these hold what its forward pass wrote */
    void *common;                   /* the row's: what all layers share, scratch */
    real *stream; /* scratch: [R, W] `in` or `out` of all layers where nothing is saved, or it is in bf16 */
};

struct rules {
    int count;
    int streams; /* the rule that has several streams; −1: none has */
    struct model_rule rule[MAX_RULES];
    real **source_gradient; /* [num_layers + 1], entry 1 + node: [T, W] gradients left at a node by layers of
                               the chunk above it; NULL where no edge of that chunk starts. Nodes have one in
                               turn */
    struct loss_sums *sums; /* of the forward pass in progress; NULL: none is */
    double seconds;         /* model_connection_seconds */
};

/* A form of a rule: the word for it in an entry of model.rules, NULL where the rule has one alone, and what
 * such an entry may say. */
struct rule_form {
    const char *word;
    unsigned settings; /* bit set of enum rule_setting */
};

struct rule {
    const char *name;              /* tensors of a connection are "layers.L.NAME.DISTANCE.LEAF", of a layer
                                      "layers.L.NAME.LEAF"; of the model's second entry of the row NAME_2, and so on */
    unsigned places;               /* bit sets of enum rule_place: where an entry may have it enter */
    const struct rule_form *forms; /* [num_forms]; the first is an entry's that says none */
    int num_forms;                 /* 0: none stands in model.rules */
    struct rule_config defaults;   /* of what an entry leaves out */
    bool measured;                 /* its edges are those of loss_sums.connections and connection_sums */
    bool by_connection;            /* tensor ranks may hold whole connections (layout_by_connection) */
    bool projects; /* queries, keys or values that it enters have an input of its own, by the layer's map
                      (rules/own_input.h): where it is the first there, the layer's own product is left out */

    /* Of a configuration and the rule's entry in it. The edges into a layer, into `edge`, which has room for
     * one from every node below: source, scale, `introduced` and `without`, by falling source; returns how
     * many. Tensors of a connection, and those that a layer's connections share, into leaf [RULE_LEAVES];
     * NULL: none. Arithmetic per token of the forward pass for a layer with n active edges. What does not go
     * together on so many tensor ranks, where `sharing` of them share each connection's channels; NULL where
     * all does. */
    int (*edges)(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge);
    int (*connection_leaves)(const struct model_config *config, const struct rule_config *settings,
                             struct leaf *leaf);
    int (*layer_leaves)(const struct model_config *config, const struct rule_config *settings,
                        struct leaf *leaf);
    double (*flops)(const struct model_config *config, const struct rule_config *settings, int n);
    const struct conflict *(*conflict)(const struct model_config *config, const struct rule_config *settings,
                                       int tensor, int sharing);

    /* Names of leaves of the first layer that the layers it enters read too, which stages of those then hold
     * as well; a list that NULL ends. NULL: none. */
    const char *const *(*borrowed)(const struct rule_config *settings);
    /* Does it read the tokens of a pass (trunk->input)? Then it enters the layers that rule_enters says,
     * edges or not; as connections of which `flops` counts 1. NULL: it does not. */
    bool (*tokens)(const struct rule_config *settings);
    /* Does it read the inverse rms of its sources (activation_set.rstd)? NULL: it does not. */
    bool (*rms)(const struct model_config *config, const struct rule_config *settings);

    /* What crosses stages for its edges in place of sources where that is narrower (dist/layout/route.h), of
     * the first such rule of a model alone; NULL: sources alone. `widths` says how wide, `project` and
     * `unproject` are model_project and model_unproject. */
    struct route_widths (*widths)(const struct model_config *config, const struct rule_config *settings,
                                  const struct layout *layout);
    void (*project)(struct model *m, int edge, const real *s, long T, real *projected);
    void (*unproject)(struct model *m, int edge, const real *s, long T, const real *projected_gradient,
                      real *source_gradient);

    /* Creation. Bytes of the row's own structs, zeroed at creation: of a layer, and how many more follow the
     * struct in a configuration (NULL: none); of all layers. `prepare`
     * comes once, before layers; `release` frees what it has allocated. The tensors of a layer; its saved
     * buffers (SAVE), or where x->own is `shared` those that layers do not keep; scratch for layers of up to
     * n edges. NULL where there is nothing to do. */
    size_t own_bytes;
    size_t (*more_bytes)(const struct model_config *config);
    size_t common_bytes;
    int (*prepare)(struct model *m, struct model_rule *rule);
    void (*release)(void *common);
    void (*find)(struct model *m, const struct rule_layer *x);
    void (*lay_out)(struct model *m, const struct rule_layer *x, void *shared, long T);
    void (*lay_out_scratch)(struct model *m, const struct model_rule *rule, long T, int n);

    /* Passes of a layer with active edges, of own rows. Forward: adds to out [R, W], which begins as a copy
     * of `in`; sums are NULL where the layer is computed again. Backward: m->g, whole, is the gradient of
     * `out`; adds to its own rows what comes by way of `in`, to the gradients of weights, and to the sources'
     * (source_gradient_of) this rank's terms. Again, where the policy is not POLICY_NONE: what the backward
     * pass reads and is not kept. `renew`: sources have come back from low-rank factors. `watch` shows what
     * the forward pass did to m->pass->watch. NULL for the last three: nothing to do.
     * At queries, keys and values x->heads is what forward adds to, or writes (heads.empty), of all rows and
     * own heads, and `out` its start; in the backward pass it is the gradient of what forward has left, not
     * m->g, and what comes by way of n is added to its dn, by way of what the layer reads to own rows of
     * m->g. There n may lie where stream_all puts rows: ask it for no others. An entry with channels enters
     * there and at its place: what the first of its passes has computed is there until the last, also of the
     * backward pass. In generation the forward pass is that of one token, with x->decode. */
    void (*forward)(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums);
    void (*backward)(struct model *m, const struct rule_layer *x);
    void (*again)(struct model *m, const struct rule_layer *x);
    void (*renew)(struct model *m, const struct rule_layer *x);
    void (*watch)(struct model *m, const struct rule_layer *x);

    /* At PLACE_AROUND, of all layers and without edges: what their blocks call in place of passes
     * (model/layer/layer.h). */
    const struct streams *streams;

    /* Generation of one sequence, by a rank that has all of the model, where a row keeps something of the
     * tokens so far: bytes of its struct for a layer, zeroed; takes what that needs for `capacity` tokens
     * from the arena, NULL: nothing; forgets all tokens. */
    size_t decode_bytes;
    void (*lay_out_decode)(struct model *m, const struct rule_layer *x, struct arena *arena, long capacity);
    void (*reset)(struct model *m, const struct rule_layer *x);
};

/* Does an entry have it enter the layer, as far as settings `layers` and `period` say? */
bool rule_enters(const struct rule_config *settings, int layer);
/* Does an entry enter layers at a place? Place `head` is that behind the last. */
bool rule_enters_at(const struct rule_config *settings, enum rule_place place);
/* Does an entry project a place of queries, keys or values from an input of its own (rule.projects)? */
bool rule_projects(const struct rule_entry *entry, enum rule_place place);
/* Does it enter the layer without edges, where it has none there? */
bool rule_enters_alone(const struct rule_entry *entry, int layer);
/* A row's `edges`: into such a layer from the sources that an entry lists, by `distances` and by `sources`,
 * each node once. */
int rule_edges(const struct model_config *config, const struct rule_config *settings, int layer,
               struct edge *edge);
/* Adds an edge to n others by falling source, if none is from that one; returns how many there are then. */
int rule_add_edge(struct edge another, struct edge *edge, int n);

/* Columns of the stream, or of queries, keys or values, at a place on all tensor ranks; 0: no layer has it.
 */
long rule_width(const struct model_config *config, enum rule_place place);

/* What tensors' names say of a rule: its row's name or NAME_2. */
enum { RULE_NAME = 48 };
void rule_name(const struct rule_entry *entry, char out[RULE_NAME]);
/* A leaf of a rule in a layer: of the first of its connections that has it, with which the others' are
 * neighbours in memory; of the layer. */
struct tensor rule_find_connections(const struct model *m, const struct rule_layer *x, const char *leaf);
struct tensor rule_find_shared(const struct model *m, const struct rule_layer *x, const char *leaf);
/* A leaf of a layer without its rules: of the one that it enters, or of the first, borrowed. */
struct tensor rule_find_trunk(const struct model *m, int layer, const char *leaf);

/* What a layer's backward pass leaves at a node, in a backward pass: the pass's own buffer, or scratch; [T,
 * W]. NULL where the pass brings only a projected source. */
real *source_gradient_of(const struct model *m, int node);

/* The stream before a rule, at queries, keys and values what the layer reads: own rows [R, W]; all of them [T,
 * W], until another block is asked for. */
static inline const real *rule_rows(const struct model *m, const struct rule_layer *x) {
    if (x->entry->settings->place >= PLACE_QUERY) return layer_input(m, x->layer);
    return x->in ? x->in : node_rows(m, x->layer - 1);
}
static inline const real *rule_input(struct model *m, const struct rule_layer *x) {
    return stream_all(m, rule_rows(m, x));
}

/* What all layers of its rule share. */
static inline void *rule_common(const struct model *m, const struct rule_layer *x) {
    return m->rules->rule[x->number].common;
}

/* The rows of [T, W] whose terms in the gradients of weights and sources are this rank's: own ones, or of
 * rows that all tensor ranks have its part. */
struct row_range {
    long first, count;
};
struct row_range rule_terms(const struct model *m);

/* Is the i-th of its edges active in the pass? */
static inline bool rule_edge_active(const struct model *m, const struct rule_layer *x, int i) {
    return edge_set_has(m->pass->options->active, (int)(x->edge - m->edges.edge) + i);
}
/* How many of them are; 1 of a rule that enters without any. */
int rule_active(const struct model *m, const struct rule_layer *x);

/* Seconds of a clock, for model_connection_seconds; 0 on a device that runs by itself. */
double rule_clock(const struct model *m);

#endif
