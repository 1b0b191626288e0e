/* Private to model/table/: collects the rows of a rank's parameter table in the order of the model, and gives
 * them their places in the flat buffers. */
#ifndef GDN_TABLE_BUILDER_H
#define GDN_TABLE_BUILDER_H

#include <stdbool.h>

#include "dist/layout/layout.h"
#include "dist/layout/table.h"
#include "model/params/edges.h"
#include "model/params/leaf.h"
#include "model/rule/rule.h"

/* A row that has no place yet. */
struct pending {
    struct row row;
    int first_owner; /* row.owner's place in builder.owner */
    int group;
};

struct builder {
    const struct layout *layout;
    const struct edges *edges;
    const int *projector; /* [edges->count] stage whose rank projects an edge's source; −1: none */
    int num_layers;
    struct pending *pending;
    int count, capacity;
    int group, group_first; /* the group that is open and its first row */
    int *owner;             /* of all places, one after the other */
    int owners, owner_capacity;
    bool failed;
};

/* What a row's name does not tell. */
struct place {
    const struct rule_entry *rule; /* that has it; NULL: none */
    int number;                    /* of the rule in the model's list */
    int layer, distance, edge, edges;
    bool select, whole;      /* whole: of a connection that tensor ranks do not divide */
    bool head;               /* of none of the layers, whatever `layer` says */
    int first_owner, owners; /* pipeline ranks that hold it, by rising rank, in builder.owner */
};

/* A place of a layer, whose rank holds it; −1: the embedding's, num_layers: the head's. */
struct place builder_place(struct builder *b, int layer);
/* The pipeline rank of a stage holds the newest place's tensors too, if it does not already. */
void builder_own(struct builder *b, struct place *place, int stage);
/* Closes the open group of tensors that are neighbours in memory, the last one too. */
void builder_group(struct builder *b);
/* Adds a leaf's row, if the rank is one of its owners. A connection's joins the open group, as do leaves that
 * say so; others begin one. Without memory b->failed says so. */
void builder_add(struct builder *b, struct place place, const struct leaf *leaf);
/* Fills the table from all rows, which is then the owner of b->owner; not 0: without memory. */
int builder_finish(struct builder *b, struct table *out);

#endif
