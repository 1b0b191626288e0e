/* The axes of a mesh, one row each: what its ranks divide among them, and how MPI's ranks lie on them.
 * Meshes, layouts, plans, metrics, reports and messages walk these rows. Code that means one axis names it:
 * mesh->axis[AXIS_TENSOR], layout->size[AXIS_PIPELINE]. Code that means a property asks the table: who has a
 * copy of the same part of the model (AXIS_COPIES), who has the same part of a batch (axes_batch).
 *
 * Whoever adds an axis finds the list of files in dist/README.md. */
#ifndef GDN_AXES_H
#define GDN_AXES_H

#include <stdbool.h>
#include <stddef.h>

/* The rows of gdn, in the order in which people read them. */
enum mesh_axis {
    AXIS_DATA,
    AXIS_TENSOR,
    AXIS_PIPELINE,
    AXIS_CONTEXT,
    AXES_OF_GDN,

    /* All axes over which gradients are summed, as one: its ranks have copies of the same part of the model.
     * Wherever ranks exchange, keep or are counted as copies (mesh->axis, layout->size, costs), it stands in
     * the place of the first of these axes, and each other one has one rank: axes_joined. Only one whose ranks
     * have pieces of sequences has an axis of its own besides (mesh->axis), for what passes exchange. */
    AXIS_COPIES = AXIS_DATA
};

/* Room: arrays over axes have so many places, of which the first axes_count() are in use. */
enum { AXES = AXES_OF_GDN + 1 };

struct axis_row {
    const char *name;    /* in messages, metrics, plans and reports */
    const char *key;     /* of the configuration: "mesh." and the name */
    const char *divides; /* what its ranks divide among them */
    bool gradients;      /* its ranks have the same weights, and gradients are summed over it */
    bool batch;          /* its ranks have different sequences of a batch; those of other axes the same */
    bool pieces;         /* they have pieces of the same sequences (dist/layout/pieces.h) */
    bool rest;           /* size 0 in the configuration: all ranks that the other axes leave */
};

extern const struct axis_row *const axis_rows; /* [axes_count()] */
int axes_count(void);

/* How ranks are numbered: the axis on which neighbours in MPI's order differ comes first. */
extern const enum mesh_axis *const axis_order; /* [axes_count()] */
/* The order in which sums over all ranks go from axis to axis: part of what a result's bits are. */
extern const enum mesh_axis *const axis_sum_order; /* [axes_count()] */

/* Adds a row, for programs beside gdn: before anything else of the program. It is the last one in both
 * orders. Returns its number. */
int axes_register(const struct axis_row *row);

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

/* The sizes with copies as one axis; a rank's place so; and the rank of such a place. */
struct axis_sizes axes_joined(const int size[AXES]);
void axes_place_joined(const int size[AXES], long rank, int joined[AXES]);
long axes_rank_joined(const int size[AXES], const int joined[AXES]);

/* How many parts each batch has, and which of them a rank has; an axis of size 0 counts as one rank. */
struct batch_part {
    int parts, index;
};
struct batch_part axes_batch(const int size[AXES], long rank);
/* The lowest rank that has the same part. */
long axes_batch_first(const int size[AXES], long rank);

/* The axis that takes the rest, and the ranks of all others together. */
enum mesh_axis axes_rest(void);
long axes_each(const int size[AXES]);
/* Whether people are told of an axis: of pieces not where there is one rank. */
bool axes_shown(const int size[AXES], enum mesh_axis axis);
/* "mesh.tensor: 2 and mesh.pipeline: 4": the sizes of all axes that are shown but the one that takes the rest.
 * Returns `text`. */
enum { AXES_TEXT = 160 };
const char *axes_others(const int size[AXES], char text[AXES_TEXT]);
/* "data 1 x tensor 2 x pipeline 4". Returns `text`. */
const char *axes_text(const int size[AXES], char text[AXES_TEXT]);

#endif
