/* Runs of a small model on several meshes, on made-up text. A program's set-up is world_with_text. */
#ifndef GDN_MESH_FIXTURE_H
#define GDN_MESH_FIXTURE_H

#include "tests/support/meshes.h"
#include "tests/support/scratch.h"
#include "tests/support/world.h"
#include "train/run/run.h"

/* world_create, and text to train on in the scratch folder. Collective. */
int world_with_text(void);

/* The text's path. */
const char *text_path(void);

/* Overrides of a configuration: a case's mesh, the text, what the case sets; room for others. */
enum { MAX_SET = 16 };
struct overrides {
    char axes[3][40], data[SCRATCH_LONGEST + 40];
    char *set[MAX_SET]; /* the first four are those above */
    int count;
};
void overrides_fill(struct overrides *overrides, const struct mesh_case *c);

/* Begins a run on the world: parses the configuration `base` with the overrides. Fails like config_parse. */
int configured(struct run *run, const char *base, const struct overrides *overrides);

/* The same, and prepares it, which lays the world out anew. Collective; fails like run_prepare. */
int prepared(struct run *run, const char *base, const struct overrides *overrides);

/* All that then follows until the run could take its first step, from drawn weights. Collective. */
int readied(struct run *run);

/* Both, with what the case sets. */
int started(struct run *run, const char *base, const struct mesh_case *c);

/* Between run_load and run_create, or after: adds noise to the connections' weights, the same on every mesh.
 * They begin as no change to what is computed, with gradients that are zero. */
void connections_drawn(struct run *run);

/* run_free; the world lives on, with the scratch that its axes have reserved. */
void ended(struct run *run);

#endif
