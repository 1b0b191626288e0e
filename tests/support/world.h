/* All ranks on one data axis, for programs of rank_main.h: run_on_ranks(tests, world_create, world_free). */
#ifndef GDN_TEST_WORLD_H
#define GDN_TEST_WORLD_H

#include "dist/mesh/mesh.h"
#include "tests/support/rank_main.h"

extern struct mesh world;

/* Collective; fails like mesh_create. */
int world_create(void);
void world_free(void);

#endif
