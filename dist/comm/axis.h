/* One axis of the mesh: the ranks that differ in one coordinate alone, and the sums and gathers over them.
 *
 * Sums add in rank order, ((x₀ + x₁) + x₂) + …, for every element, whatever the call and however the data are
 * cut: a result is a function of its terms and their ranks alone. They are exchanged, and added by the
 * backend's add_parts, as maxima are made by its max_parts.
 *
 * Buffers lie in the memory of the axis's device (`ops`); doubles are the host's. From a device, terms go
 * through host memory and MPI, for which a call waits, or over the axis's device communicator
 * (kernels/base/device_comm.h), for which only the device waits. Either way later operations find the result.
 * dist/mesh/mesh.h, mesh_use, sets this up; an axis begins on the host.
 *
 * Sums of activations, and gathers, travel in the axis's wire type (kernels/base/wire.h). In bf16 every term
 * is rounded when it is handed over, a rank's own like the others'; terms are added as `real`, and sums
 * rounded once more where they are handed to all. So results are still functions of terms and ranks alone,
 * and the same on all ranks. axis_sum_exact, maxima and doubles are never rounded.
 *
 * Calls do not return a status, so that the model's passes need not check each: the first failure is recorded
 * (status.h) and kept in `status`; later calls on the axis do nothing. Whoever runs the passes looks at it.
 *
 * All calls are collective over the axis, and do nothing (but copy) on an axis of one rank. `bytes` counts
 * what this rank has handed over for other ranks. By formula, for n elements over p ranks, of which rank r
 * has the part part(n, r) = n·(r+1)/p − n·r/p (integer division): a sum of parts sends n − part(n, r)
 * elements, a gather (p − 1)·part(n, r), a sum both; what is gathered whole (columns, doubles, the terms of a
 * maximum) counts (p − 1) times, and so does a part of an all-to-all. For rows x width, part counts rows. An
 * element has the bytes of its type. axis_formula_… give these to the plan; the calls themselves count what
 * they hand to MPI.
 *
 * A planned axis has a size but no MPI: every call on it only adds to `bytes`, by formula, and touches no
 * buffer. */
#ifndef GDN_AXIS_H
#define GDN_AXIS_H

#include <mpi.h>
#include <stdint.h>

#include "kernels/base/status.h"
#include "kernels/base/device_comm.h"
#include "kernels/base/wire.h"
#include "kernels/ops.h"

struct staging;    /* dist/comm/staging.h */
struct axis_begun; /* dist/comm/axis_begun.h */
struct axis_ring;  /* dist/comm/axis_ring.h */

struct axis {
    const char *name; /* "data", "tensor", "pipeline" */
    int index, size;  /* this rank's place on it; its length */
    MPI_Comm comm;    /* MPI_COMM_NULL on an axis that never met MPI: of one rank, or planned */
    int status;       /* of the first call that failed */
    int64_t bytes;    /* payload handed over for other ranks so far */
    int64_t calls;    /* sums, gathers and messages sent so far */
    double seconds;   /* spent inside calls so far: exposed communication */

    enum wire wire; /* of activations; WIRE_STORED until somebody says otherwise (model_create) */

    const struct ops *ops;           /* of the device that the buffers lie on */
    struct staging *staging;         /* the mesh's; NULL: MPI takes the buffers as they are */
    struct device_comm *device_comm; /* owned by the axis; NULL: none */
    double timeout;                  /* seconds until an exchange over device communicators is given up */

    struct axis_begun *begun; /* owned; NULL until a sum has begun (axis_begun.h) */
    struct axis_ring *ring;   /* owned; NULL until a buffer has travelled round (axis_ring.h) */
    bool begun_now;           /* what has begun has not ended */
    struct axis_cover *cover; /* of a planned axis: what hides its exchanges; NULL: nobody asks */

    /* Scratch, owned by the axis. */
    double *gathered; /* [size, AXIS_DOUBLES] */
    real *pieces;     /* [pieces_count] a block's part from every rank, on the device; axis_reserve */
    long pieces_count;
    long *count, *at, *received, *received_at; /* [size] what is exchanged with each rank */
    int *call;                                 /* [4, size] the same for MPI's v-calls */
    int *ticket;                               /* [size] of copies to host memory */
};

/* What hides exchanges that have begun, for a plan: while they are under way others' work is done. `work`
 * counts it: arithmetic so far. */
struct axis_cover {
    double (*work)(void);
    int64_t hidden_bytes; /* of exchanges that began with work behind them */
    int hidden_calls;
    double covering; /* that work */

    int64_t bytes; /* of what is under way */
    int calls;
    double since; /* the work done when it began */
};

enum {
    AXIS_DOUBLES = 64,        /* doubles that axis_sum_doubles gathers in one go */
    AXIS_BLOCK = 4 * 1048576, /* elements that a sum receives in one go, which bounds its scratch */
};

/* Splits `world` by `color` (ranks ordered by `index`). Collective over `world`. GDN_INTERNAL. */
int axis_create(const char *name, MPI_Comm world, int color, int index, int size, struct axis *out);
/* An axis of one rank, which needs no MPI, on the host; for another device set `ops`. Nothing to free. */
struct axis axis_alone(const char *name);
/* An axis that only counts bytes (above), for plans. Nothing to free. */
struct axis axis_planned(const char *name, int size, int index);
void axis_free(struct axis *axis);
void axis_begun_free(struct axis *axis);
void axis_ring_free(struct axis *axis);

/* Reserves scratch for sums of up to `count` elements (axis_sum, axis_sum_rows of rows·width), maxima of up
 * to count / size, and rows of `count` columns put together from all ranks; in bf16 gathers use it, too, as
 * much of it as there is, so all ranks reserve the same. More than AXIS_BLOCK is never needed. Keeps what there
 * is where that suffices. After mesh_use. Not collective. GDN_INTERNAL without memory. */
int axis_reserve(struct axis *axis, long count);

/* Sum of `count` elements, the same bits on all ranks of the axis. */
void axis_sum(struct axis *axis, real *x, long count);
/* The same as it is stored, whatever the axis's wire type: of statistics, and of gradients of weights. */
void axis_sum_exact(struct axis *axis, real *x, long count);
/* Sums x [rows, width], after which only this rank's rows [axis_first_row, axis_first_row of the next rank)
 * hold the sum; the others are undefined. */
void axis_sum_rows(struct axis *axis, real *x, long rows, long width);
/* Fills x [rows, width] from every rank's own rows (as axis_sum_rows leaves them). */
void axis_gather_rows(struct axis *axis, real *x, long rows, long width);
/* x [rows, width] of each rank become out [rows, Σ widths], columns side by side in rank order; all ranks
 * have the same width. */
void axis_gather_columns(struct axis *axis, const real *x, long rows, long width, real *out);
/* Part r of x [size, part] goes to rank r; out [size, part] becomes what came, in rank order: an all-to-all, as it
 * is stored. */
void axis_exchange(struct axis *axis, const real *x, long part, real *out);
/* Elementwise maximum, NaN where a rank has one. */
void axis_max(struct axis *axis, real *x, long count);
/* Sum of doubles, for losses and norms. */
void axis_sum_doubles(struct axis *axis, double *values, int count);
/* mine [count] of every rank, the same count on all, becomes all [size, count] in rank order. */
void axis_gather_doubles(struct axis *axis, const double *mine, long count, double *all);

/* First row of rank `index`: rows·index/size; `index` may be size. */
long axis_first_row(const struct axis *axis, long rows, int index);

/* Bytes that rank `index` of an axis of `size` hands over in each call (above), of elements as they are
 * stored; in bf16 they are that part of it that wire_bytes is of sizeof(real). */
int64_t axis_formula_sum_rows(int size, int index, long rows, long width);
int64_t axis_formula_gather_rows(int size, int index, long rows, long width);
int64_t axis_formula_sum(int size, int index, long count);
int64_t axis_formula_gather_columns(int size, long rows, long width);
int64_t axis_formula_exchange(int size, long part);
int64_t axis_formula_max(int size, long count);
int64_t axis_formula_sum_doubles(int size, long count);
int64_t axis_formula_gather_doubles(int size, long count);

#endif
