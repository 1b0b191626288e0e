/* A model with its weights, gradients and every buffer, for tests of model/. */
#ifndef GDN_TEST_FIXTURE_H
#define GDN_TEST_FIXTURE_H

#include "model/edges.h"
#include "model/model.h"
#include "model/params.h"

struct fixture {
    struct model_config config;
    struct table table;
    struct state state;
    struct model *model;
};

/* Builds a model with initial weights from `seed`, moved off the symmetric start by `noise`·normal. */
void fixture_create(struct fixture *f, const struct model_config *config, const struct ops *ops, long batch,
                    long length, uint64_t seed, double noise);
void fixture_free(struct fixture *f);

/* The smallest model that has every part; callers change what they test. */
struct model_config small_model(void);

/* Loss as training sees it, with its gradients in f->state.gradient where `train`. */
double fixture_loss(struct fixture *f, const int32_t *rows, long batch, long length,
                    const struct loss_options *options, bool train, struct loss_sums *sums);

#endif
