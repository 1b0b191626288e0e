/* Activities as another thread sees them, who is found to hold a hanging run up, and which ranks are slow. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/support/unit.h"
#include "train/health/hang.h"
#include "train/health/slow.h"

/* -------------------------------------------------------------------------------------------- activities */

static struct activity seen(enum activity_thread thread) {
    struct activity p;
    activity_read(thread, &p);
    return p;
}

static void expect_wait(const char *right) {
    struct activity p = seen(ACTIVITY_MAIN);
    char text[ACTIVITY_TEXT];
    activity_wait_text(&p, text);
    assert_string_equal(text, right);
}

static void describe(const void *action, char text[ACTIVITY_TEXT]) {
    snprintf(text, ACTIVITY_TEXT, "action %d", *(const int *)action);
}

static void waits_are_told(void **state) {
    (void)state;
    activity_phase(PHASE_STEP, 17);
    expect_wait("");
    activity_enter("data", "sum", 4096, -1);
    expect_wait("the data axis's sum of 4096 elements");
    activity_enter("mesh", "agreement", -1, -1); /* inside: not told */
    expect_wait("the data axis's sum of 4096 elements");
    activity_leave();
    expect_wait("the data axis's sum of 4096 elements");
    activity_leave();
    expect_wait("");
    activity_enter("pipeline", "receive", 64, 1);
    expect_wait("the pipeline axis's receive of 64 elements with its rank 1");
    activity_leave();
    activity_enter("mesh", "agreement", -1, -1);
    expect_wait("the agreement of all ranks");
    activity_leave();
    assert_int_equal(seen(ACTIVITY_MAIN).phase, PHASE_STEP);
    assert_int_equal(seen(ACTIVITY_MAIN).step, 17);
}

static void every_change_moves(void **state) {
    (void)state;
    int number = 3;
    char text[ACTIVITY_TEXT];
    struct activity before = seen(ACTIVITY_MAIN), after;
    activity_action(&number, describe);
    after = seen(ACTIVITY_MAIN);
    assert_true(after.moves != before.moves && after.begun == before.begun);
    activity_action_text(&after, text);
    assert_string_equal(text, "action 3");
    activity_action(NULL, NULL);
    after = seen(ACTIVITY_MAIN);
    activity_action_text(&after, text);
    assert_string_equal(text, "");
    activity_enter("data", "sum", 1, -1);
    assert_true(seen(ACTIVITY_MAIN).moves != after.moves);
    after = seen(ACTIVITY_MAIN);
    activity_leave();
    assert_true(seen(ACTIVITY_MAIN).moves != after.moves);
    after = seen(ACTIVITY_MAIN);
    activity_renew();
    assert_true(seen(ACTIVITY_MAIN).moves != after.moves && seen(ACTIVITY_MAIN).begun != after.begun);
}

static void sleep_in_wait(void) {
    activity_enter("data", "sum", 1, -1);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    activity_leave();
}

static void waiting_is_added_up(void **state) {
    (void)state;
    activity_phase(PHASE_STEP, 1);
    assert_true(activity_waited() == 0);
    sleep_in_wait();
    sleep_in_wait();
    assert_true(activity_waited() >= 0.04);
    activity_renew();
    assert_true(activity_waited() >= 0.04);
    activity_phase(PHASE_STEP, 2);
    assert_true(activity_waited() == 0);
}

static void *write_checkpoint(void *unused) {
    (void)unused;
    activity_of_writer();
    activity_phase(PHASE_CHECKPOINT, 12);
    activity_enter("mesh", "agreement", -1, -1);
    return NULL;
}

static void writer_has_its_own(void **state) {
    (void)state;
    pthread_t thread;
    activity_phase(PHASE_STEP, 14);
    assert_int_equal(seen(ACTIVITY_WRITER).phase, PHASE_NONE);
    pthread_create(&thread, NULL, write_checkpoint, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(seen(ACTIVITY_WRITER).phase, PHASE_CHECKPOINT);
    assert_int_equal(seen(ACTIVITY_WRITER).step, 12);
    assert_string_equal(seen(ACTIVITY_WRITER).where, "mesh");
    assert_int_equal(seen(ACTIVITY_MAIN).phase, PHASE_STEP);
    assert_null(seen(ACTIVITY_MAIN).where);
}

/* ---------------------------------------------------------------------------------------- who holds it up */

enum { RANKS = 5 };

static struct station station[RANKS];
static const char host[RANKS][64] = {"node0", "node0", "node1", "node1", "node2"};
static char culprit[RANKS], text[16384];
static const struct hang five = {
    .ranks = RANKS,
    .station = station,
    .host = host,
    .limit = {[PHASE_START] = 60, [PHASE_STEP] = 3, [PHASE_EVALUATION] = 3, [PHASE_CHECKPOINT] = 20}};

/* All wait in the same sum of step 17, rank 0's time-out has come. */
static int all_wait(void **state) {
    (void)state;
    for (int r = 0; r < RANKS; r++) {
        station[r] = (struct station){.answered = 1, .late = r == 0};
        station[r].thread[ACTIVITY_MAIN] =
            (struct station_thread){.phase = PHASE_STEP, .step = 17, .phase_seconds = 3.25, .seconds = 3};
        strcpy(station[r].thread[ACTIVITY_MAIN].wait, "the data axis's sum of 64 elements");
        strcpy(station[r].thread[ACTIVITY_MAIN].action, "reduce bucket 3");
    }
    return 0;
}

static struct station_thread *main_of(int rank) {
    return &station[rank].thread[ACTIVITY_MAIN];
}

/* `right`: a character a rank, x for those that are named. */
static void expect(enum hang_kind kind, const char *right) {
    assert_int_equal(hang_judge(&five, culprit), kind);
    for (int r = 0; r < RANKS; r++) assert_int_equal(culprit[r], right[r] == 'x');
    size_t length = hang_report(&five, culprit, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_memory_equal(text, "gdn: ", 5);
    assert_null(strstr(text + 1, "gdn: ")); /* one message */
}

static void says(const char *part) {
    if (!strstr(text, part)) fail_msg("no '%s' in: %s", part, text);
}

static void silent_ranks_are_named(void **state) {
    (void)state;
    station[2] = (struct station){0};
    expect(HANG_SILENT, "..x..");
    says("gdn: rank 2 on node1 does not answer; ranks 0, 1, 3 and 4 wait in the data axis's sum of 64 "
         "elements (step "
         "17, for 3.2 s; watchdog.step is 3)");
    says("raise watchdog.step");
    says("     2  node1                 no answer\n");
    says("reduce bucket 3");
    station[4] = (struct station){0};
    main_of(3)->wait[0] = 0; /* whoever computes meanwhile is not to blame */
    expect(HANG_SILENT, "..x.x");
    says("gdn: ranks 2 on node1 and 4 on node2 do not answer; ranks 0 and 1 wait in");
}

static void busy_ranks_are_named(void **state) {
    (void)state;
    main_of(3)->wait[0] = 0;
    strcpy(main_of(3)->action, "forward chunk 0");
    expect(HANG_BUSY, "...x.");
    says("gdn: rank 3 on node1 holds the others up: in step 17 at \"forward chunk 0\"");
    says("for 3.0 s; ranks 0, 1, 2 and 4 wait in the data axis's sum of 64 elements");
    main_of(1)->wait[0] = 0;
    main_of(1)->step = 16; /* it has come less far than rank 3 */
    expect(HANG_BUSY, ".x...");
}

static void ranks_elsewhere_are_named(void **state) {
    (void)state;
    strcpy(main_of(1)->wait, "the tensor axis's sum of 8 elements");
    expect(HANG_APART, ".x...");
    says("gdn: rank 1 on node0 waits in the tensor axis's sum of 8 elements; ranks 0, 2, 3 and 4 wait in the "
         "data axis's");
    strcpy(main_of(4)->wait, "the tensor axis's sum of 8 elements");
    expect(HANG_APART, ".x..x");
    strcpy(main_of(1)->wait, main_of(0)->wait);
    strcpy(main_of(4)->wait, main_of(0)->wait);
    main_of(2)->step = 16; /* the same call, but a step behind */
    expect(HANG_APART, "..x..");
}

static void nobody_is_named_without_reason(void **state) {
    (void)state;
    expect(HANG_TOGETHER, ".....");
    says("gdn: all ranks wait in the data axis's sum of 64 elements");
    for (int r = 0; r < RANKS; r++) main_of(r)->wait[0] = 0;
    station[0].late = 0, station[2].late = 1;
    expect(HANG_SLOW, ".....");
    says("gdn: no rank waits for another, but step 17 does not end on rank 2 on node1, at \"reduce bucket "
         "3\"");
}

static void other_phases_name_their_keys(void **state) {
    (void)state;
    main_of(0)->phase = PHASE_START;
    main_of(0)->phase_seconds = 61;
    station[2] = (struct station){0};
    expect(HANG_SILENT, "..x..");
    says("(the start, for 61.0 s; watchdog.start is 60)");
    /* The writers, while the main threads train on. */
    all_wait(NULL);
    for (int r = 0; r < RANKS; r++) {
        station[r].late = r == 1 ? 1 + ACTIVITY_WRITER : 0;
        station[r].thread[ACTIVITY_WRITER] = (struct station_thread){
            .phase = PHASE_CHECKPOINT, .step = 12, .phase_seconds = 21, .wait = "the agreement of all ranks"};
    }
    station[3].thread[ACTIVITY_WRITER].wait[0] = 0;
    expect(HANG_BUSY, "...x.");
    says("in the checkpoint of step 12");
    says("watchdog.checkpoint is 20)");
    says("writing");
}

static void one_rank_alone(void **state) {
    (void)state;
    struct hang one = five;
    one.ranks = 1;
    main_of(0)->wait[0] = 0;
    assert_int_equal(hang_judge(&one, culprit), HANG_SLOW);
    hang_report(&one, culprit, text, sizeof text);
    says("step 17 does not end on rank 0 on node0");
}

/* Many ranks' words end where the room does. */
static void words_fit(void **state) {
    (void)state;
    size_t length = hang_report(&five, culprit, text, sizeof text);
    assert_true(hang_room(RANKS) > length);
    for (size_t size = 1; size <= length; size += 7) {
        memset(text, 'x', sizeof text);
        assert_int_equal(hang_report(&five, culprit, text, size), size - 1);
        assert_int_equal(text[size - 1], 0);
        assert_int_equal(text[size], 'x');
    }
}

/* -------------------------------------------------------------------------------------------- slow ranks */

static const int groups[8] = {0, 0, 0, 0, 1, 1, 1, 2};

static int judge(struct slow *slow, double a, double b, double c, double d, double e, double f, double g,
                 int *found) {
    return slow_judge(slow, (const double[]){a, b, c, d, e, f, g, 99}, found);
}

static void slow_ranks_are_found(void **state) {
    (void)state;
    struct slow slow;
    int found[8];
    assert_int_equal(slow_create(8, groups, 1.5, &slow), 0);
    /* Groups have different work; the last one is alone. Once is chance. */
    assert_int_equal(judge(&slow, 1, 1.4, 1, 1.6, 3, 3, 4.4, found), 0);
    assert_int_equal(judge(&slow, 1, 1.4, 1, 1.6, 3, 3, 4.4, found), 1);
    assert_int_equal(found[0], 3);
    assert_true(slow.median[3] == 1 && slow.median[4] == 3);
    /* Told once as long as it lasts. */
    assert_int_equal(judge(&slow, 1, 1, 1, 9, 3, 3, 3, found), 0);
    assert_int_equal(judge(&slow, 1, 1, 1, 9, 9, 3, 3, found), 0);
    /* In a row, not just twice. */
    assert_int_equal(judge(&slow, 1, 1, 1, 1, 3, 3, 3, found), 0);
    assert_int_equal(judge(&slow, 1, 1, 1, 9, 9, 3, 3, found), 0);
    assert_int_equal(judge(&slow, 1, 1, 1, 9, 9, 3, 3, found), 2);
    assert_int_equal(found[0], 3);
    assert_int_equal(found[1], 4);
    slow_free(&slow);
}

static void of_two_ranks_the_slower_is_found(void **state) {
    (void)state;
    struct slow slow;
    int found[2];
    assert_int_equal(slow_create(2, groups, 1.5, &slow), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(slow_judge(&slow, (double[]){1, 1.6}, found), i);
    assert_int_equal(found[0], 1);
    for (int i = 0; i < 5; i++) assert_int_equal(slow_judge(&slow, (double[]){1, 1.4}, found), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(slow_judge(&slow, (double[]){1e-5, 9e-4}, found), 0); /* too little */
    slow_free(&slow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_told),
        cmocka_unit_test(every_change_moves),
        cmocka_unit_test(waiting_is_added_up),
        cmocka_unit_test(writer_has_its_own),
        cmocka_unit_test_setup(silent_ranks_are_named, all_wait),
        cmocka_unit_test_setup(busy_ranks_are_named, all_wait),
        cmocka_unit_test_setup(ranks_elsewhere_are_named, all_wait),
        cmocka_unit_test_setup(nobody_is_named_without_reason, all_wait),
        cmocka_unit_test_setup(other_phases_name_their_keys, all_wait),
        cmocka_unit_test_setup(one_rank_alone, all_wait),
        cmocka_unit_test_setup(words_fit, all_wait),
        cmocka_unit_test(slow_ranks_are_found),
        cmocka_unit_test(of_two_ranks_the_slower_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
