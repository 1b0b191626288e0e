/* The folder of checkpoints: the right ones are kept, the right one is found, whatever an interrupted save
 * has left. Runs on any number of ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/dist/checkpoint/saved.h"

static void assert_pointer(const char *directory, const char *pointer, const char *line) {
    barrier();
    long length;
    char *text = read_bytes(format("%s/checkpoints/%s", directory, pointer), &length);
    assert_string_equal(text, line);
    free(text);
    barrier();
}

static void keep_latest_best(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *sample = sample_new(1, 1);
    assert_false(checkpoint_any(directory));
    barrier();
    save(directory, sample, 10, 1.0, 1.0, 2);
    assert_true(checkpoint_any(directory));
    assert_pointer(directory, "best", "step_00000010\n");
    if (mesh.rank == 0) { /* what an interrupted save leaves */
        mkdir(format("%s/checkpoints/.step_00000015.tmp", directory), 0777);
        write_text(format("%s/checkpoints/.step_00000015.tmp/checkpoint.h5", directory), "half");
        write_text(format("%s/checkpoints/.latest.tmp", directory), "step_");
    }
    save(directory, sample, 20, 1.5, 1.0, 2);
    save(directory, sample, 30, NAN, 1.0, 2);
    save(directory, sample, 40, 1.25, 1.0, 2);
    assert_pointer(directory, "latest", "step_00000040\n");
    assert_pointer(directory, "best", "step_00000010\n");
    assert_true(there(file_of(directory, 10))); /* best */
    assert_false(there(file_of(directory, 20)));
    assert_true(there(file_of(directory, 30)) && there(file_of(directory, 40)));
    assert_false(there(format("%s/checkpoints/.step_00000015.tmp", directory)));
    assert_false(there(format("%s/checkpoints/.latest.tmp", directory)));
    barrier();
    save(directory, sample, 50, 0.5, 0.5, 1);
    assert_pointer(directory, "best", "step_00000050\n");
    assert_false(there(file_of(directory, 10)) || there(file_of(directory, 30)) ||
                 there(file_of(directory, 40)));
    sample_free(sample);
    free(directory);
}

static bool is_there(const char *directory, int step) {
    barrier();
    return !access(format("%s/checkpoints/step_%08d", directory, step), F_OK);
}

/* A damaged one does not count among the newest; those of every so-many-th step stay. */
static void keep_intact(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *sample = sample_new(1, 3);
    sample_keep_every = 5;
    for (int step = 5; step <= 8; step++) {
        struct checkpoint_info info = sample_info(step, NAN, NAN);
        if (step == 8 && mesh.rank == 0)
            flip_bit(format("%s/checkpoints/step_%08d/checkpoint.h5", directory, 7), 3000, 2);
        barrier();
        assert_int_equal(sample_save(&mesh, directory, sample, &info, 2), 0);
    }
    for (int step = 5; step <= 8; step++) assert_true(is_there(directory, step)); /* 8, 6; 7 is damaged; 5 */
    struct checkpoint_info info = sample_info(9, NAN, NAN);
    assert_int_equal(sample_save(&mesh, directory, sample, &info, 2), 0);
    assert_true(is_there(directory, 9) && is_there(directory, 8) && is_there(directory, 5));
    assert_false(is_there(directory, 7) || is_there(directory, 6));
    sample_keep_every = 0;
    info.step = 10;
    assert_int_equal(sample_save(&mesh, directory, sample, &info, 2), 0);
    assert_false(is_there(directory, 5) || is_there(directory, 8));
    sample_free(sample);
    free(directory);
}

static void replaced(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *first = sample_new(1, 1), *second = sample_new(1, 2), *loaded = sample_new(1, 3);
    struct checkpoint_info info;
    save(directory, first, 10, NAN, NAN, 0);
    save(directory, second, 10, NAN, NAN, 0);
    assert_int_equal(sample_load(&mesh, file_of(directory, 10), loaded, &info), 0);
    assert_true(sample_same(second, loaded));
    assert_false(there(format("%s/checkpoints/.step_00000010.tmp", directory)));
    barrier();
    /* As left by a crash between the two renames of a replacement: the old one comes back. Looking for it
     * alone leaves all as it is: another process may be saving. */
    struct checkpoint found;
    if (mesh.rank == 0) mkdir(format("%s/checkpoints/.step_00000020.tmp", directory), 0777);
    barrier();
    assert_int_equal(checkpoint_find(&mesh, directory, NULL, &found), 0);
    checkpoint_close(&found);
    assert_true(there(format("%s/checkpoints/.step_00000020.tmp", directory)));
    barrier();
    if (mesh.rank == 0) {
        rename(format("%s/checkpoints/step_00000010", directory),
               format("%s/checkpoints/.step_00000010.old", directory));
        assert_int_equal(checkpoint_clean_up(directory), 0);
        assert_false(there(format("%s/checkpoints/.step_00000020.tmp", directory)));
    }
    barrier();
    assert_int_equal(checkpoint_find(&mesh, directory, NULL, &found), 0);
    assert_string_equal(found.path, file_of(directory, 10));
    checkpoint_close(&found);
    sample_free(first);
    sample_free(second);
    sample_free(loaded);
    free(directory);
}

/* The text of a log file. */
static char *logged(FILE *log) {
    static char text[4096];
    fflush(log);
    rewind(log);
    text[fread(text, 1, sizeof text - 1, log)] = 0;
    return text;
}

static void find_newest_intact(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct checkpoint found;
    struct sample *sample = sample_new(1, 1);
    FILE *log = tmpfile();
    assert_int_equal(checkpoint_find(&mesh, directory, log, &found), 0);
    assert_null(found.path);
    for (int step = 10; step <= 30; step += 10) save(directory, sample, step, NAN, NAN, 0);
    assert_int_equal(checkpoint_find(&mesh, directory, log, &found), 0);
    assert_string_equal(found.path, file_of(directory, 30));
    checkpoint_close(&found);
    barrier();
    if (mesh.rank == 0) flip_bit(file_of(directory, 30), file_length(file_of(directory, 30)) / 2, 3);
    assert_int_equal(checkpoint_find(&mesh, directory, log, &found), 0);
    assert_string_equal(found.path, file_of(directory, 20));
    checkpoint_close(&found);
    if (mesh.rank == 0) {
        assert_non_null(strstr(logged(log), "warning: checkpoint step_00000030 is skipped: "));
        assert_ptr_equal(strchr(logged(log), '\n') + 1, strchr(logged(log), 0)); /* one line */
        assert_int_equal(truncate(file_of(directory, 20), 700), 0);
        assert_int_equal(unlink(file_of(directory, 10)), 0);
    }
    barrier();
    assert_refused(checkpoint_find(&mesh, directory, NULL, &found), "none of the 3 checkpoints in ");
    assert_null(found.path);
    /* A run resumed from an older step goes on from what it then wrote. */
    barrier();
    save(directory, sample, 15, NAN, NAN, 0);
    save(directory, sample, 30, NAN, NAN, 0);
    save(directory, sample, 15, NAN, NAN, 0);
    assert_int_equal(checkpoint_find(&mesh, directory, NULL, &found), 0);
    assert_string_equal(found.path, file_of(directory, 15));
    checkpoint_close(&found);
    fclose(log);
    sample_free(sample);
    free(directory);
}

static void resolve(void **unused) {
    (void)unused;
    char *directory = scratch_folder(), *path;
    struct sample *sample = sample_new(1, 1);
    save(directory, sample, 10, 1, 1, 0);
    save(directory, sample, 20, 2, 1, 0);
    const struct {
        const char *given;
        int step;
    } cases[] = {{"", 20},
                 {"/checkpoints", 20},
                 {"/checkpoints/step_00000010", 10},
                 {"/checkpoints/latest", 20},
                 {"/checkpoints/best", 10},
                 {"/checkpoints/step_00000010/checkpoint.h5", 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(checkpoint_resolve(format("%s%s", directory, cases[i].given), &path), 0);
        assert_string_equal(path, file_of(directory, cases[i].step));
        free(path);
    }
    assert_refused(checkpoint_resolve(format("%s/nowhere", directory), &path), "No such file");
    assert_refused(checkpoint_resolve("/dev", &path), "/dev has no checkpoint");
    assert_refused(checkpoint_resolve("/dev/null", &path), "neither a file nor a directory");
    sample_free(sample);
    free(directory);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_latest_best),   cmocka_unit_test(replaced),
        cmocka_unit_test(find_newest_intact), cmocka_unit_test(resolve),
        cmocka_unit_test(keep_intact),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
