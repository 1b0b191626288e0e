/* Stored differences: which are listed, and which of them are chosen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "tests/support/unit.h"
#include "tests/train/deltas/runs.h"
#include "train/deltas/list.h"

static void listed(const struct delta_list *list, int at, int64_t step, int layer, int distance) {
    assert_true(at < list->count);
    assert_int_equal(list->entry[at].step, step);
    assert_int_equal(list->entry[at].layer, layer);
    assert_int_equal(list->entry[at].distance, distance);
}

/* Numbers of more digits than their names are padded to sort as numbers; other names are left alone. */
static void list_is_in_order(void **state) {
    (void)state;
    char run[256], deltas[300], path[4096];
    make_run("order", run, deltas);
    write_file(deltas, 100, 1200, 1, path);
    write_file(deltas, 100, 30, 11, path);
    write_file(deltas, 123456789, 0, 1, path);
    write_file(deltas, 0, 2, 2, path);
    touch(deltas, "step_12"), touch(deltas, "notes.txt"), touch(deltas, "step_00000x01");
    char folder[400];
    snprintf(folder, sizeof folder, "%s/step_00000100", deltas);
    touch(folder, ".layer_001.h5.tmp"), touch(folder, "layer_1.h5"), touch(folder, "layer_001.h5.bak");
    touch(folder, "layer_-01.h5"), touch(folder, "layer_001");
    for (int direct = 0; direct < 2; direct++) {
        struct delta_list list;
        assert_int_equal(delta_list_open(direct ? deltas : run, &list), GDN_OK);
        assert_int_equal(list.count, 2 + 11 + 1 + 1);
        listed(&list, 0, 0, 2, 1), listed(&list, 1, 0, 2, 2);
        for (int d = 0; d < 11; d++) listed(&list, 2 + d, 100, 30, d + 1);
        listed(&list, 13, 100, 1200, 1), listed(&list, 14, 123456789, 0, 1);
        delta_list_free(&list);
    }
}

static int chosen(const char *run, const char *step, const char *layer, const char *distance, bool newest) {
    struct delta_choice choice = {.newest = newest};
    if (step) assert_int_equal(ranges_take("--step", step, &choice.step), GDN_OK);
    if (layer) assert_int_equal(ranges_take("--layer", layer, &choice.layer), GDN_OK);
    if (distance) assert_int_equal(ranges_take("--distance", distance, &choice.distance), GDN_OK);
    struct delta_survey survey;
    assert_int_equal(delta_survey(run, &choice, &survey), GDN_OK);
    int count = survey.list.count;
    for (int i = 0; i < count; i++) {
        const struct delta_entry *e = &survey.list.entry[i];
        assert_true(ranges_have(&choice.step, e->step) && ranges_have(&choice.layer, e->layer) &&
                    ranges_have(&choice.distance, e->distance));
    }
    delta_survey_free(&survey);
    return count;
}

/* Steps 0, 10, 20 have layers 0 to 3 with distances 1 to 3; step 30 has layer 1 alone. */
static void choices(void **state) {
    (void)state;
    char run[256], deltas[300], path[4096];
    make_run("choices", run, deltas);
    for (int step = 0; step <= 20; step += 10)
        for (int layer = 0; layer < 4; layer++) write_file(deltas, step, layer, 3, path);
    write_file(deltas, 30, 1, 3, path);
    assert_int_equal(chosen(run, NULL, NULL, NULL, false), 39);
    assert_int_equal(chosen(run, "10", NULL, NULL, false), 12);
    assert_int_equal(chosen(run, "5-20", "0,2-3", "2", false), 6);
    assert_int_equal(chosen(run, "0,30", "1", "1-2,3", false), 6);
    assert_int_equal(chosen(run, NULL, NULL, NULL, true), 3);
    assert_int_equal(chosen(run, NULL, "2", NULL, true), 3); /* of the newest step that has layer 2 */
    assert_int_equal(chosen(run, "0-15", NULL, "3", true), 4);
    struct delta_survey survey;
    struct delta_choice none = {.layer = ranges_one(7)};
    fails_with(delta_survey(run, &none, &survey), "layers 0, 1, 2, 3; distances 1, 2, 3");
    none = (struct delta_choice){.distance = ranges_one(4)};
    fails_with(delta_survey(run, &none, &survey), "steps 0, 10, 20, 30;");
}

static void bad_ranges(void **state) {
    (void)state;
    static const char *const bad[] = {"",    ",",   "1,",   "-1", "3-",    "5-4",
                                      "1 2", "0x1", "1,,2", " 1", "1-2-3", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ranges ranges = {0};
        fails_with(ranges_take("--step", bad[i], &ranges), "--step is '");
    }
    struct ranges ranges = {0};
    for (int i = 0; i < RANGES_MAX; i++) assert_int_equal(ranges_take("--step", "1", &ranges), GDN_OK);
    fails_with(ranges_take("--step", "1", &ranges), "at most 64");
}

static void nothing_there(void **state) {
    (void)state;
    char run[256], deltas[300];
    struct delta_list list;
    make_run("nothing", run, deltas);
    fails_with(delta_list_open("/nowhere/at/all", &list), "/nowhere/at/all: No such file or directory");
    fails_with(delta_list_open(run, &list), "has no stored differences");
    assert_int_equal(mkdir(deltas, 0777), 0);
    fails_with(delta_list_open(run, &list), "has no stored differences");
    touch(run, "file");
    snprintf(deltas, sizeof deltas, "%s/file", run);
    fails_with(delta_list_open(deltas, &list), "Not a directory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_is_in_order),
        cmocka_unit_test(choices),
        cmocka_unit_test(bad_ranges),
        cmocka_unit_test(nothing_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
