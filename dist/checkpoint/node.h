/* Checkpoints in one file a node (checkpoint.files: node). The ranks of a node write their parts, each a
 * dataset of its own, into part_00000.h5 and so on; checkpoint.h5 joins them by virtual datasets of the
 * tensors' global shapes, and records the parts' digests. Private to dist/. */
#ifndef GDN_CHECKPOINT_NODE_H
#define GDN_CHECKPOINT_NODE_H

#include "dist/checkpoint/file.h"

/* The ranks of one node: those that give the same host name in the mesh. */
struct node {
    struct file_group group;
    int index, count; /* nodes in the order of their first ranks */
};

/* Collective; node_free. GDN_INTERNAL. */
int node_create(const struct mesh *mesh, struct node *out);
void node_free(struct node *node);

/* What joins the files, on rank 0 of the mesh. */
struct joint {
    int pieces;
    struct file_piece *piece; /* [pieces] by dataset */
    char *digests;            /* text: a line "part_00000.h5 <hash>" for each file */
};

/* Writes the files, with digests, of all nodes in the directory of `path`, the checkpoint.h5. joint_free.
 * Collective; the same status on all. GDN_INTERNAL. */
int node_write(const struct node *node, const char *path, const struct parts *parts, struct joint *out);
void joint_free(struct joint *joint);

/* Verifies the files that a checkpoint.h5, whole itself, joins, if it does. Collective; the same status on
 * all. GDN_INPUT where one is missing, damaged or of another checkpoint. */
int node_verify(const struct file_group *group, const char *path);

#endif
