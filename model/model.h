/* The model: forward and backward passes of a gated delta network over one micro-batch, written by hand
 * (design: model.md), and its one-token form for generation. Everything it computes goes through the
 * operations table, everything it exchanges with other tensor ranks through an axis; all memory is reserved
 * at creation.
 *
 * A rank computes a part of the model: some chunks (spans of layers), a share of the tensors
 * (dist/layout/layout.h). Whoever calls brings what other stages computed and takes what they need (struct
 * pass). */
#ifndef GDN_MODEL_H
#define GDN_MODEL_H

#include <stdint.h>

#include "dist/comm/axis.h"
#include "dist/layout/layout.h"
#include "dist/layout/route.h"
#include "dist/layout/edge.h"
#include "dist/layout/table.h"
#include "kernels/ops.h"
#include "model/params/config.h"
#include "model/params/dropout.h"

struct model; /* opaque */

/* Sums over the tokens of a micro-batch; the caller adds them up and divides. On a mesh each rank has a part:
 * the sums over the tensor and pipeline axes are the micro-batch's. Passes add to sums in the memory of the
 * model's device, where the caller zeroes them; they leave `connections` alone. */
struct loss_sums {
    double ce;       /* Σ over targets that count of the cross entropy */
    double sparsity; /* Σ over active connections and tokens but padding of √(mean(c²) + 1e-12) */
    double entropy;  /* Σ over the same of the gate entropy in [0, 1] */
    double z;        /* Σ over targets that count of lse², of a model for training, with a z_weight */
    double exits[MAX_EXITS]; /* the same as `ce` of each exit, where options have a weight for it */
};

/* Of one connection, on a mesh this rank's part likewise. Passes add to them in the memory of the model's
 * device. */
struct connection_sums {
    double gate;         /* Σ over tokens but padding and gates, of which a connection has model_gates */
    double contribution; /* Σ over the same tokens of √(mean(c²) + 1e-12): its term of loss_sums.sparsity */
    double effect; /* by how much what gradients are of would grow without it, to first order; backward */
};

struct loss_options {
    const struct edge_set *active; /* edges in use, any of the model's; NULL: all */
    double target_weight;          /* 1 / (targets of the global batch that count) */
    double token_weight; /* 1 / (tokens of the global batch but for padding), of the connections' terms */
    double sparsity_weight, entropy_weight; /* w_s, w_e of model.md 5, already scheduled; 0: none, and where
                                               the configuration has no regularizer */
    double z_weight;                        /* z_loss of model.md 5; 0: none */
    double l1_weight; /* what a step's gradients of R_1 are multiplied with (train/step/absolute.c), which
                         passes leave out; 0: none */
    double exit_weight[MAX_EXITS]; /* of the loss of each exit of the configuration (model.md, 13); 0: it is not
                                      computed. A pass that evaluates only asks whether it is 0 */
    uint64_t masks;   /* what a training pass drops follows from this, dropout_key of its step */
    bool measure;     /* compute the sparsity and entropy sums although their weights are 0 */
    bool each; /* with `measure`: also the sums of each connection, in passes that have a place for them */
    bool effects; /* the connections' `effect` likewise, in backward passes on the host */
};

/* What one rank's memory goes to, in bytes. */
struct model_memory {
    long activations; /* saved buffers of all activation sets: what the backward pass reads */
    long sources;     /* outputs of nodes, of all activation sets: streams and sources of later layers */
    long workspace;   /* scratch, and what layers that compute again share */
};

/* What a layer's backward pass computes again instead of keeping it from the forward pass (Chen et al. 2016;
 * Korthikanti et al. 2022). The same calls at the same shapes: no result changes by a bit. The outputs of
 * nodes are kept in any case, since later layers read them, and are where it starts from. */
enum recompute_policy {
    POLICY_NONE,      /* everything is kept */
    POLICY_SELECTIVE, /* what is large and cheap: of a layer its norms' outputs, of its connections what
                         follows from the linear maps */
    POLICY_FULL,      /* of a layer all but sums that end in it, of its connections all but the target */
};
struct recompute {
    unsigned char layer, delta; /* enum recompute_policy of a layer without its connections, and of those */
};

/* What a weight set keeps for the gradients of weights of some layers: of their products what these multiply.
 */
struct model_weight_size {
    int products;
    long elements;
};

/* The part of the model that a rank computes, and how much of it at a time. NULL stands for all of it, with
 * one activation set. */
struct model_part {
    const struct layout *layout; /* the one that the table was made with; its `stage` outlives the model */
    struct axis *tensor;         /* the tensor axis; outlives the model, which sets its wire type */
    struct axis *context; /* the context axis, likewise: with several ranks rows are pieces of sequences
                             (dist/layout/pieces.h), which `batch` and `length` count; NULL: one rank. Its values
                             travel as they are stored */
    int context_exchange;        /* a row of the table of model/mixer/exchange.h */
    const int *activation_sets;  /* [layout->chunks] sets of saved activations: micro-batches in flight */
    const struct recompute *recompute; /* [num_layers], read at creation; NULL: POLICY_NONE. For training */
    double compress_sources; /* 0: nothing. Else sources that no other chunk reads are kept from forward to
                                backward as low-rank factors of this part of the full rank */
    bool bf16_activations; /* what is saved for the backward pass, but for the stream, weights and sums of rows,
                              is kept in bf16 until then */
    bool documents; /* tokens see their own document only, and positions begin again with each: rows have
                       marks of where they start (kernels/base/marks.h) */
    int weight_sets;  /* passes, of any chunk, whose gradients of weights wait for model_stage_weights: */
    int weights_from; /* those of layers from this one on */
    struct model_weight_size weight_size; /* of a set, by model_weight_sizes of a chunk's of these layers together */
    bool padding;   /* rows may have marks of padding, which sums of sparsity and entropy leave out */
};

/* One active connection of a layer on the way forward, as a watcher sees it. */
struct delta_view {
    const struct edge *edge;
    long batch, length, D; /* T = batch·length */
    const real *difference; /* [T, D] δ = target − source, whole on every tensor rank; on the host, as is: */
    const real *gate; /* [T, gates] this tensor rank's gates, row distance gate_ld; NULL where it has none */
    long gates, gate_ld;
};

/* Called for every active connection of the layers marked, in order of layer and connection, on all tensor
 * ranks. What the view points to is valid during the call alone. `see` may use the tensor axis. */
struct delta_watch {
    void (*see)(void *context, const struct delta_view *view);
    void *context;
    const bool *layer; /* [num_layers] */
};

/* Creates a model for micro-batches of up to `batch` sequences of up to `length` positions, on weights and
 * gradients laid out by `table` in `state`, which must outlive it; `training` false leaves out what only a
 * backward pass needs. Not collective. Fails with GDN_INTERNAL without memory. */
int model_create(const struct model_config *config, const struct table *table, const struct state *state,
                 const struct ops *ops, const struct model_part *part, long batch, long length, bool training,
                 struct model **out);
void model_free(struct model *model);
void model_memory(const struct model *model, struct model_memory *out);

/* From model_hold on products read the copy of the state's weights, where it has one, which is made anew
 * (kernels/ops.h, hold); until model_release nobody may write weights. Queued; neither can fail. Of all
 * models one at a time. */
void model_hold(const struct model *model);
void model_release(const struct model *model);

/* The same without memory behind it, for plans: passes may be run on it with operations that only count
 * (ops_find("count")) and an axis that only counts (axis_planned). */
int model_create_planned(const struct model_config *config, const struct table *table,
                         const struct model_part *part, long batch, long length, bool training,
                         struct model **out);

/* How the linear maps of a connection's difference and mean are computed (project.c): AUTO is what training
 * uses, the others are for benchmarks and tests. */
enum projection_way { PROJECTION_AUTO, PROJECTION_DIRECT, PROJECTION_SPLIT };
void model_set_projection(struct model *model, enum projection_way projection);

/* What a head makes of some tokens, as a watcher sees it in a pass that evaluates. */
struct head_view {
    int exit;              /* the exit's number; −1: the last layer's, which comes behind the exits' */
    long at, rows, vocab;  /* tokens at … at + rows − 1 of the micro-batch */
    const real *logits;    /* [rows, vocab], on the host */
    const int32_t *target; /* [rows] −1: does not count */
};

/* Called for each block of rows of each head that is computed. What the view points to is valid during the
 * call alone. On a device that is the host, on one tensor rank. */
struct head_watch {
    void (*see)(void *context, const struct head_view *view);
    void *context;
};

/* One micro-batch through one chunk. Arrays over nodes have num_layers + 1 entries, entry 1 + node; blocks
 * are [T, W] with T = batch·length and W = stream_width. Arrays over edges have an entry for each of
 * edges.edge; projected sources are [T, edge width], see projected_width. NULL entries: not there. */
struct pass {
    int chunk, activation_set;
    const int32_t *rows; /* [batch, length + 1] tokens, with marks (kernels/base/marks.h): inputs are the
                            first `length`, targets the last; the first stage reads inputs, the last one
                            targets. On the model's device */
    const int32_t *whole; /* with several context ranks: [batch / 2, 2c·length + 1] the sequences that rows are
                             pieces of, likewise; read where documents do not see each other */
    long batch, length;
    long sequence; /* number of the first sequence in the whole batch of all micro-batches and data ranks */
    const struct loss_options *options;
    bool evaluate; /* no backward pass follows, on a model that could */
    /* Forward; NULL: nobody. Sources must be here whole (layout.narrow off). */
    const struct delta_watch *watch;
    const struct head_watch *heads; /* likewise, where no backward pass follows */

    /* Forward: called with `caller` behind each layer, where the caller has something to do meanwhile; or NULL. */
    void (*behind_layer)(void *caller, int layer);
    void *caller;

    struct connection_sums *connections; /* [edges] added to where options->each, options->effects; else not
                                            looked at (NULL: nobody wants them) */

    real *const *source; /* outputs of nodes outside the chunk that its layers read, the stream's among them
                            (entry `first` of the span, node first − 1) */
    real *const *projected; /* an edge's narrow projections, where the node itself is not there */

    /* Backward. 1 + the weight set that keeps what gradients of weights are computed from
     * (model_stage_weights); 0: they are computed at once. The same in all calls of a walk. */
    int weight_set;
    real *gradient; /* in: gradient of the chunk's last output, with everything later stages have left there
                       (not read where the pass begins with the head); out: the same for the node that the
                       chunk starts from (after the first stage's embedding: undefined) */
    /* Running sums of gradients left at nodes: of nodes outside the chunk that its layers read (but for the
     * stream's, which joins `gradient`), added to by descending target; and of the chunk's own nodes where
     * later stages have left something, collected here. */
    real *const *source_gradient;
    real *const *projected_gradient; /* overwritten */
};

/* Forward through the pass's chunk, saving in its activation set what the backward pass needs. On the last
 * stage, where no backward pass follows, also the head: sums->ce. Adds to `sums`. Collective over the tensor
 * axis. */
void model_stage_forward(struct model *model, const struct pass *pass, struct loss_sums *sums);

/* Backward through layers `layer`, layer − 1, …, `end` of the chunk: num_layers is final norm, head and loss
 * (adds to sums->ce), −1 the embedding. A chunk may be walked in several calls, downwards. Gradients of
 * weights are added to state->gradient: those of rows marked `partial` are this rank's part of a sum over the
 * tensor axis. Collective over the tensor axis. */
void model_stage_backward(struct model *model, const struct pass *pass, int layer, int end,
                          struct loss_sums *sums);

/* The backward pass's second half, of whatever micro-batch a weight set has: adds to gradients of weights
 * what its products of layers down to `end` give. A set may be walked in several calls, downwards, and is
 * empty when its last layer is done. What is no product, and what the head and the embedding have, the
 * backward pass adds. In order of micro-batches the sums of each tensor are those without weight sets, to the
 * bit. */
void model_stage_weights(struct model *model, int weight_set, int end);

/* What a weight set keeps of each layer of the part, out [num_layers], found by a dry run with all
 * connections active. Of the part the layout, `documents` and `padding` are looked at. GDN_INTERNAL. */
int model_weight_sizes(const struct model_config *config, const struct table *table,
                       const struct model_part *part, long batch, long length, struct model_weight_size *out);
/* What a set keeps of the layers of a chunk from `from` on, of size [num_layers]. */
struct model_weight_size model_weight_size_of(const struct model_weight_size *size, struct span span, int from);
/* Fills in part->weight_size, where the part has weight sets. GDN_INTERNAL. */
int model_size_weight_sets(const struct model_config *config, const struct table *table,
                           struct model_part *part, long batch, long length);

/* Status of the first pass that failed, of a sum over the tensor axis for example; 0 where none has. A failed
 * pass's results are worthless. */
int model_status(const struct model *model);

/* Output [T, W] of a node of one of this rank's chunks, in an activation set; −1 on the first stage: the
 * embedding. Those that other stages read, sources and the stream, have all rows; others may be NULL, or only
 * there while a pass needs them. */
real *model_output(const struct model *model, int chunk, int activation_set, int node);
/* After a forward pass of T tokens, before the next one: the output's rows that this rank is sure to have,
 * all or its own, and how many they are. Not where sources are compressed. */
const real *model_output_rows(const struct model *model, int chunk, int activation_set, int node, long T,
                              long *rows);

/* What decides whether sources cross stages as narrow projections, for routes_create: never where whole
 * connections are held by tensor ranks as a whole, since then only one of them could project an edge. */
struct route_widths model_route_widths(const struct model_config *config, const struct layout *layout);

/* Narrow sources (dist/layout/route.h): the projections of edge e's source node s [T, D], projected source
 * [T, projected_width]: Wp s [T, Hd/tensor], W1 s [T, G], then with aggregate attention A s [T, a] and the
 * inverse rms of s [T, 1], each a block of its own. And back: from the projected source's gradient adds to
 * source_gradient [T, D] and to the weights' gradients. */
long projected_width(const struct model_config *config, const struct layout *layout);
void model_project(struct model *model, int edge, const real *s, long T, real *projected);
void model_unproject(struct model *model, int edge, const real *s, long T, const real *projected_gradient,
                     real *source_gradient);

/* Gates of one connection, over all tensor ranks: its hidden channels, the model's columns, or its groups. */
long model_gates(const struct model_config *config);

/* Seconds that this rank's passes have spent in connections so far, forward, backward and computed again,
 * with what their sums over the tensor axis wait. NAN where the model's device runs while the host goes on:
 * there the time of a call says nothing. */
double model_connection_seconds(const struct model *model);

/* What the layers' token mixers are asked of a configuration. On so many tensor ranks: values that do not go
 * together, NULL where all do. On a device of that name, not the host: GDN_INPUT where it cannot compute the
 * model. */
const struct conflict *model_conflict(const struct model_config *config, int tensor);
int model_validate_device(const struct model_config *config, const char *device);

/* How many weights of the trunk's products are numbered (ops.h, linear). */
int model_weight_ids(const struct model_config *config);

/* Active connections of the whole model that sums of sparsity and entropy are over, for their means. */
long model_measured(const struct model *model, const struct edge_set *active);

/* Loss of a micro-batch, whose rows are the host's, by a rank that holds the whole model. Adds gradients of
 * Σ_t ce·target_weight + sparsity, entropy and z terms to state->gradient. Tokens must lie in [0, vocab). */
void model_train(struct model *model, const int32_t *rows, long batch, long length,
                 const struct loss_options *options, struct loss_sums *out);

/* The same without gradients. */
void model_loss(struct model *model, const int32_t *rows, long batch, long length,
                const struct loss_options *options, struct loss_sums *out);

/* Generates one sequence of up to `capacity` tokens, by a rank that holds the whole model; at most `rows` of
 * them are fed together, more than 1 where products are by rows (ops_by_rows). Holds the weights (model_hold)
 * as long as it lives, in a copy of its own where `state` has none: one decoder at a time. */
struct decoder;
int decoder_create(const struct model_config *config, const struct table *table, const struct state *state,
                   const struct ops *ops, long capacity, long rows, struct decoder **out);
void decoder_free(struct decoder *decoder);
/* Feeds the next token; returns logits [vocab] for the one after it, owned by the decoder until the next
 * call. Feed at most `capacity` tokens. `active`: as in loss_options. */
const real *decoder_step(struct decoder *decoder, int32_t token, const struct edge_set *active);
void decoder_reset(struct decoder *decoder);

/* The same with exits (model.md, 13): the token leaves at the first where the likeliest token's probability is
 * at least threshold [exits] of it; above 1 an exit is not asked; NULL: none is. *layers: how many were
 * computed. Of the others later tokens read keys and values of the exit's state. */
const real *decoder_leave(struct decoder *decoder, int32_t token, const struct edge_set *active,
                          const double *threshold, int *layers);
/* GDN_INPUT where tokens cannot leave the model early. */
int decoder_validate_leave(const struct model_config *config);

/* Feeds `count` tokens together; returns logits [count, vocab] for those after each. Where there are products
 * by rows (ops_by_rows) every row has the bits that decoder_step would give one by one: attention is computed
 * token by token, and no other operation of a forward pass lets a token's numbers depend on another one's. */
const real *decoder_feed(struct decoder *decoder, const int32_t *token, long count,
                         const struct edge_set *active);
/* Feeds a token to the layers up to an exit alone, as a draft; returns the exit's logits [vocab] for the one
 * after it. The next token that is fed otherwise comes in place of the drafts. */
const real *decoder_draft(struct decoder *decoder, int32_t token, int exit, const struct edge_set *active);
/* Forgets the last `count` tokens, drafts not counted. */
void decoder_take_back(struct decoder *decoder, long count);
/* GDN_INPUT where exits cannot draft for the model, or there are none, and elsewhere than on the cpu in fp32
 * (train/interfaces.md); on other devices several tokens would not have the bits of single ones. */
int decoder_validate_drafts(const struct model_config *config, const struct ops *ops);

#endif
