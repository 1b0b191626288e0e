/* The axes of a mesh, one row each: what its ranks divide among them, and how MPI's ranks lie on them.
 * Meshes, layouts, plans, metrics, reports and messages walk these rows. Code that means one axis names it:
 * mesh->axis[AXIS_TENSOR], layout->size[AXIS_PIPELINE].
 *
 * Whoever adds an axis finds the list of files in dist/README.md. */
#ifndef GDN_AXES_H
#define GDN_AXES_H

#include <stdbool.h>
#include <stddef.h>

/* In the order in which people read them. */
enum mesh_axis { AXIS_DATA, AXIS_TENSOR, AXIS_PIPELINE, AXES };

struct axis_row {
    const char *name;    /* in messages, metrics, plans and reports */
    const char *key;     /* of the configuration: "mesh." and the name */
    const char *divides; /* what its ranks divide among them */
    bool gradients;      /* its ranks have the same weights, and gradients are summed over it */
    bool rest;           /* size 0 in the configuration: all ranks that the other axes leave */
};

extern const struct axis_row axis_rows[AXES];

/* How ranks are numbered: the axis on which neighbours in MPI's order differ comes first. */
extern const enum mesh_axis axis_order[AXES];
/* The order in which sums over all ranks go from axis to axis: part of what a result's bits are. */
extern const enum mesh_axis axis_sum_order[AXES];

/* Ranks on each axis. */
struct axis_sizes {
    int size[AXES];
};

/* Sizes of the axes that most callers think of; all others have one rank. */
struct axis_sizes axes_of(int data, int tensor, int pipeline);

/* All ranks of such a mesh. */
long axes_ranks(const int size[AXES]);
/* Ranks from one place on an axis to the next. */
long axes_stride(const int size[AXES], enum mesh_axis axis);
/* A rank's place on each axis, and the rank of a place. */
void axes_place(const int size[AXES], long rank, int index[AXES]);
long axes_rank(const int size[AXES], const int index[AXES]);

/* The axis that takes the rest, and the ranks of all others together. */
enum mesh_axis axes_rest(void);
long axes_each(const int size[AXES]);
/* "mesh.tensor: 2 and mesh.pipeline: 4": the sizes of all axes but the one that takes the rest. Returns
 * `text`. */
enum { AXES_TEXT = 160 };
const char *axes_others(const int size[AXES], char text[AXES_TEXT]);
/* "data 1 x tensor 2 x pipeline 4". Returns `text`. */
const char *axes_text(const int size[AXES], char text[AXES_TEXT]);

#endif
