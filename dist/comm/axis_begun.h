/* Sums over an axis that travel while other work is done: a product that gives terms is computed in pieces
 * of rows, and the sum of one piece is under way while the next is multiplied (mesh.tensor_pieces).
 *
 * Sums may begin one after the other; an end is for all of them. Each goes through two exchanges, of terms
 * and of sums, and there is one of each under way at a time: beginning a sum takes those before it a step
 * further. Results are those of axis_sum, to the bit: a function of terms and ranks alone. Between the first
 * beginning and the end no other call of the axis may be made. A rank whose pieces go through host memory
 * (staging) cannot begin sums.
 *
 * Collective over the axis, and nothing on an axis of one rank. Failures are the axis's, as in axis.h. */
#ifndef GDN_AXIS_BEGUN_H
#define GDN_AXIS_BEGUN_H

#include "dist/comm/axis.h"

/* Sums that axis_sum_begin has room for are of at most this many elements. After axis_reserve. */
long axis_begun_max(const struct axis *axis);

/* The terms x [count] of this rank are handed over; nobody touches them until the end, after which they are
 * the sum. */
void axis_sum_begin(struct axis *axis, real *x, long count);
/* All that has begun is there. */
void axis_sum_end(struct axis *axis);

#endif
