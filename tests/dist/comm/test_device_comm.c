/* Ways between devices: which one is taken, and a peer that does not come, which ends in a failure that names
 * the call and the axis instead of a rank that waits for ever. On a backend with a device. */
#include <stdlib.h>
#include <string.h>

#include "dist/comm/transport.h"
#include "kernels/backends/backends.h"
#include "tests/dist/comm/side.h"
#include "tests/support/rank_main.h"

enum { COUNT = 5000 };

/* Seconds: long enough for peers that do come, on a machine where many tests run at once. */
enum { LIMIT = 5 };

static void the_way_that_is_asked_for(void **state) {
    (void)state;
    static const struct {
        enum mesh_transport choice;
        const char *name;
    } cases[] = {{MESH_AUTO, "nccl"}, {MESH_STAGED, "staged"}, {MESH_NCCL, "nccl"}};
    for (int i = 0; i < 3; i++) {
        struct mesh mesh;
        assert_int_equal(mesh_create(axes_of(0, 1, 1).size, &mesh), 0);
        assert_string_equal(mesh.transport, "mpi");
        assert_int_equal(mesh_use(&mesh, side_ops(), cases[i].choice, 0), 0);
        if (test_ranks > 1) assert_string_equal(mesh.transport, cases[i].name);
        mesh_free(&mesh);
    }
}

static void the_host_has_no_device_communicators(void **state) {
    (void)state;
    struct mesh mesh;
    assert_int_equal(mesh_create(axes_of(0, 1, 1).size, &mesh), 0);
    assert_int_equal(mesh_use(&mesh, ops_find("cpu"), MESH_NCCL, 0), GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), "mesh.transport: nccl"));
    gdn_failure_clear();
    mesh_free(&mesh);
}

/* Messages of the host and of the device mixed, between all neighbours in both directions. */
static void messages_of_both_memories(void **state) {
    (void)state;
    struct mesh mesh;
    struct transport *t;
    static real host[4][COUNT], back[COUNT];
    assert_int_equal(side_mesh(1, 1, test_ranks, &mesh), 0);
    real *x[4];
    int next = (test_rank + 1) % test_ranks, before = (test_rank + test_ranks - 1) % test_ranks;
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < COUNT; j++) host[i][j] = (real)(i < 2 ? test_rank * 10 + i : -1);
        x[i] = side_make(host[i], COUNT);
    }
    assert_int_equal(transport_create(&mesh.axis[AXIS_PIPELINE], WIRE_STORED, 8, 4, &t), 0);
    transport_expect(t, 2, (int[]){before, next}, (int[]){0, 1});
    for (int times = 0; times < 2; times++) {
        transport_receive(t, 10, x[2], COUNT, before, 0, false);
        transport_receive(t, 11, host[2], COUNT, before, 2, true);
        transport_send(t, 0, x[0], COUNT, next, 0, false);
        transport_send(t, 1, host[0], COUNT, next, 2, true);
        transport_receive(t, 12, x[3], COUNT, next, 1, false);
        transport_receive(t, 13, host[3], COUNT, next, 3, true);
        transport_send(t, 2, x[1], COUNT, before, 1, false);
        transport_send(t, 3, host[1], COUNT, before, 3, true);
        transport_finish(t);
        assert_int_equal(mesh.axis[AXIS_PIPELINE].status, 0);
        for (int i = 2; i < 4; i++) {
            real expected = (real)((i == 2 ? before : next) * 10 + i - 2);
            side_get(back, x[i], COUNT);
            for (int j = 0; j < COUNT; j++) assert_true(back[j] == expected && host[i][j] == expected);
        }
    }
    transport_free(t);
    for (int i = 0; i < 4; i++) side_drop(x[i]);
    mesh_free(&mesh);
}

/* The last rank does not take part: of two in a sum, of more in a recorded one that is repeated. What was
 * recorded is there in both, and ends nobody's wait. */
static void a_peer_that_does_not_come(void **state) {
    (void)state;
    struct mesh mesh;
    real host[COUNT] = {1}, *x;
    const struct device *device = side_ops()->device;
    const char *asked = getenv("GDN_TEST_TRANSPORT");
    const bool repeats = test_ranks > 2;
    if (test_ranks == 1 || !asked || strcmp(asked, "nccl") != 0) return;
    assert_int_equal(mesh_create(axes_of(0, 1, 1).size, &mesh), 0);
    assert_int_equal(mesh_use(&mesh, side_ops(), MESH_NCCL, LIMIT), 0);
    assert_int_equal(axis_reserve(&mesh.axis[AXIS_DATA], COUNT), 0);
    x = side_make(host, COUNT);
    device->record();
    axis_sum(&mesh.axis[AXIS_DATA], x, COUNT);
    void *recording = device->recorded();
    device->repeat(recording);
    side_get(host, x, COUNT);
    assert_true(host[0] == (real)test_ranks);
    if (test_rank < test_ranks - 1) {
        if (repeats)
            device->repeat(recording);
        else
            axis_sum(&mesh.axis[AXIS_DATA], x, COUNT);
        side_get(host, x, COUNT);
        assert_int_equal(device->status(), GDN_INTERNAL);
        assert_non_null(strstr(gdn_failure(), repeats
                                                  ? "waits in recorded exchanges over the data axis since "
                                                  : "waits in a sum over the data axis since "));
        device->repeat(recording);
        axis_sum(&mesh.axis[AXIS_DATA], x, COUNT);
        assert_int_equal(mesh.axis[AXIS_DATA].status, GDN_INTERNAL);
    }
    device->discard(recording);
    MPI_Barrier(MPI_COMM_WORLD);
    mesh_free(&mesh);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_that_is_asked_for), cmocka_unit_test(the_host_has_no_device_communicators),
        cmocka_unit_test(messages_of_both_memories),
        cmocka_unit_test(a_peer_that_does_not_come), /* last: the device has failed then */
    };
    return run_on_ranks(tests, NULL, NULL);
}
