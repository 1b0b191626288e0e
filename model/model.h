/* The model: forward and backward passes of a gated delta network over one micro-batch, written by hand
 * (design: model.md), and its one-token form for generation. Everything it computes goes through the
 * operations table; all memory is reserved at creation. */
#ifndef GDN_MODEL_H
#define GDN_MODEL_H

#include <stdint.h>

#include "dist/table.h"
#include "kernels/ops.h"
#include "model/config.h"

struct model; /* opaque */

/* Sums over the tokens of a micro-batch; the caller adds them up and divides. */
struct loss_sums {
    double ce;        /* Σ over tokens of the cross entropy */
    double sparsity;  /* Σ over active connections and tokens of √(mean(c²) + 1e-12) */
    double entropy;   /* Σ over active connections and tokens of the gate entropy in [0, 1] */
    long connections; /* active connections of this model (the same for every micro-batch) */
};

struct loss_options {
    int active;                             /* how many of the distances are active */
    double token_weight;                    /* 1 / (target tokens of the global batch) */
    double sparsity_weight, entropy_weight; /* w_s, w_e of model.md 5, already scheduled; 0: none */
    bool measure; /* compute the sparsity and entropy sums although their weights are 0 */
};

/* What one rank's memory goes to, in bytes. */
struct model_memory {
    long activations;
};

/* Creates a model for micro-batches of up to `batch` sequences of up to `length` positions, on weights and
 * gradients laid out by `table` in `state`, which must outlive it; `training` false leaves out what
 * only a backward pass needs. Not collective. Fails with GDN_INTERNAL without memory. */
int model_create(const struct model_config *config, const struct table *table, const struct state *state,
                 const struct ops *ops, long batch, long length, bool training, struct model **out);
void model_free(struct model *model);
void model_memory(const struct model *model, struct model_memory *out);

/* How the linear maps of a connection's difference and mean are computed (project.c): AUTO is what training
 * uses, the others are for benchmarks and tests. */
enum form { FORM_AUTO, FORM_DIRECT, FORM_SPLIT };
void model_set_form(struct model *model, enum form form);

/* Loss of `batch` rows of length+1 tokens each (inputs: the first `length`, targets: the last). Adds
 * gradients of Σ_t ce·token_weight + sparsity and entropy terms to state->gradient. Tokens must lie in [0,
 * vocab). */
void model_train(struct model *model, const int32_t *rows, long batch, long length,
                 const struct loss_options *options, struct loss_sums *out);

/* The same without gradients. */
void model_loss(struct model *model, const int32_t *rows, long batch, long length,
                const struct loss_options *options, struct loss_sums *out);

/* A key/value cache for generating one sequence of up to `capacity` tokens. */
struct decoder;
int decoder_create(const struct model_config *config, const struct table *table, const struct state *state,
                   const struct ops *ops, long capacity, struct decoder **out);
void decoder_free(struct decoder *decoder);
/* Feeds the next token; returns logits [vocab] for the one after it, owned by the decoder until the next
 * call. Feed at most `capacity` tokens. All distances are active up to `active`. */
const real *decoder_step(struct decoder *decoder, int32_t token, int active);
void decoder_reset(struct decoder *decoder);

/* Multiply-adds ×2 of one training step (forward and backward) per token: the GEMMs and attention's products
 * at `length`, with `active` distances. For model_flops_utilization and the benchmark. */
double model_flops_per_token(const struct model_config *config, long length, int active);

#endif
