/* A model with its weights, gradients and every buffer, for tests of model/. */
#ifndef GDN_TEST_FIXTURE_H
#define GDN_TEST_FIXTURE_H

#include "dist/comm/axis.h"
#include "dist/layout/layout.h"
#include "model/params/edges.h"
#include "model/model.h"
#include "model/rules/rules.h"
#include "model/params/find.h"
#include "model/table/params.h"
#include "tests/support/backend.h"
#include "tests/support/unit.h"

struct fixture {
    struct model_config config;
    struct table table;
    struct state state;
    struct model *model;
    const struct ops *ops;
    struct layout layout; /* of a model with a part */
    struct axis alone;
};

/* Builds a model with initial weights from `seed`, moved off the symmetric start by `noise`·normal; and one
 * whose documents and padding are as `part` has them. */
void fixture_create(struct fixture *f, const struct model_config *config, const struct ops *ops, long batch,
                    long length, uint64_t seed, double noise);
void fixture_create_part(struct fixture *f, const struct model_config *config, const struct ops *ops,
                         long batch, long length, uint64_t seed, double noise, const struct model_part *part);
void fixture_free(struct fixture *f);

/* The smallest model that has every part, with the token mixers of $GDN_TEST_MIXERS (tests/rows/rows.h),
 * with two exits where there is $GDN_TEST_EXITS, its stream stored in bf16 where $GDN_TEST_RESIDUAL is bf16;
 * callers change what they test. */
struct model_config small_model(void);

/* A micro-batch of FIXTURE_BATCH sequences of FIXTURE_LENGTH positions; rows as in struct pass. */
enum { FIXTURE_BATCH = 2, FIXTURE_LENGTH = 5 };
void fixture_rows(int32_t *rows, int vocab);
/* Marks targets of the second sequence, and all of the first, as not counted; returns the target_weight of a loss that is the
 * mean over the others. */
double fixture_uncount(int32_t *rows);
/* Marks two inputs of the second sequence as padding; returns the token_weight of a loss without them. */
double fixture_pad(int32_t *rows);

/* The edges of the first `active` distances, NULL for −1; the fixture's until the program ends. */
const struct edge_set *fixture_active(const struct model_config *c, int active);

/* `active` distances, −1 for all. */
struct loss_options fixture_options(const struct model_config *c, int active, bool regularize);

/* What `layers` layers compute again: all the same, or each its own, drawn by `seed` and `index`. */
void fixture_policies(struct recompute *policies, int layers, int policy);
void fixture_random_policies(struct recompute *policies, int layers, uint64_t seed, uint64_t index);

/* Makes it a model that four ranks can divide: eight heads on four key/value heads, a vocabulary that does
 * not divide. */
void fixture_widen(struct model_config *c);

/* Every combination of gate, aggregate and normalize, some with the other settings, then those of the trunk;
 * false after the last. */
bool fixture_variant(int i, struct model_config *c, struct loss_options *o);

/* One rank's part of a whole model, with its weights. */
struct part {
    struct layout layout;
    struct table table;
    struct state state;
    struct model *model;
    const struct ops *ops;
};

void part_create(struct part *p, const struct fixture *full, const struct layout *layout, struct axis *tensor,
                 const int *activation_sets, const struct ops *ops, long batch, long length);
/* Whether parts keep activations in bf16 (model_part): where $GDN_TEST_ACTIVATIONS is bf16. */
bool fixture_bf16_activations(void);
/* The same with recompute policies [num_layers]. */
void part_create_policies(struct part *p, const struct fixture *full, const struct layout *layout,
                          struct axis *tensor, const int *activation_sets, const struct recompute *recompute,
                          const struct ops *ops, long batch, long length);
void part_free(struct part *p);
/* Where element i of a rank's part of a tensor lies in the memory of the whole tensor. */
long part_place(const struct row *row, long i);

/* Loss as training sees it, but for R_1, with its gradients in f->state.gradient where `train`. */
double fixture_loss(struct fixture *f, const int32_t *rows, long batch, long length,
                    const struct loss_options *options, bool train, struct loss_sums *sums);

#endif
