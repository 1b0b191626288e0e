/* Private to model/pass/: a rank's chunks of layers, and what its passes keep account of. */
#ifndef GDN_PASS_PRIVATE_H
#define GDN_PASS_PRIVATE_H

#include "dist/comm/axis_host.h"
#include "kernels/lowrank/lowrank.h"
#include "model/rules/rules.h"

/* A node's output that is kept as own rows or in bf16 (nodes.c), or as low-rank factors (compress.c). */
struct kept_output {
    int top; /* the highest layer of the chunk that reads the node; num_layers: the head */
    uint16_t *bf16; /* [R, W] own rows of it; NULL: it is not kept so */
    real *q, *b;    /* [T, k], [k, W] the factors; NULL where there are none */
};

struct chunk {
    struct span span;
    bool first, last; /* of all stages: with the embedding, with final norm and head */
    bool exits;       /* some of its layers have one */
    int activation_sets;
    struct activation_set *activation_set;
};

/* Where a backward pass that may come in several calls has got to. */
struct walk {
    bool on;
    int chunk, activation_set, next; /* the layer that comes next */
    bool *owed; /* [num_layers + 1], entry 1 + node: gradients left there are yet to be collected */
};

struct pass_state {
    int chunks;
    struct chunk *chunk; /* [chunks] */
    struct walk walk;
    struct arena weights; /* of a planned model: `planned_state` */
    struct state planned_state;
    struct arena tokens; /* of rows_of_pass alone, which plans leave out */
    int32_t
        *rows_of_pass; /* [batch, length + 1] model_train's and model_loss's, where they are not the host's */
    struct loss_sums *sums_of_pass; /* of model_train and model_loss */
    real *full_g;                   /* [T, W] the gradient where one chunk is the whole model */
    real **restored; /* [num_layers + 1], entry 1 + node: whole outputs of nodes that have a buffer in turn */
    bool turns;             /* where rows are divided: sources have */
    bool narrow;            /* where the stream is stored in bf16: outputs that no other chunk reads have, and
                               are kept so */
    struct lowrank lowrank; /* where sources are compressed */
    struct axis_host host_sums;        /* of context ranks then, whose tokens are factorised together */
    struct lowrank_peers peers;        /* the same as lowrank calls them; size 0 without */
    real *split_x, *split_q, *split_b; /* staging: [T, W], [T, k], [k, W] of a source on its way to factors */
};

/* create.c: model_create with a rotary table of `positions`; without `state` a planned model. */
int model_build(const struct model_config *config, const struct table *table, const struct state *state,
                const struct ops *ops, const struct model_part *part, long batch, long length, long positions,
                bool training, struct model **out);

/* pass.c: selects the pass's chunk and activation set. */
void begin_pass(struct model *m, const struct pass *pass);
/* The forward pass through its layers: the whole chunk; or, between rules_begin of these sums and of NULL, the
 * embedding, then layers from `first` up to `end`. */
void chunk_forward(struct model *m, struct loss_sums *sums);
void embed_forward(struct model *m);
void layers_forward(struct model *m, int first, int end, struct loss_sums *sums);

/* source_gradients.c: a walk begins: something has been left where the pass brings a buffer. */
void begin_source_gradients(struct model *m);
/* Zeroes those that the layer is the first to leave something in. */
void open_source_gradients(struct model *m, int layer);
/* Adds to the stream's gradient what layers above have left at a node: each rank's terms of it. */
void collect_source_gradient(struct model *m, int node);
/* Records a failure where something was left and not collected. */
void check_source_gradients(struct model *m);
void lay_out_source_gradients(struct model *m, long T);

/* nodes.c: whole outputs of nodes that have one in turn (before any activation set), and whether some are
 * factors; the output of an activation set's node, NULL where only rows are kept. All rows of a node's output
 * from the own ones; before a layer's backward pass, of the nodes that it is the highest to read (node_top).
 * A forward pass begins: records a failure where it comes between calls of a backward pass. */
bool lay_out_turns(struct model *m, long T);
real *lay_out_node(struct model *m, const struct chunk *chunk, struct activation_set *activation_set,
                   int node, long T);
void gather_node(struct model *m, int node);
void gather_sources(struct model *m, int layer);
void check_turns(struct model *m);
/* Where outputs are stored in bf16: after the node's layer keeps it; before a layer's backward pass, or the
 * head's, brings back those of which it is the highest to read. */
void store_node(struct model *m, int node);
void load_nodes(struct model *m, int layer);

/* weights.c: weight sets of the part, where it has some, their room, and that of a pass, NULL where products
 * are computed at once. GDN_INTERNAL. */
int create_weight_sets(struct model *m, const struct model_part *part);
void lay_out_weight_sets(struct model *m);
void free_weight_sets(struct model *m);
struct weight_set *weight_set_of(struct model *m, const struct pass *pass);

/* compress.c: what compressing needs, and then, for sums over context ranks (not collective; GDN_INTERNAL
 * without memory); a node's factors. After a layer's forward pass, compresses the nodes that it was the last
 * to read; before its backward pass brings them back. */
void lay_out_split(struct model *m, long T);
int reserve_split_sums(struct model *m);
void lay_out_factors(struct model *m, struct kept_output *kept, long T);
void compress_sources(struct model *m, int layer);
void decompress_sources(struct model *m, int layer);

#endif
