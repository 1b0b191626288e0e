/* Dropout in training (model.md, 11), as whoever runs steps is asked of it. */
#ifndef GDN_PARAMS_DROPOUT_H
#define GDN_PARAMS_DROPOUT_H

#include <stdint.h>

#include "model/params/config.h"

/* Does training drop anything? Then loss_options.masks of a step of a run with this seed. */
bool dropout_on(const struct dropout_config *dropout);
uint64_t dropout_key(uint64_t seed, int64_t step);
/* Does a step of this key leave the layer out as a whole (model.md, 11)? */
bool dropout_leaves_out(const struct model_config *config, uint64_t key, int layer);

#endif
