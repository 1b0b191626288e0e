#include "tiny_model.h"

enum { ROWS = 3, WEIGHTS = 6 + 2 + 4, SCALES = 4 };

static const struct moments moments = {2, {"exp_avg", "exp_avg_sq"}};
static struct row rows[ROWS] = {
    {.name = "embed.weight", .ndim = 2, .shape = {3, 2}, .layer = -1},
    {.name = "norm.weight", .ndim = 1, .shape = {2, 1}},
    {.name = "layers.1.delta.1.down.weight", .ndim = 2, .shape = {2, 2}, .transposed = true, .distance = 1},
};
static struct table table = {.rows = ROWS, .row = rows, .total = WEIGHTS};
static real weight[WEIGHTS], exp_avg[WEIGHTS], exp_avg_sq[WEIGHTS];
static int64_t steps[ROWS];
static uint32_t scales[SCALES];
static struct state state = {.weight = weight, .moment = {exp_avg, exp_avg_sq}, .steps = steps};

struct checkpoint_content tiny_model(void) {
    long at = 0;
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &rows[i];
        row->local[0] = row->shape[0], row->local[1] = row->shape[1];
        row->count = row->shape[0] * row->shape[1];
        row->counted = true;
        row->treatment.moments = &moments;
        row->offset = at;
        at += row->count;
        steps[i] = 7 + i;
    }
    for (int i = 0; i < WEIGHTS; i++) {
        weight[i] = (real)0.125 * (real)(i + 1);
        exp_avg[i] = (real)-0.5 * (real)i;
        exp_avg_sq[i] = (real)i;
    }
    for (int i = 0; i < SCALES; i++) scales[i] = 0x3f800000u + (uint32_t)i;
    return (struct checkpoint_content){
        .global = &table, .table = &table, .state = &state, .scales = scales, .num_scales = SCALES};
}
