/* Who asks a run to stop, with a clock that the test sets: the file, the time limit, signals, and their
 * order. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/health/signals.h"
#include "train/loop/stop.h"

static double now;

static double test_clock(void) {
    return now;
}

static const char *file; /* that asks to stop */

static struct stop opened(double limit_minutes, int rank) {
    struct stop stop;
    now = 1000000;
    assert_int_equal(stop_open_with(&stop, scratch(), limit_minutes, rank, test_clock), GDN_OK);
    return stop;
}

static void make_file(void) {
    FILE *made = fopen(file, "w");
    assert_non_null(made);
    fclose(made);
}

static void environment(const char *slurm, const char *own) {
    slurm ? setenv("SLURM_JOB_END_TIME", slurm, 1) : unsetenv("SLURM_JOB_END_TIME");
    own ? setenv("GDN_END_TIME", own, 1) : unsetenv("GDN_END_TIME");
}

/* Seconds from the opening until it asks before work of the kind `next`, looked at every tenth of a second;
 * −1 where it does not within a day. */
static double asks_before(struct stop *stop, enum stop_work next, double checkpoint_seconds) {
    const double began = now;
    for (long tick = 0; tick < 864000; tick++) {
        now = began + (double)tick / 10;
        enum stop_reason reason = stop_asked(stop, next, checkpoint_seconds);
        if (reason == STOP_TIME) return now - began;
        assert_int_equal(reason, STOP_NONE);
    }
    return -1;
}

/* The same, with steps that take so long. */
static double asks_after(struct stop *stop, double step_seconds, double checkpoint_seconds) {
    stop_took(stop, STOP_STEP, step_seconds);
    return asks_before(stop, STOP_STEP, checkpoint_seconds);
}

static void nobody_asks(void **state) {
    (void)state;
    environment(NULL, NULL);
    struct stop stop = opened(0, 0);
    assert_true(asks_after(&stop, 1e3, 1e3) < 0);
    assert_int_equal(stop_honoured(&stop), GDN_OK); /* no file: nothing to do */
}

/* A limit of 100 minutes leaves a margin of a minute, one of 10 minutes half a minute, besides two steps and
 * two checkpoints. */
static void stops_before_the_limit(void **state) {
    (void)state;
    static const struct {
        double minutes, step, checkpoint, seconds;
    } cases[] = {{100, 0, 0, 6000 - 60},       {10, 0, 0, 600 - 30},      {100, 10, 0, 6000 - 60 - 20},
                 {100, 0, 25, 6000 - 60 - 50}, {10, 7, 5, 600 - 30 - 24}, {0.1, 1, 1, 6 - 0.3 - 4}};
    environment(NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stop stop = opened(cases[i].minutes, 0);
        double seconds = asks_after(&stop, cases[i].step, cases[i].checkpoint);
        assert_true(seconds > cases[i].seconds - 0.01 && seconds < cases[i].seconds + 0.21);
        now += 1e6;
        assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_TIME); /* stays asked for */
    }
}

/* The longest of the recent steps counts, wherever it was among them, and is forgotten in time. */
static void longest_step_counts(void **state) {
    (void)state;
    environment(NULL, NULL);
    for (int since = 0; since <= STOP_RECENT; since++) {
        struct stop stop = opened(100, 0);
        stop_took(&stop, STOP_STEP, 100);
        for (int i = 0; i < since; i++) {
            assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_NONE);
            stop_took(&stop, STOP_STEP, 1);
        }
        now += 6000 - 60 - 150; /* 50 s too late for two of 100 s, early enough for two of 1 s */
        assert_int_equal(stop_asked(&stop, STOP_STEP, 0), since < STOP_RECENT ? STOP_TIME : STOP_NONE);
    }
}

/* Where the next step has 16 times the sequences of those that were timed, it counts as 16 times as long; a
 * smaller one as they did. */
static void larger_batches_take_longer(void **state) {
    (void)state;
    environment(NULL, NULL);
    for (int larger = 0; larger < 2; larger++) {
        struct stop stop = opened(10, 0);
        stop_took(&stop, STOP_STEP, 1);
        stop_grows(&stop, STOP_STEP, larger ? 16 : 0.25);
        double seconds = asks_before(&stop, STOP_STEP, 0), expected = 600 - 30 - (larger ? 32 : 2);
        assert_true(seconds > expected - 0.01 && seconds < expected + 0.21);
    }
}

/* A limit of 10 minutes (30 s of margin), steps of 1 s, evaluations of 11 s in rounds of 2 s, checkpoints of
 * 3 s: steps are done as long as a step fits, however long evaluations take, and an evaluation is not begun
 * that does not fit, however long ago the last one was. */
static void each_kind_has_its_time(void **state) {
    (void)state;
    environment(NULL, NULL);
    static const struct {
        enum stop_work next;
        double seconds;
    } cases[] = {
        {STOP_STEP, 600 - 30 - 6 - 2}, {STOP_EVALUATION, 600 - 30 - 6 - 11}, {STOP_ROUND, 600 - 30 - 6 - 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stop stop = opened(10, 0);
        stop_took(&stop, STOP_EVALUATION, 11);
        stop_took(&stop, STOP_ROUND, 2);
        for (int step = 0; step < 100 * STOP_RECENT; step++) stop_took(&stop, STOP_STEP, 1);
        double seconds = asks_before(&stop, cases[i].next, 3);
        assert_true(seconds > cases[i].seconds - 0.01 && seconds < cases[i].seconds + 0.21);
    }
}

/* The first evaluation is begun, since nobody knows how long it takes; its rounds are asked about. */
static void first_evaluation_is_watched(void **state) {
    (void)state;
    environment(NULL, NULL);
    struct stop stop = opened(10, 0);
    stop_took(&stop, STOP_STEP, 1);
    now += 600 - 30 - 5;
    assert_int_equal(stop_asked(&stop, STOP_EVALUATION, 0), STOP_NONE);
    stop_took(&stop, STOP_ROUND, 2);
    assert_int_equal(stop_asked(&stop, STOP_ROUND, 0), STOP_NONE);
    now += 2;
    assert_int_equal(stop_asked(&stop, STOP_ROUND, 0), STOP_TIME);
}

static void slurm_tells_the_end(void **state) {
    (void)state;
    environment("1006000", "1001000");
    struct stop stop = opened(0, 0);
    double seconds = asks_after(&stop, 0, 0);
    assert_true(seconds > 5940 - 0.01 && seconds < 5940.21);
    environment(NULL, "1001000"); /* 1000 s left: a margin of 50 */
    stop = opened(0, 0);
    seconds = asks_after(&stop, 0, 0);
    assert_true(seconds > 950 - 0.01 && seconds < 950.21);
    environment("1006000", NULL); /* what the configuration says comes first */
    stop = opened(10, 0);
    seconds = asks_after(&stop, 0, 0);
    assert_true(seconds > 570 - 0.01 && seconds < 570.21);
    environment("900000", NULL); /* over already */
    stop = opened(0, 0);
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_TIME);
    environment("", ""); /* as if not there */
    stop = opened(0, 0);
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_NONE);
}

static void bad_times_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"soon", "12:30", "-5", "0", "1e9", "99999999999999999999"};
    struct stop stop;
    for (size_t i = 0; i < 2 * sizeof bad / sizeof *bad; i++) {
        const char *text = bad[i / 2];
        environment(i % 2 ? text : NULL, i % 2 ? NULL : text);
        assert_int_equal(stop_open(&stop, scratch(), 0, 0), GDN_INPUT);
        assert_non_null(strstr(gdn_failure(), i % 2 ? "SLURM_JOB_END_TIME" : "GDN_END_TIME"));
        assert_non_null(strstr(gdn_failure(), text));
        gdn_failure_clear();
    }
    environment(NULL, NULL);
}

/* Only rank 0 looks, at most once a second; removed once honoured. */
static void file_asks(void **state) {
    (void)state;
    environment(NULL, NULL);
    struct stop stop = opened(0, 0), other = opened(0, 1);
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_NONE);
    make_file();
    now += 0.5;
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_NONE);
    now += 0.6;
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_FILE);
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_FILE);
    assert_int_equal(stop_asked(&other, STOP_STEP, 0), STOP_NONE);
    assert_int_equal(stop_honoured(&other), GDN_OK);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(stop_honoured(&stop), GDN_OK);
    assert_int_not_equal(access(file, F_OK), 0);
    stop = opened(0, 0);
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_NONE);
    make_file();
    now -= 3600; /* the clock was set back */
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_FILE);
    assert_int_equal(stop_honoured(&stop), GDN_OK);
}

static void file_that_stays(void **state) {
    (void)state;
    char inside[80];
    struct stop stop = opened(0, 0);
    snprintf(inside, sizeof inside, "mkdir -p %s/more", file);
    assert_int_equal(system(inside), 0); /* a directory of that name cannot be unlinked */
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_FILE);
    assert_int_equal(stop_honoured(&stop), GDN_INTERNAL);
    assert_non_null(strstr(gdn_failure(), file));
    gdn_failure_clear();
    snprintf(inside, sizeof inside, "rm -r %s", file);
    assert_int_equal(system(inside), 0);
}

/* Sends this process a signal, which a thread takes in its own time. */
static void send(int number) {
    kill(getpid(), number);
    for (int i = 0; i < 1000 && signals_received() != number; i++) usleep(10000);
    assert_int_equal(signals_received(), number);
}

/* Any rank may get a signal, and it comes before all else. Last, since signals stay received. */
static void signals_ask(void **state) {
    (void)state;
    struct stop other = opened(0, 3), stop = opened(0, 0);
    make_file();
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_FILE);
    send(SIGUSR2);
    assert_int_equal(stop_asked(&other, STOP_STEP, 0), STOP_USR2);
    assert_int_equal(stop_asked(&other, STOP_STEP, 0), STOP_USR2);
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_USR2);
    send(SIGTERM);
    stop = opened(0, 1);
    assert_int_equal(stop_asked(&stop, STOP_STEP, 0), STOP_TERM);
    send(SIGINT);
    stop = opened(0, 1);
    assert_int_equal(stop_asked(&stop, STOP_EVALUATION, 0), STOP_INT);
    stop = opened(0, 0);
    assert_int_equal(stop_honoured(&stop), GDN_OK);
}

/* As if it had never been held back. */
static void second_interrupt_kills(void **state) {
    (void)state;
    int status;
    pid_t child = fork();
    if (!child) {
        if (signals_hold(true)) _exit(1);
        send(SIGINT);
        kill(getpid(), SIGINT);
        sleep(60);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

static void every_reason_has_words(void **state) {
    (void)state;
    assert_string_equal(stop_name(STOP_NONE), "");
    for (int r = STOP_NONE + 1; r < STOP_REASONS; r++) {
        assert_true(strlen(stop_name((enum stop_reason)r)) > 0);
        assert_true(strlen(stop_text((enum stop_reason)r)) > 0);
    }
    assert_string_equal(stop_name(STOP_FILE), "stop file");
    assert_string_equal(stop_name(STOP_TIME), "time limit");
    assert_string_equal(stop_name(STOP_USR2), "USR2");
    assert_string_equal(stop_text(STOP_USR1), "by signal USR1");
}

int main(void) {
    if (signals_hold(true)) return 1;
    file = strdup(scratch_path("stop"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_asks),
        cmocka_unit_test(stops_before_the_limit),
        cmocka_unit_test(longest_step_counts),
        cmocka_unit_test(larger_batches_take_longer),
        cmocka_unit_test(each_kind_has_its_time),
        cmocka_unit_test(first_evaluation_is_watched),
        cmocka_unit_test(slurm_tells_the_end),
        cmocka_unit_test(bad_times_are_refused),
        cmocka_unit_test(file_asks),
        cmocka_unit_test(file_that_stays),
        cmocka_unit_test(second_interrupt_kills),
        cmocka_unit_test(signals_ask),
        cmocka_unit_test(every_reason_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
