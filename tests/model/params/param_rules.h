/* The rules of layout.h, written down a second time: which rank holds which elements of a tensor, by its
 * name. */
#ifndef GDN_TEST_PARAM_RULES_H
#define GDN_TEST_PARAM_RULES_H

#include "model/params/edges.h"
#include "model/model.h"
#include "model/rules/rules.h"
#include "model/params/find.h"
#include "model/table/params.h"

/* What a tensor's name says. */
struct named {
    int layer, distance; /* −1: none */
    const char *leaf;
};

struct named parse(const char *name);

enum { MAX_STAGES = 8 };

/* A mesh under test, and what the routes say about it. */
struct bench {
    const struct model_config *model;
    struct layout layout; /* of whichever rank is looked at */
    struct span stage[MAX_STAGES];
    struct edges edges;
    struct routes routes;
    const struct table *global;
    const real *weights; /* of the whole model, to compare with; NULL: not compared */
    long projected;      /* rows that were found on two ranks because one projects for the other */
};

/* The pipeline ranks that hold a tensor, as bits. */
uint64_t owners(const struct bench *b, struct named n);

/* The elements of a tensor that a rank should hold: rows and columns [first, end). */
struct box {
    long first[2], end[2];
};

/* What tensor rank t of pipeline rank p should hold of it. */
struct box expected(const struct bench *b, const struct row *global, int t, int p);

/* Whether its gradient is to be summed over the tensor ranks. */
bool expected_partial(const struct bench *b, const struct row *row);

#endif
