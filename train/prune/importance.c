#include "train/prune/importance.h"

#include "train/config/config.h"

#include <math.h>

/* What a loss gains that is not a number, as a number: more than any that is one. */
#define MOST 1e9

static double use(const struct pruning_sums *sums) {
    return sums->gate * sums->contribution;
}

static double times_mix(double average, double mix) {
    return average * mix;
}

static double square(const struct pruning_sums *sums) {
    return sums->effect * sums->effect;
}

static double root(double average, double mix) {
    (void)mix; /* the effect has it */
    return sqrt(average);
}

static double increase(const struct pruning_sums *sums) {
    return sums->effect < MOST ? sums->effect : MOST;
}

static double as_it_is(double average, double mix) {
    (void)mix;
    return average;
}

const struct importance importance_rows[] = {
    [PRUNING_CONTRIBUTION] = {"gate x contribution", .each = true, .newest = 0.02, .measured = use, .importance = times_mix},
    [PRUNING_FIRST_ORDER] = {"first-order effect", .effects = true, .newest = 0.02, .measured = square, .importance = root},
    [PRUNING_LEAVE_ONE_OUT] = {"leave-one-out", .left_out = true, .newest = 0.5, .measured = increase, .importance = as_it_is},
};
