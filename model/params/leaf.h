/* A leaf: one tensor that a row of a table (a gate, an aggregate, a token mixer) brings to its layer, or to
 * each connection into it. The parameter table, initial weights and whoever looks for the tensor work from
 * leaves. */
#ifndef GDN_LEAF_H
#define GDN_LEAF_H

#include <math.h>
#include <stdbool.h>

#include "dist/layout/table.h"

struct leaf {
    const char *name;    /* below its layer ("self_attn.q_proj.weight") or connection ("gate_in.weight") */
    enum split split;    /* over tensor ranks, where each has a part of the channels */
    long out, in;        /* [out, in] as on disk, or [out] where in is 0 */
    double width, value; /* at the start N(0, width); where width is 0 the same value everywhere */
    bool decays;         /* under weight decay */
    /* What a kind of tensor brings unless the configuration's groups say otherwise; 0: as for all. */
    double lr_scale;     /* times the learning rate */
    double weight_decay; /* where it decays */
    int heads;           /* of attention, whose channels its rows are; 0: none */
    bool elementwise;    /* updated element by element, also where an optimiser takes matrices as wholes */
    bool joined;         /* right behind the leaf before it in memory: one product reads both */
    bool transposed;     /* [in, out] in memory */
    bool partial;        /* of one that tensor ranks hold whole: each has terms of its gradient's sum, not all of it */
    bool projects;       /* multiplies sources: a rank that does so for another stage needs it too */
};

/* A matrix that starts as N(0, width). */
static inline struct leaf leaf_matrix(const char *name, enum split split, long out, long in, double width) {
    return (struct leaf){.name = name, .split = split, .out = out, .in = in, .width = width, .decays = true};
}
/* [n] that starts as `value` everywhere. */
static inline struct leaf leaf_vector(const char *name, enum split split, long n, double value) {
    return (struct leaf){.name = name, .split = split, .out = n, .value = value};
}

/* The width that matrices start with (model.md, 7). */
#define LEAF_WIDTH 0.02
/* The same of projections that end in the residual stream, which 2·num_layers of them add to. */
static inline double leaf_output_width(int num_layers) {
    return LEAF_WIDTH / sqrt(2.0 * num_layers);
}

#endif
