/* Which parts of which datasets a rank writes, or reads: the rank's pieces (shard.h) as rectangles of the
 * tensors' global shapes. Private to dist/. */
#ifndef GDN_CHECKPOINT_PARTS_H
#define GDN_CHECKPOINT_PARTS_H

#include "dist/checkpoint/checkpoint.h"
#include "dist/layout/rows.h"

/* A dataset of reals: all of a tensor's weights, or all of one of its moments. */
struct dataset {
    int row;    /* of the global table */
    int moment; /* −1: weights */
};

struct part {
    int dataset;
    struct rectangle where;
    real *memory; /* of its run */
    bool counts;  /* this rank's checksum has it; of those who read the same elements, one does */
};

struct parts {
    const struct table *global;
    int rows;     /* of `global` */
    bool moments; /* there are moments, and with them step counts; else weights alone */
    int datasets; /* weights by row, then the first moments of those that have one, the second … */
    struct dataset *dataset; /* [datasets] */
    int *number; /* [1 + MOMENTS, rows] of the dataset, by 1 + moment and row; −1: there is none */
    int *row;    /* [table->rows] row of `global` of each of the rank's */
    int count;
    struct part *part; /* by dataset; those of one dataset by place */
};

enum parts_use {
    PARTS_WRITTEN, /* a partition of the model among the ranks: every element is in one rank's parts */
    PARTS_READ,    /* everything that the rank holds */
};

/* Lists the parts of this rank. Not collective. GDN_INTERNAL where a tensor of the rank's table is not in the
 * global one, has another shape there, or memory is short. parts_free. */
int parts_create(const struct mesh *mesh, const struct checkpoint_content *content, enum parts_use use,
                 struct parts *out);
void parts_free(struct parts *parts);

/* The name of a dataset under the group's; and its row in `global`. */
void parts_name(const struct parts *parts, int dataset, char name[ROWS_NAME]);
const struct row *parts_row(const struct parts *parts, int dataset);

/* What is done with rows [first, first + n) of a part's rectangle, in `buffer` [n, size[1]]. Returns a
 * status. */
typedef int parts_take(void *context, const struct part *part, long first, long n, const real *buffer);

/* Packs all parts block by block. Not collective. GDN_INTERNAL without memory; what `take` returned. */
int parts_each(const struct parts *parts, parts_take *take, void *context);

#endif
