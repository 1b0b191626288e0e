/* The progress line: what it says at which width, and how often it is printed. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit.h"
#include "train/records/progress.h"

static const struct step_report report = {
    .step = 249, .loss = 3.14159, .grad_norm = 0.51234, .lr = 3e-4, .tokens_per_second = 12345};

static void says_everything_without_limit(void **state) {
    (void)state;
    char line[256];
    progress_line(line, sizeof line, 0, false, &report, 1000, 90);
    assert_string_equal(line,
                        "step 250/1000  25%  loss 3.1416  1:30 left  12345 tokens/s  norm 0.512  lr 0.0003");
    progress_line(line, sizeof line, 120, true, &report, 1000, 90);
    assert_string_equal(line, "step 250/1000  25% [=====               ]  loss 3.1416  1:30 left  12345 "
                              "tokens/s  norm 0.512  lr 0.0003");
}

static void keeps_to_the_width(void **state) {
    (void)state;
    char line[256];
    size_t longest = 0;
    for (int width = 1; width <= 200; width++) {
        progress_line(line, sizeof line, width, true, &report, 1000, 90);
        assert_true(strlen(line) <= (size_t)width);
        if (strlen(line) > longest) longest = strlen(line);
        if (width >= 40) assert_non_null(strstr(line, "loss 3.1416")); /* what matters stays */
    }
    assert_true(longest > 90);
}

static void says_durations(void **state) {
    (void)state;
    char text[32];
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0 s"},     {59.4, "59 s"},     {59.6, "1:00"},
                 {725, "12:05"}, {10900, "3:01:40"}, {183600, "2 d 03:00"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        progress_duration(cases[i].seconds, text);
        assert_string_equal(text, cases[i].text);
    }
}

/* Not on a terminal: steps that take no time give a first and a last line, and notes whole lines. */
static void plain_lines_are_rare(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *file = tmpfile();
    assert_non_null(file);
    struct progress progress;
    const struct train_config train = {.steps = 1000, .batch_size = 1};
    progress_open(&progress, file, 0, &train);
    for (long step = 0; step < 1000; step++) {
        struct step_report each = report;
        each.step = step;
        progress_step(&progress, &each);
        if (step == 499) progress_note(&progress, "half of %d", 1000);
    }
    progress_close(&progress);
    rewind(file);
    assert_true(getdelim(&text, &size, EOF, file) > 0);
    fclose(file);
    assert_int_equal(strncmp(text, "step 1/1000   0%", 16), 0);
    char *half = strstr(text, "\nhalf of 1000\nstep 1000/1000 100%");
    assert_non_null(half);
    assert_ptr_equal(strchr(text, '\n'), half);
    assert_null(strchr(text, '\r'));
    assert_null(strstr(half, "left"));
    free(text);
}

static void silent_without_output(void **state) {
    (void)state;
    struct progress progress;
    progress_open(&progress, NULL, 0, &(struct train_config){.steps = 10});
    progress_step(&progress, &report);
    progress_note(&progress, "nothing");
    progress_close(&progress);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_everything_without_limit),
        cmocka_unit_test(keeps_to_the_width),
        cmocka_unit_test(says_durations),
        cmocka_unit_test(plain_lines_are_rare),
        cmocka_unit_test(silent_without_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
