#include "train/optimizer/lr_schedule.h"

#include <math.h>

static double min(double a, double b) {
    return a < b ? a : b;
}

/* Falls on a straight line from lr at x = 0 to min_lr_ratio·lr at x = 1. */
static double falling(const struct train_config *train, double x) {
    return train->lr * (1 - (1 - train->min_lr_ratio) * x);
}

double decay_left(const struct train_config *train, long step) {
    if (train->decay_schedule == DECAY_CONSTANT) return 1;
    return 1 - min(1, (double)step / (double)train->steps);
}

/* Where the decay of wsd begins. A fraction such as 0.2, which has no exact double, must not add a step. */
static long decay_start(const struct train_config *train, long warmup) {
    long start = train->steps - (long)ceil(train->decay_fraction * (double)train->steps * (1 - 1e-12));
    return start > warmup ? start : warmup;
}

static double after_warmup(const struct train_config *train, long step, long warmup) {
    long steps = train->steps, span = steps > warmup ? steps - warmup : 1;
    double x = min(1, (double)(step - warmup) / (double)span);
    switch ((enum lr_schedule)train->schedule) {
    case LR_CONSTANT:
        return train->lr;
    case LR_LINEAR:
        return falling(train, x);
    case LR_WSD: {
        long decay_from = decay_start(train, warmup);
        if (step <= decay_from) return train->lr;
        double z = min(1, (double)(step - decay_from) / (double)(steps - decay_from));
        return falling(train, train->decay_shape == WSD_SQRT ? sqrt(z) : z);
    }
    case LR_COSINE:
        break;
    }
    double cosine = 0.5 * (1 + cos(3.14159265358979323846 * x));
    return train->lr * (train->min_lr_ratio + (1 - train->min_lr_ratio) * cosine);
}

double learning_rate(const struct train_config *train, long step, int64_t tokens) {
    long warmup = train->warmup_steps;
    if (train->warmup_tokens)
        return after_warmup(train, step, 0) * min(1, (double)tokens / (double)train->warmup_tokens);
    if (step < warmup) return train->lr * (double)(step + 1) / (double)warmup;
    return after_warmup(train, step, warmup);
}
