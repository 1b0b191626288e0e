/* Damaged files: every flipped bit and every cut is found, without a crash and in one message. An argument
 * `all` tries everything; without it a sample is tried. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/random.h"
#include "tests/dist/checkpoint/sample.h"
#include "tests/support/scratch.h"
#include "tests/support/world.h"

static bool all;

struct setting {
    char *directory;
    struct sample *saved, *loaded;
    struct checkpoint_info info;
    char with_digest[512];    /* path of the checkpoint */
    char without_digest[512]; /* the same without its first 512 bytes, as HDF5 tools may rewrite it: no
                           checksum of the whole */
};

static struct setting s;

static int set_up(void) {
    TRY(world_create());
    s.directory = scratch_folder();
    s.saved = sample_new(1, 1), s.loaded = sample_new(1, 1);
    s.info = sample_info(12, 1.5, 1.25);
    if (sample_save(&world, s.directory, s.saved, &s.info, 0)) return -1;
    snprintf(s.with_digest, sizeof s.with_digest, "%s/checkpoints/step_00000012/checkpoint.h5", s.directory);
    snprintf(s.without_digest, sizeof s.without_digest, "%s/unsealed.h5", s.directory);
    long length;
    char *bytes = read_bytes(s.with_digest, &length);
    write_bytes(s.without_digest, bytes + 512, length - 512);
    free(bytes);
    return 0;
}

static void tear_down(void) {
    sample_free(s.saved);
    sample_free(s.loaded);
    free(s.directory);
    world_free();
}

static int load(const char *path, struct checkpoint_info *info) {
    return sample_load(&world, path, s.loaded, info);
}

static int load_initial(const char *path, int *missing) {
    struct checkpoint_content content = sample_content(s.loaded);
    return checkpoint_load_initial(&world, path, &content, missing);
}

static void assert_one_message(int status, const char *path) {
    assert_int_equal(status, GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), path));
    assert_null(strchr(gdn_failure(), '\n'));
    gdn_failure_clear();
}

static bool same_info(const struct checkpoint_info *info) {
    return info->step == s.info.step && info->samples == s.info.samples && info->loss == s.info.loss &&
           info->best_loss == s.info.best_loss && !strcmp(info->config, s.info.config);
}

/* Where the digest is missing, the weights can still be had as starting weights, and only so. */
static void without_digest(void **unused) {
    (void)unused;
    struct checkpoint_info info;
    int missing;
    assert_int_equal(load(s.without_digest, &info), GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), "checkpoint.init_from"));
    gdn_failure_clear();
    assert_int_equal(load(s.with_digest, &info), 0);
    assert_true(same_info(&info) && sample_same(s.saved, s.loaded));
    memset(s.loaded->state.weight, 0, (size_t)s.loaded->table.total * sizeof(real));
    assert_int_equal(load_initial(s.without_digest, &missing), 0);
    assert_int_equal(missing, 0);
    assert_true(sample_same(s.saved, s.loaded));
}

/* A checkpoint as it was written: each flipped bit is found, wherever it is. */
static void flipped_bits(void **unused) {
    (void)unused;
    long bits = 8 * file_length(s.with_digest), step = all ? 1 : 67;
    for (long i = 0; i < bits; i += step) {
        struct checkpoint_info info;
        flip_bit(s.with_digest, i / 8, (int)(i % 8));
        int status = load(s.with_digest, &info);
        if (!status) fail_msg("bit %ld of byte %ld", i % 8, i / 8);
        assert_one_message(status, s.with_digest);
        flip_bit(s.with_digest, i / 8, (int)(i % 8));
    }
}

/* Starting weights from a file without a digest: HDF5 has bytes that are not read here, or not used, and
 * flipping these does no harm; every flipped bit that would change a weight is found. */
static void flipped_bits_without_digest(void **unused) {
    (void)unused;
    long bits = 8 * file_length(s.without_digest), step = all ? 7 : 331, harmless = 0, tried = 0;
    for (long i = 0; i < bits; i += step, tried++) {
        int missing;
        flip_bit(s.without_digest, i / 8, (int)(i % 8));
        memset(s.loaded->state.weight, 0, (size_t)s.loaded->table.total * sizeof(real));
        int status = load_initial(s.without_digest, &missing);
        if (status)
            assert_one_message(status, s.without_digest);
        else if (missing || !sample_same(s.saved, s.loaded))
            fail_msg("bit %ld of byte %ld, %d missing", i % 8, i / 8, missing);
        harmless += !status;
        flip_bit(s.without_digest, i / 8, (int)(i % 8));
    }
    print_message("%ld of %ld flipped bits were not of weights\n", harmless, tried);
}

static void cut_short(void **unused) {
    (void)unused;
    long length, step = all ? 1 : 97;
    char *bytes = read_bytes(s.with_digest, &length);
    const char *cut = format("%s/cut.h5", s.directory);
    for (long n = 0; n < length; n += n < 600 ? 13 : step) {
        struct checkpoint_info info;
        int missing;
        write_bytes(cut, bytes, n);
        assert_one_message(load(cut, &info), cut);
        if (n <= 512) continue;
        write_bytes(cut, bytes + 512, n - 512);
        assert_one_message(load_initial(cut, &missing), cut);
    }
    free(bytes);
}

static void longer(void **unused) {
    (void)unused;
    long length;
    char *bytes = read_bytes(s.with_digest, &length);
    const char *path = format("%s/longer.h5", s.directory);
    struct checkpoint_info info;
    write_bytes(path, bytes, length + 1); /* one zero byte more */
    assert_one_message(load(path, &info), path);
    free(bytes);
}

static void not_checkpoints(void **unused) {
    (void)unused;
    const char *path = format("%s/noise.h5", s.directory);
    static const char *const beginnings[] = {"", "gdn checkpoint\n", "\x89HDF\r\n\x1a\n",
                                             "\x89HDF\r\n\x1a\n\x02\x08\x08"};
    int missing;
    for (int length = 0; length < 20000; length += 997)
        for (int b = 0; b < 4; b++) {
            char noise[20000];
            struct checkpoint_info info;
            for (int i = 0; i < length; i++) noise[i] = (char)random_bits(3, (uint64_t)b, (uint64_t)i);
            for (int i = 0; beginnings[b][i] && i < length; i++) noise[i] = beginnings[b][i];
            write_bytes(path, noise, length);
            assert_one_message(load(path, &info), path);
            assert_one_message(load_initial(path, &missing), path);
            assert_one_message(checkpoint_verify(path, stdout), path);
        }
    struct checkpoint_info info;
    assert_one_message(load(s.directory, &info), s.directory);
    assert_one_message(load("/dev/null", &info), "/dev/null");
    assert_one_message(load("/dev/zero", &info), "/dev/zero");
}

/* What no run has done is read by none, and so by the save that reads what it has written. */
static void impossible_positions(void **unused) {
    (void)unused;
    static const int64_t positions[][2] = {
        {-1, 5}, {INT64_MIN, 5}, {INT64_MAX, 5}, {5, INT64_MAX}}; /* samples, tokens */
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        struct checkpoint_info info = sample_info(13, 1.5, 1.25);
        info.samples = positions[i][0], info.tokens = positions[i][1];
        assert_int_equal(sample_save(&world, s.directory, s.saved, &info, 0), GDN_INTERNAL);
        assert_non_null(
            strstr(gdn_failure(), i < 3 ? "damaged: attribute samples is" : "damaged: attribute tokens is"));
        gdn_failure_clear();
    }
}

int rank_main(void) {
    all = test_argument(1) && !strcmp(test_argument(1), "all");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_digest),
        cmocka_unit_test(flipped_bits),
        cmocka_unit_test(flipped_bits_without_digest),
        cmocka_unit_test(without_digest),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(longer),
        cmocka_unit_test(not_checkpoints),
        cmocka_unit_test(impossible_positions),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
