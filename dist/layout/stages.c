/* Cutting the layers into stages, by dynamic programming from the end: best(l, s) is the least value of
 * layers l, l + 1, … in s stages, O(layers² · stages) in all. It is done twice: the greatest sum of a stage
 * is made least; then, among the cuts that reach it, the sum of squares, so that stages which do not decide
 * are even too. */
#include "dist/layout/stages.h"
#include "kernels/base/status.h"

#include <float.h>
#include <stdlib.h>

/* Values nearer than this are equal but for rounding. */
static const double EQUAL = 1e-12;

struct cut {
    int layers, stages;
    const double *cost;
    double first, last;
    double bound; /* greatest sum that a stage may have; 0 while it is looked for */
    double *best; /* [stages + 1, layers + 1] best(l, s) at s·(layers + 1) + l */
};

static double *best(const struct cut *c, int layer, int stages) {
    return &c->best[(size_t)stages * (size_t)(c->layers + 1) + (size_t)layer];
}

/* What the first and last stage have besides layers, for a stage that `after` others follow. */
static double extra(const struct cut *c, int after) {
    return (after == c->stages - 1 ? c->first : 0) + (after == 0 ? c->last : 0);
}

/* The value of a stage of this sum before stages of value `rest`. */
static double join(const struct cut *c, double sum, double rest) {
    if (c->bound == 0) return sum > rest ? sum : rest;
    return sum > c->bound ? DBL_MAX : sum * sum + rest;
}

/* The least value of layers `layer` … in `stages` stages, and *end of the first of these, the lowest of
 * equals. */
static double solve(const struct cut *c, int layer, int stages, int *end) {
    double min = DBL_MAX, sum = extra(c, stages - 1);
    *end = layer + 1;
    for (int e = layer + 1; e <= c->layers - (stages - 1); e++) {
        sum += c->cost[e - 1];
        if (c->bound == 0 ? sum >= min : sum > c->bound) break; /* and longer stages are no better */
        if (stages == 1 && e < c->layers) continue;
        double value = join(c, sum, *best(c, e, stages - 1));
        if (value < min * (1 - EQUAL)) min = value, *end = e;
    }
    return min;
}

/* Fills `best` and returns the whole's value. */
static double solve_all(const struct cut *c) {
    int end;
    *best(c, c->layers, 0) = 0;
    for (int s = 1; s <= c->stages; s++)
        for (int l = c->stages - s; l <= c->layers - s; l++) *best(c, l, s) = solve(c, l, s, &end);
    return *best(c, 0, c->stages);
}

int stages_cut(int layers, const double *cost, double first, double last, int stages, struct span *out) {
    if (layers < stages)
        return gdn_fail(
            GDN_INPUT,
            "model.num_layers is %d, but mesh.pipeline x mesh.interleave make %d stages of at least "
            "one layer each",
            layers, stages);
    if (stages == 1) {
        out[0] = (struct span){0, layers};
        return 0;
    }
    struct cut c = {.layers = layers, .stages = stages, .cost = cost, .first = first, .last = last};
    c.best = calloc((size_t)(stages + 1) * (size_t)(layers + 1), sizeof *c.best);
    if (!c.best) return gdn_fail(GDN_INTERNAL, "out of memory for cutting %d layers", layers);
    c.bound = solve_all(&c) * (1 + EQUAL);
    solve_all(&c);
    for (int s = 0, layer = 0; s < stages; s++) {
        out[s].first = layer;
        solve(&c, layer, stages - s, &layer);
        out[s].end = layer;
    }
    free(c.best);
    return 0;
}
