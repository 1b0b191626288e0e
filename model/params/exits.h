/* Exits: layers whose outputs the head reads too (model.md, 13). */
#ifndef GDN_EXITS_H
#define GDN_EXITS_H

#include <stdint.h>

#include "model/params/config.h"

/* The number of a layer's exit; −1: it has none. */
int exit_of(const struct model_config *config, int layer);

/* Fills in `weight` [exit->num_layers]: that of each exit's loss in a step of so many, 0 where the step leaves
 * the exit out. */
void exit_weights(const struct exit_config *exit, int64_t step, long steps, double *weight);

/* The part of a training's steps, on the mean, that have an exit at all (rotate), or may have it. */
double exit_share(const struct exit_config *exit);

#endif
