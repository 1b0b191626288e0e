/* Who works on a tensor that is updated as a whole matrix (table.h, treatment.whole): one data rank each, so
 * that all have about as much to do. */
#ifndef GDN_DEAL_H
#define GDN_DEAL_H

#include "dist/layout/table.h"

/* What belongs to a row of the table that begins a matrix. */
struct matrix_shape {
    int tensors; /* the row and those behind it that are joined to it; 0: it begins no matrix */
    long parts;  /* matrices that one data rank gets at once: heads, of this rank's part of the tensor */
    long rows, columns; /* of each, as the tensors' on disk: global, but for heads */
    bool split;         /* put together from the tensor ranks' parts */
};

struct matrix_shape deal_shape(const struct table *table, int row);

struct dealt {
    int row;   /* of the table, and those joined to it */
    int owner; /* data rank */
    double cost;
    bool active; /* takes part: whoever uses the list says so */
};

struct deal {
    int count;
    struct dealt *item; /* [count] in the same order on all data ranks */
};

typedef double deal_cost(const void *context, long rows, long columns);

/* Deals a table's whole matrices to `data` ranks: the costliest first, each to the rank that has least so
 * far. What is split over the tensor axis has the same owner on all tensor ranks: it comes before what is
 * not. `cost` is asked with `context` and the matrix' shape. Not collective. GDN_INTERNAL without memory.
 * deal_free. */
int deal_create(const struct table *table, int data, deal_cost *cost, const void *context, struct deal *out);
void deal_free(struct deal *deal);

#endif
