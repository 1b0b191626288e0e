#include "tests/support/world.h"

struct mesh world;

int world_create(void) {
    return mesh_create(axes_of(0, 1, 1).size, &world);
}

void world_free(void) {
    mesh_free(&world);
}
