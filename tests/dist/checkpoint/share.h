/* What a rank has of a model on a mesh, all of it a function of its place in the whole: for tests that save
 * on one mesh and load on another. */
#ifndef GDN_TEST_SHARE_H
#define GDN_TEST_SHARE_H

#include "dist/checkpoint/checkpoint.h"
#include "model/table/params.h"
#include "tests/support/world.h"

/* A mesh and how a model lies on it. */
struct spot {
    const char *name;
    int data, tensor, pipeline, chunks;
    long bucket, small;
    int delta; /* enum delta_split */
    bool sequence_parallel, narrow;
    enum checkpoint_files files;
};

enum { SPOTS = 17, MODELS = 3 };
extern const struct spot spots[];

/* Models with every kind of row: odd vocabulary, transposed stacks, selection weights, tied embeddings. */
extern const struct model_config models[];

int size_of(const struct spot *spot); /* ranks */
bool fits(const struct spot *spot);   /* there are as many */
bool on(const struct spot *spot);     /* this rank is one of them */

/* The mesh of the first ranks. */
void make_mesh(const struct spot *spot, struct mesh *out);
extern struct mesh meshes_of_spots[SPOTS];

struct share {
    const struct mesh *mesh;
    struct table global, table;
    struct shards shards;
    struct state state;
    struct span stage[64];
};

/* Empty where this rank is not on the spot. share_free. */
struct share *share_new(const struct spot *spot, const struct model_config *model);
void share_free(struct share *s);
struct checkpoint_content content_of(struct share *s);

real *room(long count); /* free() */
void fill(real *memory, long count, real x);

/* Of element i, as in memory, of the rank's part of a tensor; group 0: its weight, 1 and 2: its moments. 23
 * bits, which float32 holds. */
real value(const struct row *row, int group, long i);

/* Forgets everything; what is not loaded then shows, and so would padding that is saved. */
void clear(struct share *s);

/* Goes through all that a rank has, to set it or to count what is wrong. */
long each_value(struct share *s, bool set);

#endif
