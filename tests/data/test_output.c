/* Where a file is written: what is looked at before the work, and what a rename may replace. */
#include "data/outcome.h"
#include "data/output.h"
#include "tests/data/fixtures.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_text(const char *path) {
    return output_text(path, "new", 3);
}

static void expect_text(const char *path, const char *text) {
    char found[16] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found - 1, file), strlen(text));
    fclose(file);
    assert_string_equal(found, text);
}

static void expect_kind(const char *path, mode_t kind) {
    struct stat about;
    assert_int_equal(lstat(path, &about), 0);
    assert_int_equal(about.st_mode & S_IFMT, kind);
}

static void what_is_no_file_stays(void **state) {
    (void)state;
    assert_int_equal(mkfifo("fifo", 0666), 0);
    assert_int_equal(mkdir("folder", 0777), 0);
    assert_int_equal(symlink("fifo", "to_fifo"), 0);
    for (int i = 0; i < 2; i++) {
        const char *path = i ? "to_fifo" : "fifo";
        expect_failure(output_verify("--out", path), GDN_INPUT, "--out |is not a file: the name of a file");
        expect_failure(write_text(path), GDN_INPUT, "is not a file: the name of a file");
    }
    expect_kind("fifo", S_IFIFO);
    expect_kind("to_fifo", S_IFLNK);
    expect_failure(output_verify("--out", "folder"), GDN_INPUT, "--out folder is a directory|name of a file");
    expect_failure(write_text("folder"), GDN_INPUT, "folder is a directory");
}

static void cannot_be_written(void **state) {
    (void)state;
    put_text("text", "text");
    assert_int_equal(symlink("loop", "loop"), 0);
    expect_failure(output_verify("--out", ""), GDN_INPUT, "--out is ''|the name of a file");
    expect_failure(output_verify("--out", "no/x"), GDN_INPUT, "--out no/x: cannot be written|No such file");
    expect_failure(output_verify("--out", "text/x"), GDN_INPUT, "--out text/x: cannot be written|Not a dir");
    expect_failure(output_verify("--out", "loop"), GDN_INPUT, "--out loop: cannot be written|symbolic links");
    expect_failure(write_text("loop"), GDN_INPUT, "loop: cannot be written");
}

/* Looking leaves nothing, and does not disturb who writes the same file. */
static void verify_leaves_all(void **state) {
    (void)state;
    struct output output;
    assert_int_equal(mkdir("own", 0777), 0);
    assert_int_equal(output_open("own/x", &output), GDN_OK);
    assert_int_equal(output_write(&output, "whole", 5), GDN_OK);
    assert_int_equal(output_verify("--out", "own/x"), GDN_OK);
    assert_int_equal(output_finish(&output, GDN_OK), GDN_OK);
    expect_text("own/x", "whole");
    assert_int_equal(output_verify("--out", "own/x"), GDN_OK);
    expect_text("own/x", "whole");
    assert_int_equal(unlink("own/x"), 0);
    assert_int_equal(rmdir("own"), 0);
}

/* Relative to where the link is, absolute, and two in a row; to what is there and what is not. */
static void links_are_followed(void **state) {
    (void)state;
    char here[1024], absolute[1100];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(absolute, sizeof absolute, "%s/linked/absolute", here);
    assert_int_equal(mkdir("linked", 0777), 0);
    put_text("linked/there", "old");
    put_text("linked/absolute", "old");
    const char *const links[][3] = {{"there", "linked/link_a", "linked/there"},
                                    {"linked/link_a", "link_b", "linked/there"},
                                    {absolute, "link_c", "linked/absolute"},
                                    {"linked/dangling", "link_d", "linked/dangling"}};
    for (int i = 0; i < 4; i++) {
        const char *link = links[i][1], *target = links[i][2];
        assert_int_equal(symlink(links[i][0], link), 0);
        assert_int_equal(output_verify("--out", link), GDN_OK);
        assert_int_equal(write_text(link), GDN_OK);
        expect_kind(link, S_IFLNK);
        expect_kind(target, S_IFREG);
        expect_text(target, "new");
        if (i < 3) put_text(target, "old");
    }
}

static void inputs_are_refused(void **state) {
    (void)state;
    assert_int_equal(mkdir("inputs", 0777), 0);
    assert_int_equal(mkdir("inputs/deep", 0777), 0);
    put_text("inputs/a", "a");
    put_text("inputs/deep/b", "b");
    assert_int_equal(link("inputs/a", "hard"), 0);
    assert_int_equal(symlink("inputs/a", "soft"), 0);
    const char *const refused[][2] = {{"inputs/a", "./inputs/../inputs/a"},
                                      {"hard", "inputs/a"},
                                      {"soft", "inputs/a"},
                                      {"inputs/a", "soft"},
                                      {"inputs/deep/b", "inputs"},
                                      {"inputs/a", "inputs/"}};
    for (int i = 0; i < 6; i++)
        expect_failure(output_refuse_input(refused[i][0], refused[i][1], "a document"), GDN_INPUT,
                       "is both a document and the output; choose another output");
    const char *const fine[][2] = {{"inputs/new", "inputs"},
                                   {"inputs/a", "inputs/deep"},
                                   {"inputs/a", "inputs/no"},
                                   {"no", "no"},
                                   {"inputs/a", "inputs/a/no"}};
    for (int i = 0; i < 5; i++)
        assert_int_equal(output_refuse_input(fine[i][0], fine[i][1], "a document"), GDN_OK);
}

/* A rename replaces an empty folder, but no link to one: known before the work. */
static void folders(void **state) {
    (void)state;
    struct outcome outcome;
    assert_int_equal(mkdir("empty", 0777), 0);
    assert_int_equal(symlink("empty", "to_empty"), 0);
    expect_failure(outcome_open("", &outcome), GDN_INPUT, "is ''|a name is expected");
    outcome_close(&outcome);
    expect_failure(outcome_open("to_empty", &outcome), GDN_INPUT, "to_empty cannot be written");
    outcome_close(&outcome);
    assert_int_equal(outcome_open("empty", &outcome), GDN_OK);
    assert_int_equal(outcome_write(&outcome, "a", "text"), GDN_OK);
    assert_int_equal(outcome_finish(&outcome), GDN_OK);
    outcome_close(&outcome);
    expect_text("to_empty/a", "text");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_no_file_stays, clear_failure),
        cmocka_unit_test_setup(cannot_be_written, clear_failure),
        cmocka_unit_test_setup(verify_leaves_all, clear_failure),
        cmocka_unit_test_setup(links_are_followed, clear_failure),
        cmocka_unit_test_setup(inputs_are_refused, clear_failure),
        cmocka_unit_test_setup(folders, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
