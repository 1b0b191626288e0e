/* Who works on a tensor that is updated as a whole matrix (table.h, treatment.whole): one data rank each, so
 * that all have about as much to do. */
#ifndef GDN_DEAL_H
#define GDN_DEAL_H

#include "dist/layout/table.h"

struct dealt {
    int row;   /* of the table */
    int owner; /* data rank */
    double cost;
    bool active; /* takes part: whoever uses the list says so */
};

struct deal {
    int count;
    struct dealt *item; /* [count] in the same order on all data ranks */
};

/* Deals a table's whole matrices to `data` ranks: the costliest first, each to the rank that has least so
 * far. What is split over the tensor axis has the same owner on all tensor ranks: it comes before what is
 * not. `cost` is asked with the tensor's shape. Not collective. GDN_INTERNAL without memory. deal_free. */
int deal_create(const struct table *table, int data, double (*cost)(long rows, long columns),
                struct deal *out);
void deal_free(struct deal *deal);

/* Is the rank's part of it less than all? */
bool deal_is_split(const struct row *row);

#endif
