/* Who works on a tensor that is updated as a whole matrix (table.h, treatment.whole), so that all ranks of a
 * stage have about as much to do: one copy each, and of its tensor ranks one, too, where they hold parts
 * of the matrix, or all of it, which would be the same work for each. */
#ifndef GDN_DEAL_H
#define GDN_DEAL_H

#include "dist/layout/table.h"

/* What belongs to a row of the table that begins a matrix. */
struct matrix_shape {
    int tensors;        /* the row and those behind it that are joined to it; 0: it begins no matrix */
    long parts;         /* matrices that one copy gets at once: heads, of this rank's part of the tensor */
    long rows, columns; /* of each, as the tensors' on disk: global, but for heads */
    bool split;         /* put together from the tensor ranks' parts */
    bool copied;        /* all tensor ranks have the same */
};

struct matrix_shape deal_shape(const struct table *table, int row);

enum { ALL_TENSOR_RANKS = -1 };

struct dealt {
    int row;    /* of the table, and those joined to it */
    int owner;  /* copy */
    int tensor; /* tensor rank, the same on all of them; ALL_TENSOR_RANKS: each on what it has */
    double cost;
    bool active; /* takes part: whoever uses the list says so */
};

struct deal {
    int count;
    struct dealt *item; /* [count] in the same order on all copies */
    int tensor;         /* ranks */
    int *turn; /* [tensor] in a round the place in the list of what that tensor rank works on; count: nothing
                */
};

typedef double deal_cost(const void *context, long rows, long columns);

/* Ranks of the axes that matrices are dealt over, and the tensor rank whose table it is. */
struct deal_ranks {
    int copies, tensor, tensor_index;
};

/* Deals a table's whole matrices: the costliest first, each to the rank that has least so far; before all
 * others those that go to one tensor rank, so that all of these come to the same. What all tensor ranks have
 * does where what the others are spared is worth the message that brings them the result. `cost`, in
 * operations, is asked with `context` and the matrix' shape. Not collective. GDN_INTERNAL without memory.
 * deal_free. */
int deal_create(const struct table *table, const struct deal_ranks *ranks, deal_cost *cost,
                const void *context, struct deal *out);
void deal_free(struct deal *deal);

/* What the tensor ranks of a copy do in turns, one matrix each in a round, of those that are active:
 * deal_rewind, then deal_round until it returns false. */
void deal_rewind(struct deal *deal);
bool deal_round(struct deal *deal, int copy);

#endif
