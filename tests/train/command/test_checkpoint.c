/* gdn checkpoint ls, verify and diff: output and status. MPI is started for saving what they look at. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/dist/checkpoint/sample.h"
#include "tests/support/scratch.h"
#include "tests/support/world.h"
#include "train/command/commands.h"

struct setting {
    char *directory;
    char a[512], b[512]; /* run directories */
};

static struct setting s;

static int set_up(void) {
    TRY(world_create());
    s.directory = scratch_folder();
    snprintf(s.a, sizeof s.a, "%s", s.directory);
    snprintf(s.b, sizeof s.b, "%s/other", s.directory);
    if (mkdir(s.b, 0777)) return -1;
    struct sample *sample = sample_new(1, 1);
    int status = 0;
    for (int step = 10; step <= 30; step += 10) {
        struct checkpoint_info info = sample_info(step, step == 20 ? 1.5 : NAN, 1.5);
        status |= sample_save(&world, s.a, sample, &info, 0);
    }
    const struct row *row = &sample->table.row[5];
    sample->state.weight[row->offset + 2] += (real)0.125;
    struct checkpoint_info info = sample_info(30, NAN, NAN);
    status |= sample_save(&world, s.b, sample, &info, 0);
    sample_free(sample);
    return status;
}

static void tear_down(void) {
    free(s.directory);
    world_free();
}

/* Runs `gdn checkpoint` with up to three words; what it prints is in `printed`. */
static char printed[16384];

static int run(const char *word, const char *x, const char *y) {
    char *argv[] = {(char *)"gdn checkpoint", (char *)word, (char *)x, (char *)y, NULL};
    int argc = 1;
    while (argv[argc]) argc++;
    const char *path = format("%s/stdout", s.directory);
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    assert_non_null(freopen(path, "w", stdout));
    int status = cmd_checkpoint(argc, argv);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    long length;
    char *text = read_bytes(path, &length);
    snprintf(printed, sizeof printed, "%s", text);
    free(text);
    return status;
}

static void assert_printed(const char *word) {
    if (!strstr(printed, word)) fail_msg("'%s' is not in:\n%s", word, printed);
}

static void assert_failed(const char *word) {
    if (!strstr(gdn_failure(), word)) fail_msg("'%s' is not in: %s", word, gdn_failure());
    gdn_failure_clear();
}

static void differences(void **unused) {
    (void)unused;
    const char *ten = format("%s/checkpoints/step_00000010", s.a);
    assert_int_equal(run("diff", s.a, ten), 0);
    assert_printed("the tensors are the same\n");
    assert_int_equal(run("diff", s.a, s.b), 1);
    assert_failed("differ");
    assert_string_equal(printed, "/model/layers/1/select/weight: greatest difference 0.125\n");
    assert_int_equal(run("diff", s.a, "/nowhere"), GDN_INPUT);
    assert_failed("/nowhere");
    assert_int_equal(run("diff", s.a, NULL), GDN_INPUT);
    gdn_failure_clear();
}

static void list(void **unused) {
    (void)unused;
    assert_int_equal(run("ls", s.a, NULL), 0);
    assert_printed("        30            960              -");
    assert_printed("        20            640       1.500000");
    assert_printed("whole, latest\n");
    assert_printed("whole, best\n");
    assert_int_equal(run("ls", "/nowhere", NULL), GDN_INPUT);
    assert_failed("/nowhere");
}

/* One line, for programs: the same checkpoints, whole and damaged, in a folder whose name is no UTF-8. */
static void list_as_json(void **unused) {
    (void)unused;
    const char *file = format("%s/checkpoints/step_00000010/checkpoint.h5", s.a),
               *odd = format("%s/\xff", s.directory);
    assert_int_equal(symlink(s.a, odd), 0);
    flip_bit(file, 4000, 1);
    assert_int_equal(run("ls", odd, "--json"), 0);
    flip_bit(file, 4000, 1);
    assert_ptr_equal(strchr(printed, '\n'), printed + strlen(printed) - 1);
    json_t *all = json_loads(printed, 0, NULL);
    assert_int_equal(json_array_size(all), 3);
    for (int i = 0; i < 3; i++) {
        const json_t *entry = json_array_get(all, (size_t)i), *loss = json_object_get(entry, "loss"),
                     *reason = json_object_get(entry, "reason");
        int step = 30 - 10 * i;
        struct stat about;
        assert_int_equal(stat(format("%s/checkpoints/step_%08d/checkpoint.h5", s.a, step), &about), 0);
        assert_int_equal(json_integer_value(json_object_get(entry, "step")), step);
        assert_int_equal(json_integer_value(json_object_get(entry, "bytes")), about.st_size);
        const char *path = json_string_value(json_object_get(entry, "path")),
                   *wanted = format("/\xef\xbf\xbd/checkpoints/step_%08d/checkpoint.h5", step);
        assert_string_equal(strstr(path, "/\xef"), wanted);
        assert_int_equal(json_is_true(json_object_get(entry, "valid")), step != 10);
        assert_int_equal(json_is_true(json_object_get(entry, "latest")), step == 30);
        assert_int_equal(json_is_true(json_object_get(entry, "best")), step == 20);
        assert_true(step == 20 ? json_real_value(loss) == 1.5 : json_is_null(loss));
        assert_true(step == 10 ? json_is_null(json_object_get(entry, "samples"))
                               : json_integer_value(json_object_get(entry, "samples")) == 32 * step);
        assert_true(step == 10 ? strstr(json_string_value(reason), "is damaged") != NULL
                               : json_is_null(reason));
    }
    json_decref(all);
    unlink(format("%s/\xff", s.directory));
    assert_int_equal(run("ls", "/nowhere", "--json"), GDN_INPUT);
    assert_failed("/nowhere");
    assert_string_equal(printed, "");
}

static void verify(void **unused) {
    (void)unused;
    const char *ten = format("%s/checkpoints/step_00000010", s.a), *file = format("%s/checkpoint.h5", ten);
    assert_int_equal(run("verify", s.a, ten), 0);
    assert_printed("step_00000030/checkpoint.h5: whole, 28 datasets");
    assert_printed("step_00000010/checkpoint.h5: whole, 28 datasets");
    flip_bit(file, 4000, 1);
    assert_int_equal(run("verify", ten, s.a), GDN_INPUT);
    assert_printed("step_00000010/checkpoint.h5 is damaged");
    assert_printed("step_00000030/checkpoint.h5: whole");
    assert_failed("1 of 2 checkpoints are not whole");
    assert_int_equal(run("ls", s.a, NULL), 0);
    assert_printed("damaged: ");
    assert_int_equal(run("diff", s.a, ten), GDN_INPUT);
    assert_failed("is damaged");
    flip_bit(file, 4000, 1);
}

static void usage(void **unused) {
    (void)unused;
    static const char *const subcommands[] = {"ls", "verify", "diff"};
    assert_int_equal(run("--help", NULL, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_printed(subcommands[i]);
        assert_int_equal(run(subcommands[i], "--help", NULL), 0);
        assert_printed("Example: gdn checkpoint");
        assert_int_equal(run(subcommands[i], "--nonsense", NULL), GDN_INPUT);
        assert_failed("--nonsense");
        assert_int_equal(run(subcommands[i], NULL, NULL), GDN_INPUT);
        gdn_failure_clear();
        assert_int_equal(run("--help", NULL, NULL), 0);
    }
    assert_int_equal(run("list", NULL, NULL), GDN_INPUT);
    assert_failed("'list' is unknown");
    assert_int_equal(run(NULL, NULL, NULL), GDN_INPUT);
    assert_failed("ls, verify, diff, import or export is expected");
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences), cmocka_unit_test(list),  cmocka_unit_test(list_as_json),
        cmocka_unit_test(verify),      cmocka_unit_test(usage),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
