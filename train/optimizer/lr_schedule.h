/* Schedules of the learning rate and of weight decay. Every one is a function of the step alone, so a resumed run continues on it
 * exactly.
 *
 * With k the 0-based step, W warmup_steps, N steps, r min_lr_ratio, and x = min(1, (k − W) / max(1, N − W)):
 *
 *   k < W      lr · (k + 1) / W                                       every schedule warms up linearly
 *   cosine     lr · (r + (1 − r) · ½ · (1 + cos πx))                  Loshchilov & Hutter 2017, one cycle
 *   linear     lr · (1 − (1 − r) · x)
 *   constant   lr
 *   wsd        lr until D = max(W, N − ⌈N/5⌉), then lr · (1 − (1 − r) · (k − D) / (N − D)):
 *              warm-up, stable, decay over the last fifth (Hu et al., MiniCPM, 2024)
 *
 * cosine, linear and wsd would reach r·lr at step N, one past the last. */
#ifndef GDN_LR_SCHEDULE_H
#define GDN_LR_SCHEDULE_H

#include "train/config/config.h"

/* The learning rate of a step (0-based). */
double learning_rate(const struct train_config *train, long step);

/* The part of weight decay that is left at a step: 1, or with train.decay_schedule linear 1 − k/N, and 0 from
 * step N on. */
double decay_left(const struct train_config *train, long step);

#endif
