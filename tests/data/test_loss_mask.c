/* The HDF5 dataset `loss_mask`: which tokens of a stream and of samples count, in every storage that is read
 * another way, and what is refused. */
#include "tests/data/fixtures.h"

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "data/identity.h"
#include "data/sampler.h"
#include "kernels/base/marks.h"

enum { N = 10000 }; /* more than two of the reader's blocks */

/* Adds a dataset of values 0 … of a period, so many of them; a new file where it is the tokens. */
static void put(const char *path, const char *name, hid_t type, hsize_t count, hsize_t chunk, int period) {
    bool first = !strcmp(name, "tokens");
    hid_t file = first ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                       : H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &count, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    int *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (hsize_t i = 0; i < count; i++) values[i] = (int)(i % (hsize_t)period);
    if (chunk) H5Pset_chunk(how, 1, &chunk), H5Pset_deflate(how, 4);
    hid_t dataset = H5Dcreate(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Dclose(dataset);
    H5Pclose(how);
    H5Sclose(space);
    assert_true(H5Fclose(file) >= 0);
}

static struct sampler *open_sampler(const char *glob) {
    char *path = strdup(glob);
    struct sampler_source source = {{.paths = &path, .count = 1}, 1};
    struct sampler_options options = {
        .sources = &source, .num_sources = 1, .format = &hdf5_format, .length = 10, .to = 1};
    struct sampler *sampler;
    if (sampler_open(&options, &sampler)) fail_msg("%s", gdn_failure());
    free(path);
    return sampler;
}

/* One file with a mask, mapped or through the library, and then one without, whose tokens all count. */
static void counted(void **state) {
    (void)state;
    put("two_2.h5", "tokens", H5T_STD_U16LE, N, 0, 7);
    for (int chunked = 0; chunked < 2; chunked++) {
        put("two_1.h5", "tokens", H5T_STD_U16LE, N, 0, 7);
        put("two_1.h5", "loss_mask", H5T_STD_U8LE, N, chunked ? 999 : 0, 2);
        struct sampler *sampler = open_sampler("two_*.h5");
        assert_true(sampler_masked(sampler));
        int32_t row[11];
        for (long s = 0; s < 2 * N / 10 - 1; s++) {
            assert_int_equal(sampler_read(sampler, s, 1, 7, row), GDN_OK);
            for (int t = 0; t < 11; t++) {
                long at = 10 * s + t;
                int mark = at < N && at % 2 == 0 ? MARK_UNCOUNTED : 0;
                assert_int_equal(row[t], (int)(at % N % 7) | mark);
            }
        }
        sampler_close(sampler);
    }
    struct sampler *sampler = open_sampler("two_2.h5");
    assert_false(sampler_masked(sampler));
    sampler_close(sampler);
}

static struct tokens_summary summary(const char *path, struct tokens_identity *identity) {
    struct tokens *tokens;
    struct tokens_summary about;
    assert_int_equal(tokens_open(path, &hdf5_format, &tokens), GDN_OK);
    assert_int_equal(tokens_summarize(tokens, &about), GDN_OK);
    assert_int_equal(tokens_identify(tokens, identity), GDN_OK);
    tokens_close(tokens);
    return about;
}

/* What is told of a mask; and that another one is other data to a run that goes on. */
static void told(void **state) {
    (void)state;
    struct tokens_identity plain, halves, none;
    put("told.h5", "tokens", H5T_STD_U16LE, N, 0, 7);
    assert_int_equal(summary("told.h5", &plain).counted, -1);
    put("told.h5", "loss_mask", H5T_STD_U8LE, N, 0, 2);
    assert_int_equal(summary("told.h5", &halves).counted, N / 2);
    put("told.h5", "tokens", H5T_STD_U16LE, N, 0, 7);
    put("told.h5", "loss_mask", H5T_STD_U8LE, N, 0, 1);
    assert_int_equal(summary("told.h5", &none).counted, 0);
    assert_true(plain.hash != halves.hash && halves.hash != none.hash);
    char *text = describe("told.h5", &hdf5_format);
    assert_non_null(strstr(text, "counted    0 of the tokens"));
    free(text);
}

static void refuse(hid_t type, hsize_t count, int period, const char *words) {
    struct tokens *tokens;
    put("bad.h5", "tokens", H5T_STD_U16LE, N, 0, 7);
    put("bad.h5", "loss_mask", type, count, 0, period);
    int status = tokens_open("bad.h5", &hdf5_format, &tokens);
    if (!status) {
        int32_t row[N] = {0};
        status = tokens_mark_uncounted(tokens, 0, N, row);
        tokens_close(tokens);
    }
    expect_failure(status, GDN_INPUT, words);
}

static void refused(void **state) {
    (void)state;
    refuse(H5T_STD_U8LE, N - 1, 2, "bad.h5|`loss_mask` has 9999 elements|tokens, 10000");
    refuse(H5T_STD_U8LE, N, 3, "bad.h5|element 2 of loss_mask is 2|0 or 1");
    refuse(H5T_STD_I32LE, N, 2, "bad.h5|`loss_mask` holds int32|uint8");
    refuse(H5T_IEEE_F32LE, N, 2, "bad.h5|`loss_mask` holds floating-point numbers|integers");
}

/* Every handle is closed, also after failures. Runs last. */
static void nothing_left_open(void **state) {
    (void)state;
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(counted, clear_failure),
        cmocka_unit_test_setup(told, clear_failure),
        cmocka_unit_test_setup(refused, clear_failure),
        cmocka_unit_test_setup(nothing_left_open, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
