#include "tests/support/meshes.h"

#include "tests/support/rank_main.h"

const struct mesh_shape meshes[] = {
#include "tests/support/meshes.inc"
};
const int meshes_count = sizeof meshes / sizeof *meshes;

int mesh_ranks(struct mesh_shape mesh) {
    return mesh.data * mesh.tensor * mesh.pipeline;
}

size_t tests_of_cases(struct CMUnitTest *tests, CMUnitTestFunction test, void *cases, size_t count,
                      size_t size) {
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        struct mesh_case *c = (struct mesh_case *)((char *)cases + i * size);
        if (mesh_ranks(c->mesh) != test_ranks) continue;
        tests[made++] = (struct CMUnitTest){c->set[0], test, NULL, NULL, c};
    }
    return made;
}
