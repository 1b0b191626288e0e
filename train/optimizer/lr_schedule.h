/* Schedules of the learning rate and of weight decay. Every one is a function of the step, and with
 * warmup_tokens of the tokens consumed, so a resumed run continues on it exactly (model.md, 6).
 *
 * With k the 0-based step, W warmup_steps, N steps, r min_lr_ratio, and x = min(1, (k − W) / max(1, N − W)):
 *
 *   k < W      lr · (k + 1) / W                                       every schedule warms up linearly
 *   cosine     lr · (r + (1 − r) · ½ · (1 + cos πx))                  Loshchilov & Hutter 2017, one cycle
 *   linear     lr · (1 − (1 − r) · x)
 *   constant   lr
 *   wsd        lr until D = max(W, N − ⌈fN⌉), f decay_fraction; then, with z = min(1, (k − D) / (N − D)),
 *              lr · (1 − (1 − r) · z), or with decay_shape sqrt lr · (1 − (1 − r) · √z):
 *              warm-up, stable, decay (Hu et al., MiniCPM, 2024; √: Hägele et al. 2024)
 *
 * cosine, linear and wsd would reach r·lr at step N, one past the last. With warmup_tokens V > 0, W is 0 and
 * what the schedule says is multiplied by min(1, tokens / V): batches of other sizes change nothing else. */
#ifndef GDN_LR_SCHEDULE_H
#define GDN_LR_SCHEDULE_H

#include "train/config/config.h"

/* The learning rate of a step (0-based); `tokens` consumed so far, its own included. */
double learning_rate(const struct train_config *train, long step, int64_t tokens);

/* The part of weight decay that is left at a step: 1, or with train.decay_schedule linear 1 − k/N, and 0 from
 * step N on. */
double decay_left(const struct train_config *train, long step);

#endif
