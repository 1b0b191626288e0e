/* The thread that writes stored differences: beside its owner, in the room it was given, and on after
 * failures. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/train/deltas/disk.h"
#include "kernels/base/status.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/deltas/file.h"
#include "train/deltas/writer.h"

static const char *deltas; /* the folder */

static struct delta_job job_of(int layer, size_t bytes) {
    return (struct delta_job){.step = 8,
                              .layer = layer,
                              .image = calloc(bytes, 1),
                              .bytes = bytes,
                              .tally = {.files = 1,
                                        .connections = layer,
                                        .bytes = (long)bytes,
                                        .plain_bytes = 2 * (long)bytes,
                                        .rank = 10 * layer,
                                        .error = 0.1 * layer}};
}

static void give(struct delta_writer *writer, int layer, size_t bytes) {
    struct delta_job job = job_of(layer, bytes);
    delta_writer_give(writer, &job);
}

static struct delta_writer *started(int room) {
    struct delta_writer *writer;
    assert_int_equal(delta_writer_create(deltas, room, &writer), 0);
    return writer;
}

static void writes_beside_its_owner(void **state) {
    (void)state;
    struct delta_writer *writer = started(3);
    struct delta_tally tally = {0};
    struct delta_failure failure = {0};
    for (int round = 0; round < 3; round++) { /* the ring comes round */
        disk_wait();
        for (int layer = 1; layer <= 3; layer++) give(writer, layer, 1000);
        assert_false(delta_writer_idle(writer));
        disk_go_on();
        delta_writer_take(writer, &tally, &failure);
        assert_true(delta_writer_idle(writer));
        assert_int_equal(tally.files, 3 * (round + 1));
    }
    delta_writer_take(writer, &tally, &failure); /* adds nothing twice */
    struct delta_tally expected = {9, 18, 9000, 18000, 180, 0, 0.1 * 3};
    assert_memory_equal(&tally, &expected, sizeof tally);
    assert_string_equal(failure.text, "");
    delta_writer_free(writer);
}

static void *let_go_on_soon(void *let_go) {
    usleep(100000);
    atomic_store((atomic_bool *)let_go, true);
    disk_go_on();
    return NULL;
}

static void takes_no_more_than_there_is_room_for(void **state) {
    (void)state;
    struct delta_writer *writer = started(2);
    atomic_bool let_go = false;
    pthread_t helper;
    disk_wait();
    give(writer, 1, 10), give(writer, 2, 10);
    pthread_create(&helper, NULL, let_go_on_soon, &let_go);
    give(writer, 3, 10);
    assert_true(atomic_load(&let_go)); /* it came back after that, not before */
    pthread_join(helper, NULL);
    delta_writer_free(writer); /* writes what is left */
    char path[128];
    snprintf(path, sizeof path, "%s/step_00000008/layer_003.h5", deltas);
    assert_int_equal(access(path, R_OK), 0);
}

/* The system's own failure: SIGXFSZ would end this program, were it not held back in the thread. */
static void outlives_files_that_are_too_large(void **state) {
    (void)state;
    struct rlimit limit, before;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 5000;
    struct delta_writer *writer = started(3);
    struct delta_tally tally = {0};
    struct delta_failure failure = {0};
    setrlimit(RLIMIT_FSIZE, &limit);
    give(writer, 4, 1000), give(writer, 5, 6000), give(writer, 6, 7000);
    delta_writer_take(writer, &tally, &failure);
    setrlimit(RLIMIT_FSIZE, &before);
    struct delta_tally expected = {1, 4, 1000, 2000, 40, 11, 0.1 * 4};
    assert_memory_equal(&tally, &expected, sizeof tally);
    assert_int_equal(failure.layer, 5);
    assert_int_equal(failure.distance, 0);
    assert_non_null(strstr(failure.text, "/deltas/step_00000008/layer_005.h5 cannot be written: "));
    assert_non_null(strstr(failure.text, strerror(EFBIG)));

    struct delta_failure earlier = {1, 2, "words of another"};
    tally = (struct delta_tally){0};
    disk_full(0, ENOSPC);
    give(writer, 7, 10);
    delta_writer_take(writer, &tally, &earlier);
    disk_full(0, 0);
    assert_int_equal(tally.failed, 7);
    assert_string_equal(earlier.text, "words of another");
    delta_writer_free(writer);
}

int main(void) {
    deltas = strdup(scratch_path("deltas"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_beside_its_owner),
        cmocka_unit_test(takes_no_more_than_there_is_room_for),
        cmocka_unit_test(outlives_files_that_are_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
