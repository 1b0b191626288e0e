/* The randomised range finder, and what all factorisations share. Private to lowrank/. */
#ifndef GDN_RANGE_H
#define GDN_RANGE_H

#include "kernels/lowrank/lowrank.h"

/* Σ x² of n elements. */
static inline double squares_of(const struct ops *ops, long n, const real *x) {
    double sum = 0;
    ops->add_squares(0, n, n, x, &sum);
    return sum;
}

enum { LOWRANK_ROWS = 128 }; /* of x at a time where an error is measured */

/* Rows of w->sketch [k, T] become an orthonormal basis of nearly the space of x's k largest left singular
 * vectors, by a sketch of x with k random vectors and `power` power iterations. k ≤ min(T, D), of divided
 * rows min(size·T, D). Uses w->basis [k, D]. */
void range_find(struct lowrank *w, long T, long D, const real *x, long k, int power, uint64_t seed);

/* out [k, D] = w->sketch [k, T] · x, over all peers' rows, by way of w->basis, which has room for range_even
 * of that: so many elements are summed that each peer hands over as many as the others. */
void range_project(struct lowrank *w, long T, long D, const real *x, long k, real *out);
long range_even(int peers, long count);

/* Refuses x as lowrank_factor does, else begins `out` with its sizes and norm. */
int factors_begin(const struct ops *ops, long T, long D, const real *x, long rank, struct factors *out);

/* Ends `out` with its error. `scaled` [T, rank] is scratch. */
void factors_end(struct lowrank *w, const real *x, real *scaled, struct factors *out);

#endif
