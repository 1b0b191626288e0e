/* Low-rank factors of matrices, X [T, D] ≈ U diag(sigma) Vt: by a randomised range finder with oversampling
 * and power iterations (Halko, Martinsson & Tropp 2011), LAPACK doing the QR and the small SVD; and by
 * LAPACK's full SVD, the reference. Everything lies in the host's memory: `ops` is a backend of the host's.
 * All memory comes from the caller's arena, so that it can be planned; calls allocate nothing. What is random
 * is a function of the seed and the place. */
#ifndef GDN_LOWRANK_H
#define GDN_LOWRANK_H

#include <stdint.h>

#include "kernels/base/arena.h"
#include "kernels/ops.h"

enum {
    LOWRANK_OVERSAMPLE = 10, /* columns of the sketch beyond the rank, where the matrix has so many */
    LOWRANK_POWER = 2,       /* power iterations, each orthonormalised */
};

/* Processes of which each has T rows of a matrix [size·T, D]. Calls are made by all of them in the same
 * order. */
struct lowrank_peers {
    int size, index;                              /* their number, 2 or more; this one */
    void *with;                                   /* the first argument of what follows */
    void (*sum)(void *with, real *x, long count); /* of all peers' x, to the same bits on all */
    /* x [rows, width] of all become out [rows, size·width], side by side in their order. */
    void (*gather)(void *with, const real *x, long rows, long width, real *out);
};

/* Scratch for matrices of up to [T, D] and factors of up to `rank`. */
struct lowrank {
    const struct ops *ops;
    long T, D, rank;
    const struct lowrank_peers *peers; /* NULL: x is whole here */
    /* the rest is private to lowrank/ */
    bool full;            /* lowrank_full may be called: needs a copy of the matrix and more */
    real *sketch, *basis; /* [k, T], [k, D] with k columns of a sketch */
    real *triangle, *left, *sigma, *right; /* the small matrix and its SVD, or x's own */
    real *rows;                            /* some rows of x */
    real *beside, *turned; /* with peers: [k, size·min(k, T)] what all have, side by side; [k, T] */
    real *copy;                            /* all of x, for its own SVD */
    real *tau, *work;                      /* of LAPACK */
    int *integers;
    long work_count;
};

/* Takes the scratch from the arena: called once while it counts, once when it has memory
 * (kernels/base/arena.h). */
void lowrank_lay_out(struct lowrank *w, struct arena *arena, const struct ops *ops, long T, long D, long rank,
                     bool full);
/* The same for lowrank_split alone, of matrices whose rows are divided: T of them are here, and `rank` is at
 * most min(size·T, D). `peers` stays the caller's; NULL: not divided. */
void lowrank_lay_out_divided(struct lowrank *w, struct arena *arena, const struct ops *ops, long T, long D,
                             long rank, const struct lowrank_peers *peers);

/* The factors; buffers are the caller's, with room for `rank` as asked for (lowrank_to: for w->rank). */
struct factors {
    long T, D, rank;
    real *u, *sigma, *vt; /* [T, rank], [rank], [rank, D], each contiguous; sigma falls */
    double norm;          /* ‖X‖, Frobenius */
    double error; /* ‖X − U diag(sigma) Vt‖ / ‖X‖, to a thousandth or a rounding; 0 where X is 0 */
};

/* The rank that is `ratio` of the smaller side: at least 1, at most that side. */
long lowrank_of_ratio(long T, long D, double ratio);

/* Fills `out` with factors of x [T, D] of the given rank. Not collective. GDN_INPUT where x has elements that
 * are NaN or infinite, in these words, or a norm above 1e33 (double: 1e150), or where the rank is below 1 or
 * above the smaller side; GDN_INTERNAL where LAPACK does not converge, or the scratch is for less. x is not
 * changed. */
int lowrank_factor(struct lowrank *w, long T, long D, const real *x, long rank, uint64_t seed,
                   struct factors *out);

/* The same of the least rank up to w->rank whose error is at most `tolerance`; of w->rank where none is: look
 * at out->error. */
int lowrank_to(struct lowrank *w, long T, long D, const real *x, double tolerance, uint64_t seed,
               struct factors *out);

/* The same by LAPACK's SVD of all of x: the best that any factors of that rank can be (Eckart & Young 1936).
 * `spectrum` (NULL: not wanted) [min(T, D)] takes all singular values. */
int lowrank_full(struct lowrank *w, long T, long D, const real *x, long rank, real *spectrum,
                 struct factors *out);

/* x [T, D] = U diag(sigma) Vt. `scaled` [T, rank] is scratch. The same bits for the same factors and number
 * of threads. */
void lowrank_expand(const struct ops *ops, const struct factors *factors, real *scaled, real *x);

/* For what is only kept or sent for a while: x ≈ q·b with q [T, rank] orthonormal columns, b [rank, D] = qᵀx,
 * by one power iteration and no oversampling or SVD. Always finite work; where x is not finite, neither is b.
 * lowrank_join: x = q·b. Where rank is the smaller side, x comes back but for rounding. Of divided rows q has
 * those that are here, and b has the same bits on all peers: but for rounding, and the order of rows, the
 * factors of the whole. Collective over them then. */
void lowrank_split(struct lowrank *w, long T, long D, const real *x, long rank, uint64_t seed, real *q,
                   real *b);
/* The calls of peers that it makes, without buffers, for plans; none where that is NULL. Each hands over as
 * much as the others. And the most elements that one of them sums. */
void lowrank_split_planned(const struct lowrank_peers *peers, long T, long D, long rank);
long lowrank_split_longest(int peers, long T, long D, long rank);
void lowrank_join(const struct ops *ops, long T, long D, long rank, const real *q, const real *b, real *x);

#endif
