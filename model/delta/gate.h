/* Gates: what makes a connection's contribution of its difference (model.md, 3). A gate is a row of a table
 * (gate.c), which the parameter table, the count of arithmetic, checks of configurations and the passes of
 * the connections walk without knowing which gates there are. */
#ifndef GDN_GATE_H
#define GDN_GATE_H

#include <stddef.h>

#include "kernels/base/real.h"
#include "model/params/config.h"
#include "model/params/leaf.h"

struct connections;
struct delta_pass;
struct delta_view;
struct model;

/* Leaves and linear maps that a gate has at most. */
enum { MAX_GATE_LEAVES = 12, MAX_MAPS = 4 };

/* A linear map of every connection's difference or mean, with a leaf [width, D] as its weights (project.c).
 */
struct map {
    int leaf;
    enum map_of { MAP_DIFFERENCE, MAP_MEAN } of; /* W δ, or W (s + t)/2 */
};

struct gate {
    const char *name; /* the word of model.delta.kind */

    /* Of a configuration. */
    int (*leaves)(const struct model_config *config,
                  struct leaf *out); /* of a connection; returns how many */
    struct map map[MAX_MAPS];        /* those that project.c computes */
    int maps;
    bool linear; /* reads sources through its maps alone, so that these may travel in place of sources, but
                    for `normalize` */
    bool mixed;  /* starts as no change by a `mix` of 0, which its connections have under every aggregate */
    /* How contributions of divided channels lie on the tensor ranks: terms of a sum; columns of their own; or
     * all of them on every rank, and one of them goes back. */
    enum gate_parts { PARTS_SUMMED, PARTS_SIDE_BY_SIDE, PARTS_REPLICATED } parts;
    long (*gates)(const struct model_config *config);   /* of one connection, over all tensor ranks */
    double (*flops)(const struct model_config *config); /* of one connection and token, forward */
    /* What of it does not go together where so many tensor ranks share each connection's channels; NULL where
     * all does. */
    const struct conflict *(*conflict)(const struct model_config *config, int ranks);

    /* Of a rank's model. Its own struct of what is saved of a layer, in connections.gate, which begins with
     * an int, the policy (SAVE): its bytes, and its buffers for passes of T tokens. Scratch of its own, in
     * delta_state.gate_scratch, for layers with up to n connections of this rank; NULL: what all gates have
     * is enough. */
    size_t saved_bytes, scratch_bytes;
    void (*lay_out)(struct model *m, struct connections *c, long T);
    void (*lay_out_scratch)(struct model *m, long T, long n);

    /* Passes. `fill` computes gates and whatever else is saved, from the linear maps on or (`maps` false)
     * from the maps as they were saved; it adds to the sums that are measured. `contribute` adds weighted
     * contributions to out (row distance ldo; with a step, each at out + step times its number among all
     * active ones; of PARTS_SIDE_BY_SIDE only this rank's columns), or overwrites it with them where `add` is false. `backward` reads dout [T, D]
     * likewise, always whole, fills dweight, and adds to the gradients of leaves, target and sources: to the
     * target's only when done with dout, where `in_place`. */
    void (*fill)(struct delta_pass *p, bool maps);
    void (*contribute)(struct delta_pass *p, bool add, real *out, long ldo, long step);
    void (*backward)(struct delta_pass *p, const real *dout, long ldo, long step);
    bool in_place;
    /* This rank's i-th connection's gates, after `fill`: sets gate, gates and gate_ld. */
    void (*show)(const struct delta_pass *p, int i, struct delta_view *view);
};

/* The rows of gdn, by enum delta_kind. */
extern const struct gate gate_bottleneck, gate_full, gate_adaptive;

/* Adds a row, for programs beside gdn: before anything else of the program. Returns its number
 * (model.delta.kind). */
int gate_register(const struct gate *row);
/* The row of model.delta.kind; and what that may be, "bottleneck|full|…". */
const struct gate *gate_of(const struct model_config *config);
const char *gate_words(void);

/* The rule that has gates (model/rule/rule.h, rule.c). */
extern const struct rule rule_delta;

#endif
