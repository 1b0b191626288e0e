/* The model's configuration: names and defaults of model.md, which the YAML sections `model` and
 * `model.delta` map onto one to one. */
#ifndef GDN_MODEL_CONFIG_H
#define GDN_MODEL_CONFIG_H

#include <stdbool.h>

enum { MAX_DISTANCES = 64, MAX_EDGES = 2048, MAX_MIXERS = 64, MAX_RULES = 8, MAX_EXITS = 16 };

enum attention_bias { BIAS_NONE, BIAS_QKV, BIAS_ALL };
enum qk_norm { QK_NORM_NONE, QK_NORM_HEAD };

enum delta_kind { KIND_BOTTLENECK, KIND_FULL, KIND_ADAPTIVE };
enum delta_scale { SCALE_RECIPROCAL, SCALE_EXPONENTIAL, SCALE_NONE };
enum delta_aggregate { AGGREGATE_LEARNED, AGGREGATE_MEAN, AGGREGATE_ATTENTION, AGGREGATE_MULTIHEAD };
enum delta_regularizer { REGULARIZER_NONE, REGULARIZER_FIXED, REGULARIZER_ADAPTIVE };

/* A connection that is listed: into layer `target` from node `source` below it; −1: the embedding. */
struct delta_edge {
    int target, source;
};

struct delta_config {
    int distances[MAX_DISTANCES]; /* increasing, ≥ 1 */
    int num_distances;            /* 0: connections are those listed in `edges`; a plain transformer without */
    bool embedding_source;        /* the embedding output counts as layer −1 */
    struct delta_edge edges[MAX_EDGES]; /* in place of distances: each once, by target, then by distance */
    int num_edges;
    int kind;                     /* enum delta_kind */
    int hidden;                   /* Hd: bottleneck width */
    int gate_hidden;              /* G: gate width (bottleneck), channel groups (adaptive) */
    int distance_scale;           /* enum delta_scale */
    double decay;
    bool normalize;
    double epsilon;     /* least norm that `normalize` divides by */
    double temperature; /* of the adaptive gate's softmax */
    int aggregate;      /* enum delta_aggregate */
    int attention_dim;  /* a */
    int attention_heads;
    int stage_steps; /* 0: all distances from the first step */
    int regularizer; /* enum delta_regularizer */
    double sparsity_weight, entropy_weight;
    double l1_weight; /* of the connections' absolute weights; whatever the regularizer */
};

/* Where a rule between layers enters a layer l. */
enum rule_place {
    PLACE_BEFORE, /* what the layer reads in place of the output of node l − 1, which itself stays as it is */
    PLACE_AFTER, /* what its MLP has left in the stream: the sum with the rule is the output of node l */
    PLACE_AROUND, /* each of its blocks: what they read of the stream, and how what they add enters it */
    PLACE_HEAD,   /* behind the last layer, where PLACE_AFTER is */
    PLACE_QUERY, /* its queries, keys, values as the mixer has projected them, before their norms and positions */
    PLACE_KEY,
    PLACE_VALUE,
};

/* What an entry of model.rules may say of its rule; a row of the table of rules has some of them. */
enum rule_setting {
    SETTING_PLACE,
    SETTING_CHANNELS,
    SETTING_SOURCES,
    SETTING_DISTANCES,
    SETTING_FROM,
    SETTING_LAYERS,
    SETTING_DILATION,
    SETTING_PERIOD,
    SETTING_BLOCK,
    SETTING_GROUPS,
    SETTING_HIDDEN,
    SETTING_STREAMS,
    SETTING_MIXING,
    SETTING_LR_SCALE,
    RULE_SETTINGS
};

/* How a rule of several streams may mix them. */
enum rule_mixing { MIXING_FREE, MIXING_DOUBLY_STOCHASTIC };

/* An entry of a model's list of rules between layers: a row, which may stand there more than once, and what
 * is said of it, as far as the row leaves it open. */
struct rule_config {
    int row;                                     /* its number (model/rules/rules.h) */
    int form;                                    /* of the row's */
    int place;                                   /* enum rule_place */
    unsigned channels;                           /* bit set of enum rule_place: queries, keys, values, where it
                                                    enters too */
    int sources[MAX_DISTANCES], num_sources;     /* nodes that it reads, where those are below the layer;
                                                    −1: the embedding */
    int distances[MAX_DISTANCES], num_distances; /* and those so many below it; increasing */
    int from;                                    /* what of a source it reads: its output, what its layer
                                                    has added, both */
    int layers[MAX_DISTANCES], num_layers;       /* that it enters, increasing; 0: all */
    int dilation;                                /* of the layers below it reads every so-many-th */
    int period;                                  /* it enters every so-many-th layer */
    int block;                                   /* it reads the last of every so many layers */
    int groups;                                  /* of columns, each with a weight of its own */
    int hidden;                                  /* width of its MLP */
    int streams;                                 /* of the residual stream; 0: the rule changes none of it */
    int mixing;                                  /* enum rule_mixing of these */
    double lr_scale;                             /* of what it learns: times the learning rate */
};

/* Frequencies of rotary positions (model/mixer/rotary.h); a kind reads some of these. */
struct rope_scaling {
    int kind; /* of the table in rotary.c; 0: none */
    double factor, low_freq_factor, high_freq_factor;
    int original_max_position_embeddings;
};

/* What training sets to zero, as parts in [0, 1) (train.dropout); 0: nothing. */
struct dropout_config {
    double residual;  /* of what mixer and MLP add to the stream */
    double attention; /* of attention's probabilities */
    double gate;      /* of the gates of delta connections */
    double layer;     /* of steps, the last layer as a whole; others less often (model.md, 11) */
};

/* Which exits a training step has (model/params/exits.h). */
enum exit_curriculum { CURRICULUM_NONE, CURRICULUM_ROTATE, CURRICULUM_GRADUAL };

/* Layers whose outputs the head reads too, by a norm of their own. */
struct exit_config {
    int layers[MAX_DISTANCES], num_layers; /* increasing; at most MAX_EXITS */
    double weights[MAX_EXITS];             /* of their losses, one each */
    int num_weights;
    int curriculum; /* enum exit_curriculum */
};

/* How outputs of nodes, and what else a layer has of the residual stream, are stored (train.residual). */
enum residual_type { RESIDUAL_FP32, RESIDUAL_BF16 };

struct model_config {
    int vocab_size, hidden_size, num_layers, num_heads;
    int num_kv_heads; /* 0 in a file means num_heads; resolved before use */
    int head_dim;     /* 0: hidden_size / num_heads (head_width) */
    int intermediate_size;
    int attention_bias; /* enum attention_bias: of the projections of queries, keys and values; and of the output's */
    int qk_norm; /* enum qk_norm: of queries and keys, before rotation: each head */
    double rope_theta, norm_eps;
    struct rope_scaling rope_scaling;
    bool tie_embeddings;
    double logit_softcap; /* c of c·tanh(logits/c); 0: none */
    /* Token mixers of layers 0, 1, …, and again from the first: numbers of rows (model/mixer/mixer.h). None:
     * softmax attention in all. No key chooses yet. */
    int mixers[MAX_MIXERS], num_mixers;
    /* Rules between layers that follow the delta rule. */
    struct rule_config rules[MAX_RULES];
    int num_rules;
    struct delta_config delta;
    struct exit_config exit;
    struct dropout_config dropout;
    int residual; /* enum residual_type */
};

/* Channels of a head. */
static inline int head_width(const struct model_config *config) {
    return config->head_dim ? config->head_dim : config->hidden_size / config->num_heads;
}

/* Has a model delta connections, as far as its configuration tells? */
static inline bool delta_connects(const struct delta_config *delta) {
    return delta->num_distances || delta->num_edges;
}

/* Values that do not go together: why, and their keys, of which model.rules[].SETTING is one of a rule's
 * entry. */
struct conflict {
    const char *why, *key[6]; /* at most five, then NULL */
};

#endif
