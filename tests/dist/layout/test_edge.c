/* The edge table of any list of edges, and sets of them. */
#include "dist/layout/edge.h"

#include <string.h>

#include "tests/support/unit.h"

/* No distance is the same in all layers; in no order. */
static const struct edge irregular[] = {{.target = 4, .source = 0, .scale = 0.5},
                                        {.target = 1, .source = -1, .scale = 1},
                                        {.target = 4, .source = 3, .scale = 2},
                                        {.target = 3, .source = 0, .scale = 3}};
enum { COUNT = 4, LAYERS = 6 };

static void table_of_a_list(void **state) {
    (void)state;
    struct edges x;
    assert_int_equal(edges_of(irregular, COUNT, LAYERS, &x), 0);
    const struct edge sorted[] = {{.target = 1, .distance = 2, .source = -1, .scale = 1},
                                  {.target = 3, .distance = 3, .source = 0, .scale = 3},
                                  {.target = 4, .distance = 1, .source = 3, .scale = 2},
                                  {.target = 4, .distance = 4, .source = 0, .connection = 1, .scale = 0.5}};
    for (int e = 0; e < COUNT; e++) {
        assert_int_equal(x.edge[e].target, sorted[e].target);
        assert_int_equal(x.edge[e].distance, sorted[e].distance);
        assert_int_equal(x.edge[e].source, sorted[e].source);
        assert_int_equal(x.edge[e].connection, sorted[e].connection);
        assert_true(x.edge[e].scale == sorted[e].scale);
    }
    assert_memory_equal(x.first, ((int[]){0, 0, 1, 1, 2, 4, 4}), (LAYERS + 1) * sizeof(int));
    assert_memory_equal(x.leaves, ((int[]){0, 1, 3, 3, 3, 4, 4, 4}), (LAYERS + 2) * sizeof(int));
    assert_memory_equal(x.leaving, ((int[]){0, 1, 3, 2}), COUNT * sizeof(int));
    edges_free(&x);
    assert_int_equal(edges_of(NULL, 0, LAYERS, &x), 0); /* a plain transformer */
    assert_int_equal(x.count, 0);
    edges_free(&x);
}

static void lists_that_are_no_table(void **state) {
    static const struct edge wrong[][2] = {{{.target = 2, .source = 1}, {.target = 2, .source = 1}},
                                           {{.target = 2, .source = 1}, {.target = 2, .source = 2}},
                                           {{.target = 2, .source = 1}, {.target = 0, .source = -2}},
                                           {{.target = 2, .source = 1}, {.target = LAYERS, .source = 1}}};
    struct edges x;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_not_equal(edges_of(wrong[i], 2, LAYERS, &x), 0);
}

static void sets(void **state) {
    struct edges x;
    struct edge_set set;
    (void)state;
    assert_int_equal(edges_of(irregular, COUNT, LAYERS, &x), 0);
    assert_int_equal(edge_set_create(&x, (bool[]){true, false, false, true}, &set), 0);
    assert_int_equal(set.count, 2);
    assert_memory_equal(set.into, ((int[]){0, 1, 0, 0, 1, 0}), LAYERS * sizeof(int));
    for (int e = 0; e < COUNT; e++) {
        assert_int_equal(edge_set_has(&set, e), e == 0 || e == 3);
        assert_true(edge_set_has(NULL, e));
    }
    edge_set_free(&set);
    edges_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_a_list),
        cmocka_unit_test(lists_that_are_no_table),
        cmocka_unit_test(sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
