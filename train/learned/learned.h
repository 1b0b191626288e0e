/* What rules between layers have learned, by layer and source: of each of their tensors one figure. */
#ifndef GDN_LEARNED_H
#define GDN_LEARNED_H

#include <stdbool.h>

#include "dist/layout/table.h"
#include "train/plot/plot.h"

enum { LEARNED_OWN = -2 }; /* in place of a source: the tensor is the layer's own, or that of all its connections */

struct learned_value {
    int layer;
    int source; /* a layer, −1: the embedding; or LEARNED_OWN */
    double value;
};

/* A tensor's values in all layers, from the lowest on, and of each from the farthest source on. */
struct learned {
    char name[64]; /* "dense.value.weight": the rule's name and what its tensor is called */
    bool number;   /* a value is the tensor's only number; else the root mean square of its numbers */
    bool own;      /* all are LEARNED_OWN */
    struct learned_value *value; /* [count] */
    int count;
};

struct learned_set {
    int layers; /* of the model */
    int count;
    struct learned *learned; /* [count] in the order in which the table has them first; NULL where no rule learns anything */
};

/* Of a table of the whole model with `weight` [table->total] on the host. Free with learned_free, after success and failure
 * alike. Not collective. GDN_INTERNAL without memory. */
int learned_read(const struct table *table, const real *weight, int layers, struct learned_set *out);
void learned_free(struct learned_set *set);

/* Draws a map of layers and sources for each that has sources, and a curve over layers for each that is a layer's own; `title`
 * stands above them. Fails as plot_draw. */
int learned_draw(const struct learned_set *set, const char *title, const char *path);

#endif
