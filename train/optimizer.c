#include "train/optimizer.h"

#include "model/params.h"

#include <math.h>

double optimizer_norm(const struct optimizer *optimizer, int active) {
    const struct table *table = optimizer->table;
    double sum = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (!params_active(optimizer->model, row, active)) continue;
        sum += optimizer->ops->sum_squares(row->count, optimizer->state->gradient + row->offset);
    }
    return sqrt(sum);
}

void optimizer_step(const struct optimizer *optimizer, int active, double lr, double norm) {
    const struct train_config *train = optimizer->train;
    const struct table *table = optimizer->table;
    struct state *state = optimizer->state;
    bool clip = train->grad_clip > 0 && norm > train->grad_clip;
    double gscale = clip ? train->grad_clip / (norm + 1e-6) : 1; /* 1e-6: as the reference */
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (!params_active(optimizer->model, row, active)) continue;
        double n = (double)++state->steps[i];
        optimizer->ops->adamw(row->count, state->weight + row->offset, state->gradient + row->offset,
                              state->exp_avg + row->offset, state->exp_avg_sq + row->offset, gscale, lr,
                              train->beta1, train->beta2, train->adam_eps,
                              row->decay ? train->weight_decay : 0, 1 - pow(train->beta1, n),
                              1 - pow(train->beta2, n));
    }
}
