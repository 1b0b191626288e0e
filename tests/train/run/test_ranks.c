/* Where ranks lie: the words for made-up machines, and for this one. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/rank_main.h"
#include "train/run/ranks.h"

enum { MAX = 64 };

/* Ranks dealt out in order, `on_node` to a node and `in_domain` to each of its domains (0: bound to none). */
static void expect(int data, int tensor, int pipeline, int on_node, int in_domain, const char *right) {
    struct rank_place place[MAX];
    for (int r = 0; r < data * tensor * pipeline; r++) {
        snprintf(place[r].host, sizeof place[r].host, "node%d", r / on_node);
        place[r].domain = in_domain ? r % on_node / in_domain : -1;
    }
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ranks_describe_places(place, axes_of(data, tensor, pipeline).size, out);
    fclose(out);
    assert_string_equal(text, right);
    free(text);
}

static void made_up_machines(void **state) {
    (void)state;
    expect(1, 1, 1, 1, 1, "placement 1 rank on 1 node\n");
    expect(2, 4, 2, 8, 4,
           "placement 16 ranks on 2 nodes: tensor within a NUMA domain, data within a node, pipeline across "
           "nodes\n");
    expect(4, 2, 2, 16, 8,
           "placement 16 ranks on 1 node: tensor within a NUMA domain, data within a NUMA domain, pipeline "
           "within a "
           "node\n");
    expect(8, 1, 1, 4, 2, "placement 8 ranks on 2 nodes: data across nodes\n");
    expect(1, 2, 2, 4, 0, "placement 4 ranks on 1 node: tensor within a node, pipeline within a node\n");
    expect(1, 2, 2, 4, 4,
           "placement 4 ranks on 1 node: tensor within a NUMA domain, pipeline within a NUMA domain\n");
    /* Two nodes of three: one pair of tensor ranks is torn apart. */
    expect(3, 2, 1, 3, 3,
           "placement 6 ranks on 2 nodes: tensor across nodes, data across nodes\n"
           "          sums in every layer go from node to node: fill one node after the other (mpirun "
           "--map-by slot), "
           "with a multiple of mesh.tensor: 2 ranks on each\n");
}

static void this_machine(void **state) {
    (void)state;
    struct mesh mesh;
    char *text = NULL;
    size_t length;
    assert_int_equal(mesh_create(axes_of(0, 1, 1).size, &mesh), 0);
    FILE *out = mesh.rank == 0 ? open_memstream(&text, &length) : NULL;
    ranks_describe(&mesh, out);
    if (out) {
        char right[80];
        fclose(out);
        snprintf(right, sizeof right, "placement %d rank%s on 1 node%s", mesh.size, mesh.size > 1 ? "s" : "",
                 mesh.size > 1 ? ": data within a " : "\n");
        assert_memory_equal(text, right, strlen(right));
    }
    free(text);
    mesh_free(&mesh);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(made_up_machines), cmocka_unit_test(this_machine)};
    return run_on_ranks(tests, NULL, NULL);
}
