/* Private to model/: a layer without its connections, the embedding and the head. */
#ifndef GDN_LAYER_H
#define GDN_LAYER_H

#include "model/mixer/mixer.h"

/* Products with an MLP's weights, numbered after those of the layer's mixer (ops.h, linear). */
enum mlp_weight { WEIGHT_GATE_UP, WEIGHT_DOWN, MLP_WEIGHTS };

/* What adds to the residual stream in a layer. */
enum block { BLOCK_MIXER, BLOCK_MLP, BLOCKS };

/* What a rule between layers that has several streams (params/stream.h) does at a layer's blocks. x [R, W] is
 * the stream before the block, own rows, as are all others. */
struct streams {
    /* Forward: what the block's numbers are. From them, forward or again, what it reads of the stream, h [R,
     * D]; and the stream behind it, out [R, W], of what it adds, f [R, D]. */
    void (*begin)(struct model *m, int l, enum block block, const real *x);
    void (*read)(struct model *m, int l, enum block block, const real *x, real *h);
    void (*write)(struct model *m, int l, enum block block, const real *x, const real *f, real *out);
    /* Backward: m->g, the gradient of `out`, becomes that of x without what came by way of h; df [R, D]. Then
     * from dh [R, D] adds that to m->g, and to the gradients of weights. */
    void (*write_back)(struct model *m, int l, enum block block, const real *x, real *df);
    void (*read_back)(struct model *m, int l, enum block block, const real *x, const real *dh);
};

struct layer {
    int policy; /* enum recompute_policy, or POLICY_NO_BACKWARD, of all but the connections */
    struct mixing mixing;
    struct tensor norm1, norm2, gate_up, down;
    struct tensor exit_norm; /* where it has an exit */
    struct stored_list stored; /* of those below and the mixer's what is kept in bf16; else empty */
    /* Saved. */
    real *n1, *rstd1;     /* [R, D], [R] */
    real *a, *n2, *rstd2; /* [R, W], [R, D], [R] */
    real *gu;             /* [T, 2F] */
    real *x; /* [R, W] its input; NULL where no rule enters before it: then it is the z of the layer below */
    real *y; /* [R, W]; NULL where no rule enters after it: then it is z's own rows */
    real *z; /* [T, W]; NULL where nothing reads more than its own rows (pass/nodes.c) */
};

static inline int mlp_weight_id(const struct layer *layer, enum mlp_weight weight) {
    return layer->mixing.weight + layer->mixing.row->weights + (int)weight;
}

/* What all layers share. Of layers and vocabulary that are elsewhere the tensors are NULL. */
struct trunk {
    long F;              /* this rank's MLP width */
    long V, first_token; /* its rows of the vocabulary, and the first of them */
    struct tensor embed, norm, head;
    struct layer *held;        /* [num_layers] tensors of the layers held; activation sets have copies */
    struct layer shared;       /* the saved buffers that layers do not have of their own but use in turn */
    const struct layer *owner; /* for whose backward pass `shared` holds what its forward pass wrote, but for
                                  what is kept in bf16 */
    int32_t *input, *target;   /* [T] of the pass in progress */
    int32_t *start;            /* [T] likewise, where documents do not see each other; else NULL */
    real *counts;              /* [T] likewise, 1 or of padding 0, where there may be some; else NULL */
    const struct streams *streams; /* NULL: the stream is one, to which blocks add */

    /* Scratch. */
    real *full;          /* [T, D] where rows are divided: all rows of the block `full_of` (stream_all) */
    const real *full_of; /* NULL: of none */
    real *nf, *rstdf;    /* [T, D], [R] final norm; nf is `full` where there is that */
    real *t1, *t2;       /* [T, D], [R, W]; t2 only without training, as the y of all layers */
    real *read;          /* [R, D] of several streams: what a block or the head reads of them */
    real *added;  /* [T, D] with several streams or residual dropout: the gradient of what a block adds */
    real *h;      /* [T, F] */
    real *dgu;    /* [T, 2F] */
    real *dh;     /* [T, F] */
    real *losses; /* [T] */
    real *logits; /* [logit_rows, V] */
    long logit_rows;
    real *largest, *exp_sums; /* [logit_rows], [2, logit_rows] of a vocabulary that is divided */
};

/* create.c: the number of a layer's first weight (of num_layers: how many there are); a layer of this rank,
 * held or of an activation set, false without memory (free_layer in any case); tensors and policy of one for
 * another. */
int first_weight(const struct model_config *config, int l);
bool create_layer(struct model *m, int l, struct layer *out);
void free_layer(struct layer *layer);
void copy_layer(struct layer *to, const struct layer *from);
/* The tensors of embedding and head, of a layer; what a layer saves for its own backward pass; what layers of
 * this rank do not keep, laid out once: share_layer first for each of them; scratch, with the head's or without. */
void find_ends(struct model *m);
void find_layer(struct model *m, int l);
void lay_out_layer(struct model *m, struct layer *layer, long T);
void share_layer(struct model *m, int l);
void lay_out_shared_layer(struct model *m, long T);
void lay_out_layer_scratch(struct model *m, long T, bool head);

/* block.c: the residual stream as blocks have it, of one stream or several. Own rows [R, D] of what a block
 * reads of the stream x, own rows [R, W], after `begin_block` of a forward pass; and the stream behind it,
 * from f [R, D], which is read in place. Before the first block, from x0 [R, D]; what the head reads. */
void begin_block(struct model *m, int l, enum block block, const real *x);
const real *read_block(struct model *m, int l, enum block block, const real *x);
void write_block(struct model *m, int l, enum block block, const real *x, const real *f, real *out);
void begin_streams(struct model *m, const real *x0, real *x);
const real *read_streams(struct model *m, const real *x);
/* Backward. All rows [T, D] of the gradient of what the block adds, and m->g as of what is before it. What a
 * norm of what was read leaves, from dn [R, D]: adds to m->g. The gradient [T, D] of x0, all rows. */
const real *write_block_back(struct model *m, int l, enum block block, const real *x);
void read_block_back(struct model *m, int l, enum block block, const real *x, struct tensor norm,
                     const real *rstd, const real *dn);
/* The same of what the head read: of an exit (`exit`) adds to m->g, of the last layer m->g begins with it. */
void read_streams_back(struct model *m, bool exit, const real *x, struct tensor norm, const real *rstd,
                       const real *dn);
const real *begin_streams_back(struct model *m);

/* forward.c */
void embedding_forward(struct model *m);
void layer_forward(struct model *m, int layer);
/* Of a token that leaves this layer out in generation what later tokens read of it there, as if x [1, W] were
 * the layer's input. */
void layer_pass_by(struct model *m, int layer, const real *x);
/* Its parts that a backward pass may need again: a norm's output n [R, D] and rstd of own rows x [R, D]; gu
 * from n2. */
void norm_rows(struct model *m, const real *x, struct tensor norm, real *n, real *rstd);
void layer_expand(struct model *m, int layer);

/* store.c: after a layer's forward pass, keeps what is kept in bf16; before its backward pass, brings that
 * back; and rounds what has been computed again of the same buffers, so that the backward pass reads the same
 * whatever is. */
void store_layer(struct model *m, int layer);
void load_layer(struct model *m, int layer);
void round_layer(struct model *m, int layer);

/* recompute.c: before a layer's backward pass, brings back what is kept in bf16 and computes what is not
 * kept, unless `shared` still has it. */
void recompute_layer(struct model *m, int layer);

/* backward.c: from m->g, the gradient of the layer's y, to that of its x. */
void layer_backward(struct model *m, int layer);
void embedding_backward(struct model *m);

/* head.c: a norm, the final one or an exit's, of own rows x; logits of `rows` tokens from token `at` on; and
 * with both the loss in blocks of rows, with gradients where m->gradients: then m->g is the gradient of x. */
void head_norm(struct model *m, struct tensor norm, const real *x);
void head_logits(struct model *m, long at, long rows);
void head_loss(struct model *m, const real *x, struct loss_sums *sums);
/* The same of a layer's exit, where it has one and the pass a weight for it: the gradient of its output adds
 * to m->g. */
void exit_loss(struct model *m, int layer, struct loss_sums *sums);

#endif
