/* What tests/dist/checkpoint/test_damage.c leaves out: every flipped bit and every cut of the files that
 * nodes write, of files of format version 1, and of `latest` and `best`. An argument `all` tries
 * everything; without it a sample is tried. The first argument is a file of version 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/dist/checkpoint/sample.h"
#include "tests/support/scratch.h"
#include "tests/support/world.h"

static const char *old_file = "version_1.h5";
static bool all;

enum { OLDER = 11, NEWER = 19 }; /* steps; one flipped bit makes many another number of the second */

struct setting {
    char *directory;
    struct sample *older, *newer, *loaded;
};
static struct setting s;

static const char *file_of(int step, const char *name) {
    return format("%s/checkpoints/step_%08d/%s", s.directory, step, name);
}

static void save(const struct sample *sample, int step) {
    struct checkpoint_info info = sample_info(step, 1, 1);
    sample_files = FILES_NODE;
    assert_int_equal(sample_save(&world, s.directory, sample, &info, 0), 0);
}

static int set_up(void) {
    TRY(world_create());
    s.directory = scratch_folder();
    s.older = sample_new(1, 1), s.newer = sample_new(1, 2), s.loaded = sample_new(1, 3);
    save(s.older, OLDER);
    save(s.newer, NEWER);
    return 0;
}

static void tear_down(void) {
    sample_free(s.older);
    sample_free(s.newer);
    sample_free(s.loaded);
    free(s.directory);
    world_free();
}

static void assert_one_message(int status, const char *path, const char *what, long where) {
    if (!status) fail_msg("%s: %s %ld is not noticed", path, what, where);
    assert_int_equal(status, GDN_INPUT);
    if (!strstr(gdn_failure(), path) || strchr(gdn_failure(), '\n'))
        fail_msg("%s: %s %ld: %s", path, what, where, gdn_failure());
    gdn_failure_clear();
}

/* The whole of a checkpoint is found damaged by loading it and by `gdn checkpoint verify`. */
static void assert_noticed(const char *checkpoint, const char *what, long where) {
    assert_one_message(sample_load(&world, checkpoint, s.loaded, NULL), checkpoint, what, where);
    assert_one_message(checkpoint_verify(checkpoint, stdout), checkpoint, what, where);
}

static void assert_whole(const char *checkpoint) {
    assert_int_equal(sample_load(&world, checkpoint, s.loaded, NULL), 0);
    assert_true(sample_same(s.loaded, s.newer));
}

/* A file that belongs to `checkpoint`, bit by bit. */
static void flip_each(const char *checkpoint, const char *file, long stride) {
    long bits = 8 * file_length(file);
    for (long i = 0; i < bits; i += all ? 1 : stride) {
        flip_bit(file, i / 8, (int)(i % 8));
        assert_noticed(checkpoint, "flipped bit", i);
        flip_bit(file, i / 8, (int)(i % 8));
    }
}

/* The same cut at each block of `block` bytes, and one byte before and after it; and grown by a byte. */
static void cut_each(const char *checkpoint, const char *file, long block) {
    long length;
    char *bytes = read_bytes(file, &length);
    for (long at = 0; at <= length + 1; at += block)
        for (long n = at ? at - 1 : 0; n <= at + 1 && n <= length + 1; n++) {
            if (n == length) continue;
            write_bytes(file, bytes, n);
            assert_noticed(checkpoint, "cut at", n);
        }
    write_bytes(file, bytes, length + 1); /* read_bytes' zero byte */
    assert_noticed(checkpoint, "one byte more than", length);
    write_bytes(file, bytes, length);
    free(bytes);
}

static void parts_of_nodes(void **unused) {
    (void)unused;
    const char *checkpoint = strdup(file_of(NEWER, "checkpoint.h5"));
    const char *part = strdup(file_of(NEWER, "part_00000.h5"));
    const char *other = strdup(file_of(OLDER, "part_00000.h5"));
    assert_whole(checkpoint);
    flip_each(checkpoint, part, 331);
    flip_each(checkpoint, checkpoint, 331);
    cut_each(checkpoint, part, all ? 512 : 4096);
    cut_each(checkpoint, checkpoint, all ? 512 : 4096);

    /* Missing, or whole but of another checkpoint. */
    long length;
    char *right = read_bytes(part, &length);
    assert_int_equal(unlink(part), 0);
    assert_noticed(checkpoint, "missing part", 0);
    char *wrong = read_bytes(other, &length);
    write_bytes(part, wrong, length);
    assert_noticed(checkpoint, "part of step", OLDER);
    write_bytes(part, right, length);
    assert_whole(checkpoint);
    free(right);
    free(wrong);
    free((char *)checkpoint);
    free((char *)part);
    free((char *)other);
}

static void version_1(void **unused) {
    (void)unused;
    long length;
    char *bytes = read_bytes(old_file, &length);
    const char *copy = strdup(format("%s/version_1.h5", s.directory));
    write_bytes(copy, bytes, length);
    assert_int_equal(sample_load(&world, copy, s.loaded, NULL), 0);
    flip_each(copy, copy, 331);
    cut_each(copy, copy, all ? 512 : 4096);
    assert_int_equal(sample_load(&world, copy, s.loaded, NULL), 0);
    free((char *)copy);
    free(bytes);
}

static bool marked = true; /* the directories of what `latest` and `best` name, as they are saved */

/* Whatever is in `latest`, one of the two is gone on from; the newer one, which is said where the line is not
 * its own; without marks, as of old, unless the older one is named. */
static void assert_found(const char *what, long where) {
    struct checkpoint found;
    char *text, *other, right[64], *said = NULL;
    long length;
    size_t size;
    FILE *log = open_memstream(&said, &size);
    int status = checkpoint_find(&world, s.directory, log, &found);
    fclose(log);
    if (status || !found.path) fail_msg("%s %ld in latest: nothing is found: %s", what, where, gdn_failure());
    snprintf(right, sizeof right, "step_%08d", OLDER);
    text = read_bytes(format("%s/checkpoints/latest", s.directory), &length);
    int64_t step =
        marked || strncmp(text, right, strlen(right)) || (text[strlen(right)] && text[strlen(right)] != '\n')
            ? NEWER
            : OLDER;
    if (found.info.step != step)
        fail_msg("%s %ld in latest: step %d is found", what, where, (int)found.info.step);
    checkpoint_close(&found);
    snprintf(right, sizeof right, "step_%08d", NEWER);
    bool own = !strncmp(text, right, strlen(right)) && (!text[strlen(right)] || text[strlen(right)] == '\n');
    bool told = strstr(said, "latest is damaged or was changed") && strstr(said, right);
    if (told != (marked && !own)) fail_msg("%s %ld in latest: said is '%s'", what, where, said);
    free(said);
    free(text);

    /* What is shown of the run directory does not fail either. */
    assert_int_equal(checkpoint_resolve(s.directory, &other), 0);
    free(other);
}

static void each_line(void) {
    const char *latest = strdup(format("%s/checkpoints/latest", s.directory));
    long length;
    char *bytes = read_bytes(latest, &length);
    for (long i = 0; i < 8 * length; i++) {
        flip_bit(latest, i / 8, (int)(i % 8));
        assert_found("flipped bit", i);
        flip_bit(latest, i / 8, (int)(i % 8));
    }
    for (long n = 0; n < length; n++) {
        write_bytes(latest, bytes, n);
        assert_found("bytes", n);
    }
    static const char *const wrong[] = {
        "step_00000000\n", "step_00000015\n",  "step_99999999\n",   "step_19\n", "\n",
        "step_-0000019\n", "step_00000019 \n", "../../etc/passwd\n"};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_text(latest, wrong[i]);
        assert_found("wrong line", i);
    }
    char noise[10000];
    memset(noise, 's', sizeof noise);
    write_bytes(latest, noise, sizeof noise);
    assert_found("long line", 0);
    assert_int_equal(unlink(latest), 0);
    write_text(latest, "");
    assert_found("nothing", 0);
    write_bytes(latest, bytes, length);
    free(bytes);
    free((char *)latest);
}

/* A line of `best`, which is asked for by name, is as good as that of `latest`. */
static void each_bit_of_best(void) {
    const char *best = strdup(format("%s/checkpoints/best", s.directory));
    long length = file_length(best);
    for (long i = 0; i < 8 * length; i++) {
        char *path;
        flip_bit(best, i / 8, (int)(i % 8));
        assert_int_equal(checkpoint_resolve(best, &path), 0);
        if (!strstr(path, format("step_%08d/", NEWER))) fail_msg("flipped bit %ld of best: %s", i, path);
        free(path);
        flip_bit(best, i / 8, (int)(i % 8));
    }
    free((char *)best);
}

static bool is_marked(int step, const char *pointer) {
    return !access(file_of(step, pointer), F_OK);
}

static void pointers(void **unused) {
    (void)unused;
    assert_true(is_marked(NEWER, "latest") && is_marked(NEWER, "best"));
    assert_false(is_marked(OLDER, "latest") || is_marked(OLDER, "best"));
    each_line();
    each_bit_of_best();

    /* Between two renames of a save both are marked, and the line is believed. */
    const char *latest = strdup(format("%s/checkpoints/latest", s.directory));
    write_text(file_of(OLDER, "latest"), "");
    write_text(latest, format("step_%08d\n", OLDER));
    struct checkpoint found;
    assert_int_equal(checkpoint_find(&world, s.directory, NULL, &found), 0);
    assert_int_equal(found.info.step, OLDER);
    checkpoint_close(&found);
    write_text(latest, format("step_%08d\n", NEWER));
    assert_int_equal(unlink(file_of(OLDER, "latest")), 0);

    /* A run directory of the time before marks. */
    const char *const names[] = {"latest", "best"};
    for (int i = 0; i < 2; i++) assert_int_equal(unlink(file_of(NEWER, names[i])), 0);
    marked = false;
    each_line();
    marked = true;

    char noise[1000];
    long length;
    memset(noise, 's', sizeof noise);
    /* `best` names what must not be removed, no more: the next save replaces it. */
    const char *best = strdup(format("%s/checkpoints/best", s.directory));
    write_bytes(best, noise, sizeof noise);
    save(s.newer, NEWER);
    char *line = read_bytes(best, &length);
    assert_string_equal(line, format("step_%08d\n", NEWER));
    assert_true(is_marked(NEWER, "latest") && is_marked(NEWER, "best"));
    free(line);
    free((char *)best);
    free((char *)latest);
}

int rank_main(void) {
    if (test_argument(1)) old_file = test_argument(1);
    all = test_argument(1) && test_argument(2) && !strcmp(test_argument(2), "all");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_nodes),
        cmocka_unit_test(version_1),
        cmocka_unit_test(pointers),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
