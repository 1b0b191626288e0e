/* Private to model/: token mixers, what mixes the tokens of a layer. A mixer is a row of a table (mixer.c):
 * its functions and what it keeps, which layers, passes and the decoder walk without looking inside. It takes
 * a norm's output of all rows and gives this rank's terms of a sum over tensor ranks, forward and backward
 * alike: layers gather and sum. */
#ifndef GDN_MIXER_H
#define GDN_MIXER_H

#include <stddef.h>

#include "model/base/base.h"
#include "model/params/leaf.h"

enum { MIXER_LEAVES = 10 }; /* attention's with all it may have */

struct mixer;

/* Queries, keys or values of a layer, where rules between layers may enter: of all T rows this tensor rank's
 * heads, as projected from n and before norms and rotation, so that what enters is turned and kept as the layer's own.
 * In a backward pass their gradient. */
struct heads {
    real *at;              /* [T, count · width], row distance ld */
    long count, width, ld; /* heads of so many channels */
    const real *n;         /* [T, D] */
    real *dn;              /* backward: [T, D] added to: this rank's terms of the gradient of n */
    bool empty;            /* the mixer has left its own product out: what enters writes `at` */
};

/* What enters there, from above: the mixer calls it for each of its places, forward when it has projected
 * (once more where it computes again), backward when it has the gradients and before it goes on to that of n.
 */
struct inlet {
    /* Is the place projected from another input than n, by what enters first (heads.empty)? */
    bool (*instead)(const struct model *m, int layer, enum rule_place place);
    void (*forward)(struct model *m, int layer, enum rule_place place, const struct heads *heads);
    void (*backward)(struct model *m, int layer, enum rule_place place, const struct heads *heads);
};

/* A layer's mixer, in one activation set, or where tensors are held. The row's own structs are opaque to all
 * others. */
struct mixing {
    const struct mixer *row;
    int layer;
    int policy;   /* enum recompute_policy, or POLICY_NO_BACKWARD: the layer's */
    int weight;   /* the first of its weights' numbers (ops.h, linear) */
    void *own;    /* what it keeps of the layer: tensors, saved buffers */
    void *common; /* what all layers with this row share on a rank: scratch */
    void *decode; /* of the tokens so far, in generation; else NULL */
    const struct inlet *inlet; /* NULL: nothing enters */
};

struct mixer {
    const char *name;
    /* Bytes of the row's own structs, zeroed at creation. */
    size_t own_bytes, common_bytes, decode_bytes;
    bool documents; /* it keeps those apart that do not see each other, by m->start */
    bool pieces;    /* rows may be pieces of sequences: there may be several context ranks */
    int weights; /* products with weights that are numbered: mixing.weight and the following */

    /* The tensors that it brings to a layer, into leaf [MIXER_LEAVES]; returns how many. Arithmetic per token
     * of the forward pass, on average over a sequence of `length` (a multiply and an add are two). */
    int (*leaves)(const struct model_config *config, struct leaf *leaf);
    double (*flops)(const struct model_config *config, long length);

    /* Columns of queries, keys or values on all tensor ranks, which share whole heads evenly: where rules may
     * enter; 0: not there. NULL: nowhere. */
    long (*place_width)(const struct model_config *config, enum rule_place place);

    /* What of the configuration does not go together on so many tensor ranks, NULL where all does;
     * hidden_size is then a multiple of them. What a device of that name, not the host, cannot do: GDN_INPUT;
     * NULL where it can do all.
     */
    const struct conflict *(*conflict)(const struct model_config *config, int tensor);
    int (*validate_device)(const struct model_config *config, const char *device);

    /* Creation. A layer's tensors. Its saved buffers, or those of `shared` that it does not keep (SAVE): own
     * structs of the row. Scratch in `common`, for passes of T tokens and sequences of `positions`; and what
     * is computed once and put there, NULL where nothing is: GDN_INTERNAL without memory. */
    void (*find)(const struct model *m, const struct mixing *x);
    void (*lay_out)(struct model *m, const struct mixing *x, void *shared, long T);
    void (*lay_out_scratch)(struct model *m, void *common, long T, long positions);
    int (*fill)(struct model *m, void *common, long positions);

    /* Passes of the m->T tokens in progress. Forward: from a norm's output n [T, D] out [T, D], this rank's
     * terms of a sum. Backward: from the sum's gradient dout [T, D] adds to weights' gradients; dn [T, D],
     * this rank's terms of n's. Again: from n all that the backward pass reads and the layer has not kept,
     * which is nothing for policies below `again_from`. */
    void (*forward)(struct model *m, const struct mixing *x, const real *n, real *out);
    void (*backward)(struct model *m, const struct mixing *x, const real *dout, const real *n, real *dn);
    void (*again)(struct model *m, const struct mixing *x, const real *n);
    int again_from; /* enum recompute_policy */

    /* Generation of one sequence, by a rank that has all of the model: takes what the decode struct needs for
     * `capacity` tokens from the arena; forgets all tokens; forward for one more, with `rewind` for m->T
     * more; and without that what later tokens read of one (NULL: tokens cannot leave early). `rewind`
     * forgets all but the first `length` tokens; NULL: tokens come one by one, and cannot be taken back. */
    void (*lay_out_decode)(struct model *m, const struct mixing *x, struct arena *arena, long capacity);
    void (*reset)(struct model *m, const struct mixing *x);
    void (*rewind)(const struct mixing *x, long length);
    void (*step)(struct model *m, const struct mixing *x, const real *n, real *out);
    void (*pass_by)(struct model *m, const struct mixing *x, const real *n);
};

/* The rows of gdn. */
extern const struct mixer mixer_attention; /* attention.c */

/* Adds a row, for programs beside gdn: before anything else of the program. Returns its number
 * (model_config.mixers). */
int mixer_register(const struct mixer *row);
/* The row of a layer. */
const struct mixer *mixer_of(const struct model_config *config, int layer);
/* How many weights are numbered by the mixers of the layers below this one. */
int mixer_weights_below(const struct model_config *config, int layer);

/* GDN_INPUT where documents are not to see each other, and a layer's mixer does not keep them apart. */
int mixers_validate_documents(const struct model *m);
/* GDN_INPUT with several context ranks where a layer's mixer cannot have its sequences cut. */
int mixers_validate_pieces(const struct model *m);
/* Room for what the layers of a row share (model.mixers; row NULL: no layer of this rank has it), before any
 * layer is created; false without memory. */
bool mixers_create(struct model *m);
void mixers_free(struct model *m);
/* A layer's mixer with its own struct, zeroed, and what the layers of its row share. Weights' numbers begin
 * with `weight`. False without memory. mixing_free in any case. */
bool mixing_create(struct model *m, int layer, int weight, struct mixing *out);
void mixing_free(struct mixing *x);
/* Tensors and policy of a layer's mixer, for another activation set's own struct. */
void mixing_copy(struct mixing *to, const struct mixing *from);

/* All rows' scratch; the saved buffers of a layer; those that layers do not keep but use in turn:
 * mixing_share first for each of the rank's layers; what is computed once. */
void lay_out_mixers_scratch(struct model *m, long T, long positions);
void lay_out_mixing(struct model *m, const struct mixing *x, long T);
void mixing_share(struct model *m, const struct mixing *x);
void lay_out_shared_mixers(struct model *m, long T);
int fill_mixers(struct model *m, long positions);

/* Forward, of new tokens where they are generated. */
static inline void mix_forward(struct model *m, const struct mixing *x, const real *n, real *out) {
    (x->decode ? x->row->step : x->row->forward)(m, x, n, out);
}

#endif
