/* Aggregates: what becomes of the contributions of a layer's connections (model.md, 4). An aggregate is a row
 * of a table (aggregate.c), which the parameter table, the count of arithmetic, checks of configurations,
 * what travels between stages and the passes of the connections walk without knowing which aggregates there
 * are.
 *
 * Contributions are multiplied by weights, a weight being a share times the connection's `mix`, and then
 * summed. A row may compute the shares of each token, or combine contributions in place of the sum. */
#ifndef GDN_AGGREGATE_H
#define GDN_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/base/real.h"
#include "model/params/config.h"
#include "model/params/leaf.h"

struct connections;
struct delta_pass;
struct model;

/* Leaves and maps of sources that an aggregate has at most. */
enum { MAX_AGGREGATE_LEAVES = 4, MAX_AGGREGATE_MAPS = 2 };

struct aggregate {
    const char *name; /* the word of model.delta.aggregate */

    /* Of a configuration; NULL: none. The leaves that all connections into a layer share, into out
     * [MAX_AGGREGATE_LEAVES]; returns how many. */
    int (*leaves)(const struct model_config *config, struct leaf *out);
    bool mix; /* connections have a `mix` whatever their gate: 1 at first where the gate brings none */
    double (*flops)(const struct model_config *config, int n); /* of a layer with n connections and a token */
    /* What of it does not go together on so many tensor ranks; NULL where all does. */
    const struct conflict *(*conflict)(const struct model_config *config, int tensor);

    /* All that it reads of sources s: maps W s by leaves [width, D] that `projects` and are whole on all
     * ranks, here by their numbers (source.c, map_sources); their inverse rms (source.rs, source_rms_back).
     */
    int map[MAX_AGGREGATE_MAPS];
    int maps;
    bool rms;

    /* Of a rank's model. Its own structs, as those of a gate (gate.h): of what is saved of a layer, in
     * connections.aggregate, which begins with an int, the policy (SAVE), and of scratch, in
     * delta_state.aggregate_scratch, for layers with up to `all` connections. NULL: what all have is
     * enough. */
    size_t saved_bytes, scratch_bytes;
    void (*lay_out)(struct model *m, struct connections *c, long T);
    void (*lay_out_scratch)(struct model *m, long T, long all);

    /* Shares that are the same for all tokens and the `all` connections; NULL: 1, or those computed. */
    real (*share)(int all);

    /* Computes shares alpha [rows, all], of the pass's rows, the own ones (on_own_rows). Back: from dalpha,
     * which it may use up and which has zeros for connections that are elsewhere, adds this rank's terms to
     * the gradients of leaves, target and sources. Again: what back reads that was saved and is not kept.
     * NULL: `share`. */
    void (*weigh)(const struct delta_pass *p, real *alpha);
    void (*weigh_back)(const struct delta_pass *p, const real *alpha, real *dalpha);
    void (*weigh_again)(const struct delta_pass *p);

    /* Combines the weighted contributions, connections.contribution [T, all, D], whole on all ranks: adds to
     * the own rows z [R, D]. Back: from dz [T, D] fills dc [T, all, D], whole on all ranks, and adds this
     * rank's terms to the gradients of leaves and target, to the target's only when done with dz. Again: as
     * above. NULL: they are summed, and none is formed. */
    void (*combine)(struct delta_pass *p, real *z);
    void (*combine_back)(struct delta_pass *p, const real *dz, real *dc);
    void (*combine_again)(struct delta_pass *p);
};

/* The rows of gdn, by enum delta_aggregate. */
extern const struct aggregate aggregate_learned, aggregate_mean, aggregate_attention, aggregate_multihead;

/* Adds a row, for programs beside gdn: before anything else of the program. Returns its number
 * (model.delta.aggregate). */
int aggregate_register(const struct aggregate *row);
/* The row of model.delta.aggregate; how many there are; and what the key may be, "learned|mean|…". */
const struct aggregate *aggregate_of(const struct model_config *config);
int aggregates(void);
/* Its leaves, into out [MAX_AGGREGATE_LEAVES]; returns how many. */
int aggregate_leaves(const struct model_config *config, struct leaf *out);
const char *aggregate_words(void);

#endif
