/* A small model's training state and an optimiser on it, for tests of updates on any number of ranks. */
#ifndef GDN_OPTIMIZER_FIXTURE_H
#define GDN_OPTIMIZER_FIXTURE_H

#include <stdbool.h>

#include "dist/layout/layout.h"
#include "model/params/edges.h"
#include "model/params/find.h"
#include "train/memory/state.h"
#include "train/optimizer/update.h"

enum { STAGE_STEPS = 3 };
static const double decay_left = 0.75;

/* Relative to a weight's size: a few roundings of the number type a step. */
static const double close_enough = sizeof(real) == sizeof(double) ? 1e-14 : 1e-6;

/* But for groups and cautious_decay, which tests set. */
extern struct train_config settings;
/* The same: the small model, whether tensor ranks divide it, or have all of it each, and how they share its
 * connections. */
extern struct model_config sizes;
extern bool split_over_tensor;
extern int delta_split;

/* Two copies of a training state: the program's, and the expected one in double. */
struct fixture {
    struct model_config model;
    struct edges edges;
    struct edge_set active[3]; /* of so many distances */
    struct layout layout;
    struct mesh *mesh;
    struct table table;
    struct shards shards;
    struct state_memory memory;
    struct state state;
    double *w, *m, *v; /* by flat index */
    int64_t *steps;
    bool *owned; /* elements that this rank updates */
    struct optimizer optimizer;
};

void set_up(struct fixture *f, struct mesh *mesh, long bucket);
void tear_down(struct fixture *f);

/* The global norm, and an update with `active` distances. Collective. */
double norm_of(struct fixture *f, int active);
void update(struct fixture *f, int active, double lr, double norm);

/* Gradients of a step, as backward pass and sums leave them: zero for what is inactive, this rank's share of
 * something in other data ranks' parts, which nothing may read. Functions of the element's place in its
 * tensor. Returns the square of all. */
double draw_gradients(struct fixture *f, int step, int active, double size);

#endif
