/* Command lines: what is accepted, and one helpful sentence for what is not. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/support/unit.h"
#include "train/command/options.h"

static int take(int key, const char *value, void *input) {
    if (key == 'n') return options_long("--number", value, 1, 9, input);
    if (key == 'q') *(long *)input = -1;
    return GDN_OK;
}

static const struct argp_option own[] = {
    {"number", 'n', "N", 0, "A number", 0},
    {"quiet", 'q', NULL, 0, "Says nothing", 0},
    {"nun", 1, NULL, 0, "Nothing", 0},
    {0},
};

static const struct command_line line = {.arguments = "FILE",
                                         .doc = "Tests.",
                                         .common = OPTION_SET | OPTION_RESUME,
                                         .own = own,
                                         .take = take,
                                         .min = 1,
                                         .max = 2};

/* Parses the words, which end with NULL; `number` is what the command's own options set. */
static int parse(struct options *out, long *number, ...) {
    static char name[] = "gdn try";
    static char *argv[16];
    int argc = 1;
    argv[0] = name;
    va_list list;
    va_start(list, number);
    while ((argv[argc] = va_arg(list, char *))) argc++;
    va_end(list);
    return options_parse(&line, argc, argv, out, number);
}

static void accepted(void **state) {
    (void)state;
    struct options options;
    long number = 0;
    assert_int_equal(
        parse(&options, &number, "a", "--set", "x=1", "-n3", "--set=y=2", "b", "--resume", "none", NULL),
        GDN_OK);
    assert_true(!options.done && options.num_set == 2 && options.num_arguments == 2 && number == 3);
    assert_string_equal(options.set[0], "x=1");
    assert_string_equal(options.set[1], "y=2");
    assert_string_equal(options.argument[0], "a");
    assert_string_equal(options.argument[1], "b");
    assert_string_equal(options.resume, "none");
    assert_null(options.run_dir);
    options_free(&options);
    assert_int_equal(parse(&options, &number, "--", "--set", NULL), GDN_OK);
    assert_string_equal(options.argument[0], "--set");
    options_free(&options);
    assert_int_equal(parse(&options, &number, "a", "--num", "7", "-q", NULL),
                     GDN_OK); /* an unambiguous beginning */
    assert_int_equal(number, -1);
    options_free(&options);
}

#define REFUSED(text, ...)                                                                                   \
    do {                                                                                                     \
        struct options options_;                                                                             \
        long number_ = 0;                                                                                    \
        assert_int_equal(parse(&options_, &number_, __VA_ARGS__, NULL), GDN_INPUT);                          \
        if (!strstr(gdn_failure(), text)) fail_msg("'%s' is not said by: %s", text, gdn_failure());          \
        gdn_failure_clear();                                                                                 \
        options_free(&options_);                                                                             \
    } while (0)

static void refused(void **state) {
    (void)state;
    REFUSED("gdn try: unknown option --sett; did you mean --set?", "a", "--sett", "x=1");
    REFUSED("gdn try: unknown option --frobnicate; gdn try --help", "a", "--frobnicate=3");
    REFUSED("unknown option --run-dir", "a", "--run-dir", "x"); /* not an option of this command */
    REFUSED("unknown option -z", "a", "-z");
    REFUSED("unknown option -z", "-zq", "a");
    REFUSED("--set needs a value: --set KEY=VALUE", "a", "--set");
    REFUSED("-n needs a value: -n N", "a", "-n");
    REFUSED("--quiet takes no value", "a", "--quiet=3");
    REFUSED("--nu may be --number or --nun", "a", "--nu");
    REFUSED("--number is '3.5': an integer from 1 to 9 is expected", "a", "--number=3.5");
    REFUSED("--number is '0'", "a", "-n", "0");
    REFUSED("an argument is missing: gdn try FILE is expected", "--quiet");
    REFUSED("'c' is an argument too many", "a", "b", "c");
}

/* --help is answered, whatever else is wrong behind it, and is no failure. */
static void help(void **state) {
    (void)state;
    struct options options;
    long number = 0;
    assert_int_equal(parse(&options, &number, "--help", "--nonsense", NULL), GDN_OK);
    assert_true(options.done);
    assert_string_equal(gdn_failure(), "");
    options_free(&options);
}

static void reals(void **state) {
    (void)state;
    double value;
    assert_int_equal(options_real("--top-p", "0.5", 0, 1, &value), GDN_OK);
    assert_true(value == 0.5);
    static const char *const wrong[] = {"1.5", "-0.1", "nan", "inf", "0x1", "", " 1", "1 ", "half"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(options_real("--top-p", wrong[i], 0, 1, &value), GDN_INPUT);
        assert_non_null(strstr(gdn_failure(), "--top-p is '"));
        assert_non_null(strstr(gdn_failure(), "from 0 to 1"));
        gdn_failure_clear();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(accepted), cmocka_unit_test(refused),
                                       cmocka_unit_test(help), cmocka_unit_test(reals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
