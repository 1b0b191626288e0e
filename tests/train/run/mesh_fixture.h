/* Helpers of tests that train a small model on several meshes, on text that they make up. */
#ifndef GDN_MESH_FIXTURE_H
#define GDN_MESH_FIXTURE_H

#include "train/run/run.h"

/* Writes text to a new file, whose name is made of the template `path` (mkstemp) on rank 0, and is then the
 * same on all. False where it cannot be written. Collective. */
bool make_up_text(struct mesh *mesh, char *path);

/* Overrides of a configuration: a mesh, the data, and others. */
enum { MOST_SET = 16 };
struct overrides {
    char axes[3][40], data[80];
    char *set[MOST_SET]; /* the first four are those above */
    int count;
};

/* `set`: others, of which the first that is NULL ends the list, at most `most`. */
void overrides_fill(struct overrides *overrides, int data, int tensor, int pipeline, const char *path,
                    char *const *set, int most);

/* Parses the configuration `base` with the overrides, and prepares a run of it. Collective. */
int prepared(struct run *run, const char *base, const struct overrides *overrides);

/* All that then follows until the run could take its first step, from drawn weights. Collective. */
int readied(struct run *run);

#endif
