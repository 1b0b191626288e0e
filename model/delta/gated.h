/* Private to model/delta/: what gates share that multiply δ' itself: c = δ' ⊙ gate, each gate spread over its
 * channels. */
#ifndef GDN_GATED_H
#define GDN_GATED_H

#include "model/delta/private.h"

/* One connection's gate. */
struct gated {
    const real *gate;   /* [T, gates] */
    long gates, column; /* how many, and which of all ranks' is the first */
    double scale;       /* s(d), where it is not inside the gate */
};

/* A row's gate of its i-th connection, and the columns of its contributions that this rank has: those from
 * part.column on, or all. */
struct gated_row {
    struct gated (*gate)(const struct delta_pass *p, int i);
    long columns;
};

/* Does this pass add to the sums, and does this rank count what all ranks compute alike? */
bool gated_measures(const struct delta_pass *p);
bool gated_counts(const struct model *m);
/* δ_i [T, D] in scratch. */
const real *gated_difference(const struct delta_pass *p, int i);

/* The row's scratch (gate.h), if no other: gates as training drops them. */
void gated_lay_out_scratch(struct model *m, long T, long n);
/* The row's contribute (gate.h). */
void gated_contribute(struct delta_pass *p, const struct gated_row *row, bool add, real *out, long ldo,
                      long step);
/* Its backward: from a connection's gate's gradient delta_state.dgate [T, gates], gate_back adds to δ's
 * gradient dd [T, D], to dr, and to k [T], the factor of δ in it. */
void gated_backward(struct delta_pass *p, const struct gated_row *row, const real *dout, long ldo, long step,
                    void (*gate_back)(struct delta_pass *p, int i, real *dd, real *k));

#endif
