/* The operations as rows: what a program needs that calls each of them by itself, on made-up numbers, such as
 * the tests of backends and the benchmark. Both rows and members of `struct ops` follow from the same lists,
 * trunk_operations.h and delta_operations.h, with an entry for each operation:
 *
 *     OPERATION(add_scaled_rows,                                    its name,
 *               (long T, long D, const real *c, const real *x, real *y),  parameters,
 *               0,                                                  arithmetic that the count adds, of these;
 *               (T, D, IN(c, T), IN(x, T * D), INOUT(y, T * D)),    a call at `struct sizes`,
 *               1, ANY_THREADS,                                     what backends may differ by,
 *               .timed = "add_scaled_rows")                         and what else a row has
 *
 * In a call, IN is a buffer that is read, OUT one that is overwritten, INOUT both, SCRATCH one that is left
 * with whatever; each has a name, a number of elements, and where that is not −1 to 1 the range of the
 * numbers in it. PART(x, count, touched) is one of which calls read and write `touched` elements in all.
 * Others are TOKENS(x, count, below), integers below `below`; TARGETS, of which some are −1 (the benchmark's
 * are not); CODES(x, count), numbers of bf16; BITS(x, bytes), whose bytes are the same on every backend;
 * SUMS_OF_REALS and SUMS_OF_DOUBLES, sums in double of numbers that were formed so; and on the host
 * HOST_LIST(x, count), of reals, and HOST_ROWS(x, rows, count), a list of buffers that are read;
 * HOST_ROWS_OUT; HOST_ROWS_INOUT. EITHER(k, a, b) is `a` or, where bit k of the variant is set, `b`. The
 * benchmark times variant 0. */
#ifndef GDN_OPERATIONS_H
#define GDN_OPERATIONS_H

#include "kernels/ops.h"

/* B sequences of S positions are T = B·S tokens. D is divided by G and by `heads`, and n is at most
 * OPS_CONNECTIONS. */
struct sizes {
    long B, S, D, F, V;      /* trunk: D hidden size, F of the MLP, V vocabulary */
    long H, K, hd;           /* attention: query and key/value heads and their width */
    long G, n, Hd, a, heads; /* delta: gates, connections, bottleneck, selection, mixing heads */
};

/* A call's argument that is a pointer. */
struct argument {
    const char *name; /* the same pointer in every call of one operation */
    enum { READ, WRITTEN, READ_AND_WRITTEN, LEFT, PARTLY } access;
    enum { REALS, INTEGERS, BF16S, SAME_BITS, REALS_SUMS, DOUBLES_SUMS, LIST_ON_HOST, ROWS_ON_HOST } kind;
    long count;       /* elements; of SAME_BITS bytes; of ROWS_ON_HOST in each row */
    double low, high; /* both 0: −1 to 1; of INTEGERS low: the least, high: below which */
    long touched;     /* of PARTLY elements, read plus written; of ROWS_ON_HOST rows */
};

/* What calls an operation without a model. */
struct caller {
    struct sizes sizes;
    unsigned variant;
    unsigned variants; /* a call leaves here how many there are, where that is more */
    /* The memory of an argument, asked in every call, in any order. */
    void *(*take)(struct caller *, const struct argument *);
};

/* What backends promise: the same bits for every number of threads, or only for one number. */
enum promise { ANY_THREADS, SAME_THREADS };

struct operation {
    const char *name;
    bool delta; /* of the delta connections, else of the trunk */
    /* Calls it with the caller's arguments. Returns of how many terms of order 1 its longest sums are. */
    long (*call)(const struct ops *, struct caller *);
    bool (*has)(const struct ops *); /* whether a table has it */
    enum promise promise;
    const char *timed; /* its row in the benchmark, or NULL */
    bool host;         /* tables of devices other than the host lack it */
    double again;      /* what it does beyond the arithmetic counted, as a part of that */
};

extern const struct operation operations[];
extern const int operations_count;

/* The name of the first operation that a table leaves empty and should have, or NULL. */
const char *ops_missing(const struct ops *ops);

#endif
