#include "train/optimizer/loss_scale.h"

struct loss_scale loss_scale_start(enum precision precision) {
    bool dynamic = precision == PRECISION_FP16;
    return (struct loss_scale){.dynamic = dynamic, .scale = dynamic ? LOSS_SCALE_START : 1};
}

void loss_scale_resume(struct loss_scale *s, double scale, int64_t good) {
    if (!s->dynamic || scale == 0) return;
    s->scale = scale;
    s->good = good;
}

void loss_scale_good(struct loss_scale *s) {
    if (!s->dynamic || ++s->good < LOSS_SCALE_INTERVAL) return;
    s->good = 0;
    if (s->scale < LOSS_SCALE_MAX) s->scale *= 2;
}

bool loss_scale_lower(struct loss_scale *s) {
    if (!s->dynamic || s->scale <= 1) return false;
    s->scale /= 2;
    s->good = 0;
    return true;
}
