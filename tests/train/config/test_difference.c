/* How a message names what differs in a long value: the entry and member of it, not the same beginning twice. */
#include <stdio.h>
#include <string.h>

#include "tests/support/unit.h"
#include "train/config/private.h"

/* So long that no list with it can be shown whole. */
#define LONG "\"/a/path/that/is/so/long/that/a/message/of/one/line/cannot/have/it/whole/and/then/some/more/of/it/0123456789/0123456789\""

static void differs(const char *now, const char *before, const char *path, const char *shown_now,
                    const char *shown_before, bool whole) {
    struct difference d;
    difference_find("model.rules", now, before, &d);
    assert_string_equal(d.path, path);
    assert_string_equal(d.now, shown_now);
    assert_string_equal(d.before, shown_before);
    assert_int_equal(d.whole, whole);
}

static void short_values(void **state) {
    (void)state;
    differs("3", "4", "model.rules", "3", "4", true);
    differs("[1, 2]", "[1, 3]", "model.rules", "[1, 2]", "[1, 3]", true);
    differs("[]", "[{kind: lane}]", "model.rules", "[]", "[{kind: lane}]", true);
}

static void entries(void **state) {
    (void)state;
    differs("[{path: " LONG "}, {kind: lane, layers: [1, 2]}]", "[{path: " LONG "}, {kind: lane, layers: [1, 3]}]",
            "model.rules[1]", "{kind: lane, layers: [1, 2]}", "{kind: lane, layers: [1, 3]}", false);
    differs("[{path: " LONG "}]", "[{path: " LONG "}, {kind: lane}]", "model.rules[1]", "not there", "{kind: lane}", false);
    differs("[{path: " LONG "}, 5]", "[{path: " LONG "}]", "model.rules[1]", "5", "not there", false);
    differs("[7]", "[8, {path: " LONG "}]", "model.rules[0]", "7", "8",
            true); /* all of the one now can be asked for */
    /* What brackets, commas and quotes in a text say is not of the list. */
    differs("[\"a, \\\"]}\", " LONG ", 1]", "[\"a, \\\"]}\", " LONG ", 2]", "model.rules[2]", "1", "2", false);
}

static void members(void **state) {
    (void)state;
    differs("[0, {path: " LONG ", layers: [1, 2], scale: 5.0}]", "[0, {path: " LONG ", layers: [1, 3], scale: 5.0}]",
            "model.rules[1].layers", "[1, 2]", "[1, 3]", false);
    differs("{one: " LONG ", \"two\": \"a\"}", "{one: " LONG ", \"two\": \"b\"}", "model.rules.two", "\"a\"",
            "\"b\"", false);
    /* Other members: nothing to hold one against the other. */
    struct difference d;
    difference_find("model.rules", "[{a: 1, path: " LONG "}]", "[{b: 1, path: " LONG "}]", &d);
    assert_string_equal(d.path, "model.rules[0]");
    assert_memory_equal(d.now, "{a: 1", 5);
    assert_memory_equal(d.before, "{b: 1", 5);
}

/* Of long texts what is around the place, not the beginning that both have. */
static void texts(void **state) {
    char now[400], before[400];
    struct difference d;
    (void)state;
    memset(now, 'x', 300), memset(before, 'x', 300);
    strcpy(now + 300, "new"), strcpy(before + 300, "old");
    difference_find("data.tokenizer", now, before, &d);
    assert_memory_equal(d.now, "...xxx", 6);
    assert_string_equal(d.now + strlen(d.now) - 4, "xnew");
    assert_string_equal(d.before + strlen(d.before) - 4, "xold");
    assert_false(d.whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_values), cmocka_unit_test(entries),
                                       cmocka_unit_test(members), cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
