/* Streams of text: documents, separators, globs, places and what tokens_describe says. */
#include "tests/data/fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void one_file(void **state) {
    (void)state;
    const uint8_t bytes[] = {1, 255, 'a', 10, 200};
    put_file("one.txt", bytes, sizeof bytes);
    expect_stream("one.txt", &text_format, (int32_t[]){1, 255, 'a', 10, 200}, 5);
}

static void documents(void **state) {
    (void)state;
    put_text("doc_B", "xyz"); /* by bytes, capitals come first */
    put_text("doc_a", "p");
    put_text("doc_c", "qr");
    expect_stream("doc_?", &text_format, (int32_t[]){'x', 'y', 'z', 256, 'p', 256, 'q', 'r'}, 8);
}

static void wildcards_in_a_name(void **state) {
    (void)state;
    put_text("odd[1].txt", "k");
    expect_stream("odd\\[1].tx?", &text_format, (int32_t[]){'k'}, 1);
}

static void places(void **state) {
    (void)state;
    put_text("place_1", "abc");
    put_text("place_2", "de");
    struct tokens *tokens;
    assert_int_equal(tokens_open("place_*", &text_format, &tokens), GDN_OK);
    const struct {
        const char *file;
        long in_file;
    } expected[] = {{"place_1", 0}, {"place_1", 1}, {"place_1", 2},
                    {"place_1", 3}, {"place_2", 0}, {"place_2", 1}};
    assert_int_equal(tokens_count(tokens), 6);
    for (long i = 0; i < 6; i++) {
        long in_file;
        assert_string_equal(tokens_place(tokens, i, &in_file), expected[i].file);
        assert_int_equal(in_file, expected[i].in_file);
    }
    tokens_close(tokens);
}

/* A list of files and globs: in its order, and no file by two of its names. */
static void lists(void **state) {
    (void)state;
    put_text("list_1", "a");
    put_text("list_2", "b");
    put_text("list_3", "c");
    assert_int_equal(symlink("list_2", "list_link"), 0);
    const struct {
        struct path_list list;
        const char *text;
    } right[] = {
        {{.paths = (char *[]){"list_3", "list_1"}, .count = 2}, "c|a"},
        {{.paths = (char *[]){"list_2", "list_[13]"}, .count = 2}, "b|a|c"},
        {{.paths = (char *[]){"list_?", "doc_a"}, .count = 2}, "a|b|c|p"},
        {{.paths = (char *[]){"list_[2l]*"}, .count = 1}, "b|b"}, /* of one glob, as ever */
    };
    put_text("doc_a", "p");
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        struct tokens *tokens;
        int32_t values[8];
        long count = (long)strlen(right[i].text);
        if (tokens_open_list(&right[i].list, &text_format, &tokens)) fail_msg("%s", gdn_failure());
        assert_int_equal(tokens_count(tokens), count);
        assert_int_equal(tokens_read(tokens, 0, count, values), GDN_OK);
        for (long t = 0; t < count; t++)
            assert_int_equal(values[t], right[i].text[t] == '|' ? 256 : right[i].text[t]);
        tokens_close(tokens);
    }
    const struct {
        struct path_list list;
        const char *text;
    } wrong[] = {
        {{.paths = (char *[]){"list_1", "list_*"}, .count = 2},
         "'list_1' and 'list_*' both name list_1|data.sources"},
        {{.paths = (char *[]){"list_2", "list_3", "./list_2"}, .count = 3},
         "'list_2' and './list_2' both name ./list_2"},
        {{.paths = (char *[]){"list_link", "list_2"}, .count = 2},
         "'list_link' and 'list_2' both name list_2"},
        {{.paths = (char *[]){"list_1", "list_4"}, .count = 2}, "list_4|No such file"},
        {{.paths = (char *[]){"list_1", "lost_*"}, .count = 2}, "no file matches 'lost_*'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tokens *tokens;
        expect_failure(tokens_open_list(&wrong[i].list, &text_format, &tokens), GDN_INPUT, wrong[i].text);
        assert_null(tokens);
    }
}

static void bad_files(void **state) {
    (void)state;
    put_text("empty_1", "a");
    put_text("empty_2", "");
    mkdir("folder", 0777);
    expect_open_fails("missing.txt", &text_format, "missing.txt|No such file");
    expect_open_fails("missing_*.txt", &text_format, "no file matches|missing_*.txt");
    expect_open_fails("empty_2", &text_format, "empty_2|is empty");
    expect_open_fails("empty_*", &text_format, "empty_2|is empty");
    expect_open_fails("folder", &text_format, "folder|is not a file");
}

static void description(void **state) {
    (void)state;
    put_text("told_1", "bc");
    put_text("told_2", "da");
    char *text = describe("told_*", &text_format);
    assert_string_equal(text, "format     text\n"
                              "files      2: told_1 ... told_2\n"
                              "tokens     5\n"
                              "documents  2\n"
                              "stored as  bytes\n"
                              "bytes      4\n"
                              "values     97 to 256\n"
                              "first      98 99 256 100 97\n");
    free(text);
}

static void description_of_a_large_file(void **state) {
    (void)state;
    put_text("large", "a\1");
    set_size("large", 6l << 30);
    char *text = describe("large", &nanogpt_format);
    assert_non_null(strstr(text, "tokens     3221225472\n"));
    assert_non_null(strstr(text, "values     0 to 353 in a sample of 1048576 tokens\n"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_file, clear_failure),
        cmocka_unit_test_setup(documents, clear_failure),
        cmocka_unit_test_setup(wildcards_in_a_name, clear_failure),
        cmocka_unit_test_setup(places, clear_failure),
        cmocka_unit_test_setup(lists, clear_failure),
        cmocka_unit_test_setup(bad_files, clear_failure),
        cmocka_unit_test_setup(description, clear_failure),
        cmocka_unit_test_setup(description_of_a_large_file, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
