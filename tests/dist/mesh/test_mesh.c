/* The mesh: layouts and their errors, sums in rank order to the bit, agreement, broadcast. Runs on any number
 * of ranks. */
#include <string.h>
#include <unistd.h>

#include "kernels/base/random.h"
#include "tests/dist/checkpoint/sample.h"
#include "tests/support/world.h"

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
    } cases[] = {{world.size + 1, 1, 1, "mesh.data: "},
                 {-2, 1, 1, "mesh.data: -2"},
                 {0, world.size + 1, 1, "mesh.tensor: "},
                 {0, 1, 2 * world.size, "mesh.pipeline: "},
                 {1, world.size, 2, "mesh.data: 1 with mesh.tensor: "},
                 {0, 0, 1, "mesh.tensor: 0"},
                 {0, 1, -1, "mesh.pipeline: -1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(mesh_create(axes_of(cases[i].data, cases[i].tensor, cases[i].pipeline).size, &bad),
                         GDN_INPUT);
        assert_non_null(strstr(gdn_failure(), cases[i].word));
        gdn_failure_clear();
    }
    assert_int_equal(mesh_create(axes_of(world.size, 1, 1).size, &bad), 0);
    assert_int_equal(bad.axis[AXIS_DATA].size, world.size);
    assert_int_equal(bad.axis[AXIS_DATA].index, world.rank);
    mesh_free(&bad);
}

static void sums_of_doubles(void **state) {
    (void)state;
    static const int counts[] = {0, 1, 63, 64, 65, 1009};
    double values[1009];
    long order_matters = 0;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int n = counts[c];
        for (int i = 0; i < n; i++) values[i] = term(world.rank, i);
        assert_int_equal(mesh_sum(&world, values, n), 0);
        for (int i = 0; i < n; i++) {
            double right = term(0, i), backwards = term(world.size - 1, i);
            for (int r = 1; r < world.size; r++) right += term(r, i);
            for (int r = world.size - 2; r >= 0; r--) backwards += term(r, i);
            assert_memory_equal(&values[i], &right, sizeof right);
            order_matters += backwards != right;
        }
    }
    if (world.size > 2) assert_true(order_matters > 0); /* else this test could not tell */
}

/* Every way to lay the ranks out: a rank's place on each axis, and that an axis joins the ranks that differ
 * in this one coordinate alone, in their order. */
static void places(void **state) {
    (void)state;
    int n = world.size, layouts = 0;
    for (int tensor = 1; tensor <= n; tensor++)
        for (int data = 1; data <= n; data++) {
            int pipeline = n / (tensor * data);
            if (tensor * data * pipeline != n) continue;
            struct mesh m;
            assert_int_equal(mesh_create(axes_of(layouts % 2 ? data : 0, tensor, pipeline).size, &m), 0);
            assert_int_equal(m.axis[AXIS_TENSOR].size, tensor);
            assert_int_equal(m.axis[AXIS_DATA].size, data);
            assert_int_equal(m.axis[AXIS_PIPELINE].size, pipeline);
            assert_int_equal(m.axis[AXIS_TENSOR].index +
                                 tensor * (m.axis[AXIS_DATA].index + data * m.axis[AXIS_PIPELINE].index),
                             world.rank);
            assert_true(m.axis[AXIS_TENSOR].index < tensor && m.axis[AXIS_DATA].index < data);
            const struct axis *axes[] = {&m.axis[AXIS_TENSOR], &m.axis[AXIS_DATA], &m.axis[AXIS_PIPELINE]};
            const int strides[] = {1, tensor, tensor * data};
            for (int a = 0; a < 3; a++) {
                int ranks[8], place = -1;
                MPI_Allgather(&world.rank, 1, MPI_INT, ranks, 1, MPI_INT, axes[a]->comm);
                MPI_Comm_rank(axes[a]->comm, &place);
                assert_int_equal(place, axes[a]->index);
                for (int i = 0; i < axes[a]->size; i++)
                    assert_int_equal(ranks[i], world.rank + (i - axes[a]->index) * strides[a]);
            }
            mesh_free(&m);
            layouts++;
        }
    assert_true(layouts >= (n == 1 ? 1 : n == 4 ? 6 : 3));
}

/* Over all axes: tensor, then pipeline, then data, each by rank. */
static void sums_over_axes(void **state) {
    (void)state;
    if (world.size != 4) return;
    struct mesh m;
    assert_int_equal(mesh_create(axes_of(2, 2, 1).size, &m), 0);
    for (int i = 0; i < 100; i++) {
        double value = term(world.rank, i), right = (term(0, i) + term(1, i)) + (term(2, i) + term(3, i));
        assert_int_equal(mesh_sum(&m, &value, 1), 0);
        assert_memory_equal(&value, &right, sizeof right);
    }
    mesh_free(&m);
    assert_int_equal(mesh_create(axes_of(1, 2, 2).size, &m), 0);
    for (int i = 0; i < 100; i++) {
        double value = term(world.rank, i),
               right = term(m.axis[AXIS_TENSOR].index, i) + term(m.axis[AXIS_TENSOR].index + 2, i);
        axis_sum_doubles(&m.axis[AXIS_PIPELINE], &value, 1);
        assert_int_equal(m.axis[AXIS_PIPELINE].status, 0);
        assert_memory_equal(&value, &right, sizeof right);
    }
    mesh_free(&m);
}

static void agreement(void **state) {
    (void)state;
    assert_int_equal(mesh_agree(&world, 0), 0);
    assert_string_equal(gdn_failure(), "");
    for (int lowest = 0; lowest < world.size; lowest++) {
        /* All ranks from `lowest` on fail, each in its own way. */
        int mine = 0;
        if (world.rank >= lowest)
            mine = gdn_fail(world.rank % 2 ? GDN_INPUT : GDN_INTERNAL, "sorrow %d", world.rank);
        assert_int_equal(mesh_agree(&world, mine), lowest % 2 ? GDN_INPUT : GDN_INTERNAL);
        if (world.size == 1)
            assert_string_equal(gdn_failure(), "sorrow 0");
        else
            assert_string_equal(gdn_failure(),
                                format("rank %d on %s: sorrow %d", lowest, world.host, lowest));
        gdn_failure_clear();
    }
}

static void count_tick(void *input) {
    ++*(int *)input;
}

/* Rank 0 comes last, by more than the others may be late. */
static void waiting(void **state) {
    (void)state;
    int ticks = 0;
    assert_int_equal(mesh_wait(&world, count_tick, &ticks), 0);
    ticks = 0;
    if (world.rank == 0) usleep(300 * 1000);
    assert_int_equal(mesh_wait(&world, count_tick, &ticks), 0);
    assert_true(world.rank == 0 || ticks > 0);
}

static void flags_and_broadcast(void **state) {
    (void)state;
    assert_int_equal(mesh_any(&world, 0), 0);
    for (int r = 0; r < world.size; r++) assert_int_equal(mesh_any(&world, world.rank == r ? 5 : 0), 1);
    char text[100] = "";
    if (world.rank == 0) strcpy(text, "from rank 0");
    assert_int_equal(mesh_broadcast(&world, text, sizeof text), 0);
    assert_string_equal(text, "from rank 0");
    assert_int_equal(mesh_broadcast(&world, text, 0), 0);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_layouts),         cmocka_unit_test(places),    cmocka_unit_test(sums_of_doubles),
        cmocka_unit_test(sums_over_axes),      cmocka_unit_test(agreement), cmocka_unit_test(waiting),
        cmocka_unit_test(flags_and_broadcast),
    };
    return run_on_ranks(tests, world_create, world_free);
}
