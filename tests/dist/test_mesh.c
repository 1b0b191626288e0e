/* The mesh: layout errors, sums in rank order to the bit, agreement, broadcast. Runs on any number of ranks.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/base/random.h"
#include "sample.h"

static struct mesh mesh;

/* What rank `rank` gives for element i: of very different sizes, so that the order of addition shows in the
 * bits. */
static double term(int rank, long i) {
    double x = random_normal(7, (uint64_t)rank, (uint64_t)i);
    return random_bits(8, (uint64_t)rank, (uint64_t)i) % 2 ? x * 1e5 : x;
}

static void bad_layouts(void **state) {
    (void)state;
    struct mesh bad;
    const struct {
        int data, tensor, pipeline;
        const char *word;
    } cases[] = {{mesh.size + 1, 1, 1, "mesh.data: "},
                 {-2, 1, 1, "mesh.data: -2"},
                 {0, 2, 1, "mesh.tensor: 2"},
                 {0, 1, 3, "mesh.pipeline: 3"},
                 {0, 0, 1, "mesh.tensor: 0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(mesh_create(cases[i].data, cases[i].tensor, cases[i].pipeline, &bad), GDN_INPUT);
        assert_non_null(strstr(gdn_failure(), cases[i].word));
        gdn_failure_clear();
    }
    assert_int_equal(mesh_create(mesh.size, 1, 1, &bad), 0);
    assert_int_equal(bad.data, mesh.size);
    assert_int_equal(bad.data_index, mesh.rank);
    mesh_free(&bad);
}

static void sums_of_doubles(void **state) {
    (void)state;
    static const int counts[] = {0, 1, 63, 64, 65, 1009};
    double values[1009];
    long order_matters = 0;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int n = counts[c];
        for (int i = 0; i < n; i++) values[i] = term(mesh.rank, i);
        assert_int_equal(mesh_sum(&mesh, values, n), 0);
        for (int i = 0; i < n; i++) {
            double right = term(0, i), backwards = term(mesh.size - 1, i);
            for (int r = 1; r < mesh.size; r++) right += term(r, i);
            for (int r = mesh.size - 2; r >= 0; r--) backwards += term(r, i);
            assert_memory_equal(&values[i], &right, sizeof right);
            order_matters += backwards != right;
        }
    }
    if (mesh.size > 2) assert_true(order_matters > 0); /* else this test could not tell */
}

static void sums_of_gradients(void **state) {
    (void)state;
    static const long counts[] = {0, 1, 2, 3, 1009, 65537, MESH_BLOCK - 1, MESH_BLOCK, MESH_BLOCK + 12347};
    enum { MOST = MESH_BLOCK + 12347, PERIOD = 4099 }; /* terms repeat with a prime period, to be quick */
    real *gradient = malloc(MOST * sizeof(real)), *terms = malloc((size_t)mesh.size * PERIOD * sizeof(real));
    real right[PERIOD];
    for (int r = 0; r < mesh.size; r++)
        for (int i = 0; i < PERIOD; i++) terms[r * PERIOD + i] = (real)term(r, i);
    for (int i = 0; i < PERIOD; i++) {
        right[i] = terms[i];
        for (int r = 1; r < mesh.size; r++) right[i] += terms[r * PERIOD + i];
    }
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (long i = 0; i < counts[c]; i++) gradient[i] = terms[mesh.rank * PERIOD + i % PERIOD];
        assert_int_equal(mesh_reserve(&mesh, counts[c]), 0);
        assert_int_equal(mesh_sum_gradients(&mesh, gradient, counts[c]), 0);
        for (long i = 0; i < counts[c]; i += PERIOD) {
            size_t n = (size_t)(counts[c] - i < PERIOD ? counts[c] - i : PERIOD);
            assert_memory_equal(gradient + i, right, n * sizeof(real));
        }
    }
    assert_int_equal(mesh_reserve(&mesh, 10), 0);
    if (mesh.size > 1) {
        assert_int_equal(mesh_sum_gradients(&mesh, gradient, 1000), GDN_INTERNAL);
        assert_non_null(strstr(gdn_failure(), "mesh_reserve"));
        gdn_failure_clear();
    }
    free(terms);
    free(gradient);
}

static void agreement(void **state) {
    (void)state;
    assert_int_equal(mesh_agree(&mesh, 0), 0);
    assert_string_equal(gdn_failure(), "");
    for (int lowest = 0; lowest < mesh.size; lowest++) {
        /* All ranks from `lowest` on fail, each in its own way. */
        int mine = 0;
        if (mesh.rank >= lowest)
            mine = gdn_fail(mesh.rank % 2 ? GDN_INPUT : GDN_INTERNAL, "sorrow %d", mesh.rank);
        assert_int_equal(mesh_agree(&mesh, mine), lowest % 2 ? GDN_INPUT : GDN_INTERNAL);
        if (mesh.size == 1)
            assert_string_equal(gdn_failure(), "sorrow 0");
        else
            assert_string_equal(gdn_failure(), format("rank %d on %s: sorrow %d", lowest, mesh.host, lowest));
        gdn_failure_clear();
    }
}

static void flags_and_broadcast(void **state) {
    (void)state;
    assert_int_equal(mesh_any(&mesh, 0), 0);
    for (int r = 0; r < mesh.size; r++) assert_int_equal(mesh_any(&mesh, mesh.rank == r ? 5 : 0), 1);
    char text[100] = "";
    if (mesh.rank == 0) strcpy(text, "from rank 0");
    assert_int_equal(mesh_broadcast(&mesh, text, sizeof text), 0);
    assert_string_equal(text, "from rank 0");
    assert_int_equal(mesh_broadcast(&mesh, text, 0), 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int bad = mesh_create(0, 1, 1, &mesh);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_layouts),         cmocka_unit_test(sums_of_doubles),
        cmocka_unit_test(sums_of_gradients),   cmocka_unit_test(agreement),
        cmocka_unit_test(flags_and_broadcast),
    };
    if (!bad) bad = cmocka_run_group_tests(tests, NULL, NULL);
    mesh_free(&mesh);
    MPI_Finalize();
    return bad != 0;
}
