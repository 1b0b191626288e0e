/* The aggregates that only sum (model.md, 4): `learned`, by each connection's `mix`, and `mean`. */
#include "model/delta/aggregate.h"

static real even(int all) {
    return (real)1 / (real)all;
}

const struct aggregate aggregate_learned = {.name = "learned", .mix = true};
const struct aggregate aggregate_mean = {.name = "mean", .share = even};
