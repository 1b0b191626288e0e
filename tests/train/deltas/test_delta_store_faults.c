/* What a store of differences does where something cannot be stored: values that are not finite, a full
 * disk. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/support/rank_main.h"
#include "tests/train/deltas/delta_store_fixture.h"
#include "tests/train/deltas/disk.h"

static void leaves_out_what_cannot_be(void **state) {
    (void)state;
    static const struct {
        enum fault fault;
        const char *text;
    } faults[] = {{NAN_DIFFERENCE, "NaN or infinite"},
                  {INFINITE_DIFFERENCE, "NaN or infinite"},
                  {NAN_GATE, "1 of its gates are NaN or infinite"}};
    struct fixture f;
    create(&f, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        int64_t step = 5 * (i + 1);
        const struct edge *bad = &f.edges.edge[2]; /* layer 2, distance 2 */
        struct delta_report report = store(&f, step, 2, faults[i].fault);
        assert_int_equal(report.tally.files, 3);
        assert_int_equal(report.tally.connections, 4);
        assert_int_equal(report.tally.failed, 1);
        assert_int_equal(report.failure.layer, 2);
        assert_int_equal(report.failure.distance, 2);
        assert_non_null(strstr(report.failure.text, faults[i].text));
        struct delta_list list = listed();
        assert_null(find(&list, step, bad));
        for (int e = 0; e < f.edges.count; e++)
            if (e != 2) check_stored(&list, step, &f.edges.edge[e]);
        delta_list_free(&list);
    }
    struct delta_report report = store(&f, 20, 0, NAN_DIFFERENCE); /* the only one of its layer */
    assert_int_equal(report.tally.files, 2);
    report = store(&f, 25, -1, NOTHING); /* nothing of that is left */
    assert_int_equal(report.tally.connections, 5);
    assert_int_equal(report.tally.failed, 0);
    assert_string_equal(report.failure.text, "");
    destroy(&f);
}

/* Words that others have recorded, and will need, stay. */
static void leaves_others_words_alone(void **state) {
    (void)state;
    struct fixture f;
    struct delta_report report;
    create(&f, NULL, NULL);
    const struct delta_watch *watch = delta_store_begin(f.store, 0, active_at(&f, 0));
    gdn_fail(GDN_INTERNAL, "words of another");
    pass(&f, watch, 0, 1, NAN_DIFFERENCE);
    assert_int_equal(delta_store_poll(f.store, true, &report), 0);
    assert_string_equal(gdn_failure(), "words of another");
    assert_int_equal(report.tally.failed, 1);
    assert_null(strstr(report.failure.text, "words of another"));
    gdn_failure_clear();
    destroy(&f);
}

static void tells_of_a_full_disk(void **state) {
    (void)state;
    struct fixture f;
    create(&f, NULL, NULL);
    store(&f, 0, -1, NOTHING);
    disk_full(3000, ENOSPC); /* in the middle of the first file */
    struct delta_report report = store(&f, 5, -1, NOTHING);
    disk_full(0, 0);
    assert_int_equal(report.tally.files, 0);
    assert_int_equal(report.tally.failed, 5);
    assert_int_equal(report.failure.layer, 1);
    assert_int_equal(report.failure.distance, 0);
    assert_non_null(strstr(report.failure.text, "step_00000005/layer_001.h5 cannot be written: "));
    assert_non_null(strstr(report.failure.text, strerror(ENOSPC)));
    struct delta_list list = listed(); /* refuses damaged files */
    assert_int_equal(list.count, 5);
    delta_list_free(&list);
    report = store(&f, 10, -1, NOTHING);
    assert_int_equal(report.tally.files, 3);
    assert_string_equal(report.failure.text, "");
    destroy(&f);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(leaves_out_what_cannot_be, remove_files),
        cmocka_unit_test_teardown(leaves_others_words_alone, remove_files),
        cmocka_unit_test_teardown(tells_of_a_full_disk, remove_files),
    };
    return run_on_ranks(tests, NULL, NULL);
}
