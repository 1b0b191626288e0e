/* What a store of differences on one rank holds of made-up connections, in the memory planned, beside
 * training. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "tests/support/rank_main.h"
#include "tests/train/deltas/delta_store_fixture.h"
#include "tests/train/deltas/disk.h"

static void stores_every_connection(void **state) {
    (void)state;
    struct fixture f;
    create(&f, NULL, NULL);
    assert_null(delta_store_begin(f.store, 4, active_at(&f, 4)));
    struct delta_report none, report = store(&f, 5, -1, NOTHING);
    assert_int_equal(delta_store_poll(f.store, true, &none), 0);
    assert_false(none.done); /* told once */
    struct delta_list list = listed();
    assert_int_equal(f.edges.count, 5); /* layers 1 to 3 at distance 1, 2 and 3 at 2 */
    assert_int_equal(list.count, 5);
    for (int e = 0; e < f.edges.count; e++)
        assert_int_equal(check_stored(&list, 5, &f.edges.edge[e]), 6); /* a quarter of 24 */
    assert_int_equal(report.tally.files, 3);
    assert_int_equal(report.tally.connections, 5);
    assert_int_equal(report.tally.rank, 30);
    assert_int_equal(report.tally.failed, 0);
    assert_int_equal(report.tally.plain_bytes, 5 * T * D * (long)sizeof(real));
    assert_true(report.tally.error > 0 && report.tally.error < 0.2);
    assert_true(report.factorise_seconds > 0 && report.stall_seconds > 0);
    delta_list_free(&list);
    destroy(&f);
}

static void stores_chosen_layers(void **state) {
    (void)state;
    struct fixture f;
    create(&f, "delta_store.layers=[0, 2]", NULL);
    struct delta_report report = store(&f, 0, -1, NOTHING);
    assert_int_equal(report.tally.files, 1);
    assert_int_equal(report.tally.connections, 2);
    destroy(&f);
}

/* Distances that are not introduced yet are not waited for. */
static void stores_active_connections(void **state) {
    (void)state;
    struct fixture f;
    create(&f, "model.delta.stage_steps=7", NULL);
    struct delta_report report = store(&f, 5, -1, NOTHING);
    assert_int_equal(report.tally.files, 3);
    assert_int_equal(report.tally.connections, 3);
    report = store(&f, 10, -1, NOTHING);
    assert_int_equal(report.tally.connections, 5);
    destroy(&f);
}

static void keeps_to_a_tolerance(void **state) {
    (void)state;
    struct fixture f;
    create(&f, "delta_store={ratio: 0, tolerance: 0.05}", NULL);
    struct delta_report report = store(&f, 0, -1, NOTHING);
    assert_true(report.tally.error <= 0.05);
    struct delta_list list = listed();
    for (int e = 0; e < f.edges.count; e++) {
        struct delta_record record;
        assert_int_equal(delta_record_read(find(&list, 0, &f.edges.edge[e]), &record), 0);
        struct factors *factors = &record.factors;
        assert_true(factors->error <= 0.05);
        /* One column less would miss more: what that column holds comes to it. */
        double last = (double)factors->sigma[factors->rank - 1] / factors->norm;
        assert_true(hypot(factors->error, last) > 0.05);
        delta_record_free(&record);
        check_stored(&list, 0, &f.edges.edge[e]);
    }
    delta_list_free(&list);
    destroy(&f);
}

/* All that is reserved, and all files of a step with the greatest rank, with what HDF5 needs to make one. */
static void takes_the_memory_planned(void **state) {
    (void)state;
    char *const set[][2] = {{NULL, NULL},
                            {"delta_store.ratio=1", NULL},
                            {"delta_store={ratio: 0, tolerance: 1e-9}", NULL},
                            {"delta_store.layers=[3]", "model.hidden_size=128"}};
    for (int i = 0; i < 4; i++) {
        struct fixture f;
        create(&f, set[i][0], set[i][1]);
        assert_int_equal(f.store->arena.used, f.store->arena.size);
        assert_true(delta_store_memory(&f.place, 1, 0) == 0);
        if (i < 3) {
            struct delta_report report = store(&f, 0, -1, NOTHING);
            long files = (long)f.store->arena.size + report.tally.bytes;
            assert_true(f.memory >= files);
            assert_true(f.memory < files + 8 * 8192); /* what is left of the room for eight headers */
        }
        destroy(&f);
    }
    struct fixture off;
    create(&off, "delta_store.interval=0", NULL);
    assert_null(off.store);
    assert_int_equal(off.memory, 0);
    struct delta_report report;
    assert_null(delta_store_begin(off.store, 0, NULL));
    assert_int_equal(delta_store_poll(off.store, true, &report), 0);
    assert_false(report.done);
    destroy(&off);
}

static void does_not_wait_for_the_disk(void **state) {
    (void)state;
    struct fixture f;
    struct delta_report report;
    create(&f, NULL, NULL);
    disk_wait();
    pass(&f, delta_store_begin(f.store, 0, active_at(&f, 0)), 0, -1, NOTHING); /* comes back */
    assert_int_equal(delta_store_poll(f.store, false, &report), 0);
    assert_false(report.done);
    disk_go_on();
    while (!report.done) {
        assert_int_equal(delta_store_poll(f.store, false, &report), 0);
        usleep(1000);
    }
    assert_int_equal(report.tally.files, 3);

    pass(&f, delta_store_begin(f.store, 5, active_at(&f, 5)), 5, -1, NOTHING);
    destroy(&f); /* waits for what is under way */
    struct delta_list list = listed();
    assert_int_equal(list.count, 10);
    delta_list_free(&list);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(stores_every_connection, remove_files),
        cmocka_unit_test_teardown(stores_chosen_layers, remove_files),
        cmocka_unit_test_teardown(stores_active_connections, remove_files),
        cmocka_unit_test_teardown(keeps_to_a_tolerance, remove_files),
        cmocka_unit_test_teardown(takes_the_memory_planned, remove_files),
        cmocka_unit_test_teardown(does_not_wait_for_the_disk, remove_files),
    };
    return run_on_ranks(tests, NULL, NULL);
}
