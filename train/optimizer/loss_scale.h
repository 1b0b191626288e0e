/* Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training", 3.2). fp16 has no numbers
 * between 0 and 6e-8, so that small gradients would be lost on their way through its matrix products. They
 * are therefore computed of scale · loss, and divided by the scale where they are used. A scale that is too
 * large shows in a gradient norm that is not finite: that step updates nothing and the scale is halved. After
 * many good steps it is doubled.
 *
 * Scales are powers of two, which change no digit of a gradient in range. Every rank has the same norm and so
 * the same scale. It is a part of the training state, saved in checkpoints. In other precisions, whose
 * exponents reach as far as float's or have scales of their own (fp8), it is 1 for good. */
#ifndef GDN_LOSS_SCALE_H
#define GDN_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/ops.h"

/* Start and interval as common implementations of the paper's rule have them (apex, torch.amp.GradScaler). */
#define LOSS_SCALE_START 65536.0
#define LOSS_SCALE_MAX 16777216.0
enum { LOSS_SCALE_INTERVAL = 2000 };

struct loss_scale {
    bool dynamic;
    double scale;
    int64_t good; /* steps in a row that were updated with this scale */
};

struct loss_scale loss_scale_start(enum precision precision);

/* Goes on with what a checkpoint has: scale 0, where the run that saved it had none, changes nothing, and
 * neither does any where the precision needs none. */
void loss_scale_resume(struct loss_scale *s, double scale, int64_t good);

/* After a step with a finite gradient norm: the scale of the next. */
void loss_scale_good(struct loss_scale *s);

/* The scaled gradients are not finite: halves the scale, for which the step is to be skipped. False, with
 * nothing changed, where that would not help: the scale is 1 already. */
bool loss_scale_lower(struct loss_scale *s);

#endif
