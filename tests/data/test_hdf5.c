/* The HDF5 dataset `tokens` in every storage that has to be told apart, written here with the library;
 * damage. */
#include "tests/data/fixtures.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 20000 }; /* more than two of the reader's blocks */

static int64_t values[N];
static int32_t expected[N];

/* How a dataset is stored. */
struct storage {
    hid_t type;
    hsize_t chunk; /* 0: contiguous */
    bool compressed;
    hsize_t userblock;    /* bytes before the file proper */
    const char *external; /* file that has the raw data; NULL: the same file */
    hsize_t count;        /* N where 0 */
    const char *dataset;  /* "tokens" where NULL */
    int dimensions;       /* 1 where 0 */
    bool unwritten;
};

static void put_dataset(const char *path, struct storage s) {
    hsize_t shape[2] = {s.count ? s.count : N, 1};
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), how = H5Pcreate(H5P_DATASET_CREATE);
    if (s.userblock) H5Pset_userblock(creation, s.userblock);
    if (s.chunk) H5Pset_chunk(how, 1, &s.chunk);
    if (s.compressed) H5Pset_deflate(how, 4);
    if (s.external) H5Pset_external(how, s.external, 0, N * H5Tget_size(s.type));
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, H5P_DEFAULT);
    hid_t space = H5Screate_simple(s.dimensions ? s.dimensions : 1, shape, NULL);
    hid_t dataset =
        H5Dcreate(file, s.dataset ? s.dataset : "tokens", s.type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(dataset >= 0);
    hid_t memory = H5Tget_sign(s.type) == H5T_SGN_NONE ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64;
    if (!s.unwritten) assert_true(H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(how);
    H5Pclose(creation);
    assert_true(H5Fclose(file) >= 0);
}

/* Fills values, and what is to be read back, with N numbers from `min` to `max`. */
static void fill(int64_t min, int64_t max) {
    for (int i = 0; i < N; i++) {
        values[i] = min + (max - min) * (i % 1009) / 1008;
        expected[i] = (int32_t)values[i];
    }
}

/* Whether the stream is mapped, which the description tells. */
static bool is_mapped(const char *path) {
    char *text = describe(path, &hdf5_format);
    bool mapped = !strstr(text, "through the HDF5 library");
    free(text);
    return mapped;
}

static void check(struct storage storage, bool mapped) {
    put_dataset("check.h5", storage);
    assert_int_equal(is_mapped("check.h5"), mapped);
    expect_stream("check.h5", &hdf5_format, expected, N);
}

static void every_type(void **state) {
    (void)state;
    fill(-128, 127);
    check((struct storage){.type = H5T_STD_I8LE}, true);
    fill(0, 255);
    check((struct storage){.type = H5T_STD_U8LE}, true);
    fill(-32768, 32767);
    check((struct storage){.type = H5T_STD_I16LE}, true);
    check((struct storage){.type = H5T_STD_I16BE}, false);
    fill(0, 65535);
    check((struct storage){.type = H5T_STD_U16LE}, true);
    fill(INT32_MIN, INT32_MAX);
    check((struct storage){.type = H5T_STD_I32LE}, true);
    check((struct storage){.type = H5T_STD_I64LE}, true);
    check((struct storage){.type = H5T_STD_I64BE}, false);
    fill(0, INT32_MAX);
    check((struct storage){.type = H5T_STD_U32LE}, true);
    check((struct storage){.type = H5T_STD_U32BE}, false);
    check((struct storage){.type = H5T_STD_U64LE}, true);
}

/* A type of 24 bits in 4 bytes, which no machine type equals. */
static void odd_type(void **state) {
    (void)state;
    hid_t type = H5Tcopy(H5T_STD_U32LE);
    H5Tset_precision(type, 24);
    fill(0, (1 << 24) - 1);
    check((struct storage){.type = type}, false);
    H5Tclose(type);
}

static void every_storage(void **state) {
    (void)state;
    fill(0, 50000);
    check((struct storage){.type = H5T_STD_U16LE, .userblock = 512}, true);
    check((struct storage){.type = H5T_STD_I32LE, .chunk = 1000}, false);
    check((struct storage){.type = H5T_STD_I32LE, .chunk = 3000, .compressed = true}, false);
    check((struct storage){.type = H5T_STD_I32LE, .external = "raw.dat"}, false);
    memset(expected, 0, sizeof expected);
    check((struct storage){.type = H5T_STD_I32LE, .unwritten = true}, false);
}

static void several_files(void **state) {
    (void)state;
    fill(0, 50000);
    put_dataset("part_1.h5", (struct storage){.type = H5T_STD_I32LE, .count = 1009});
    put_dataset("part_2.h5", (struct storage){.type = H5T_STD_I16BE, .count = 10, .chunk = 4});
    int32_t joined[1019];
    memcpy(joined, expected, 1009 * sizeof *joined);
    memcpy(joined + 1009, expected, 10 * sizeof *joined);
    expect_stream("part_*.h5", &hdf5_format, joined, 1019);
}

static void values_beyond_int32(void **state) {
    (void)state;
    /* an unsigned type is written as uint64, so that −1 becomes 2^64 − 1 */
    const struct {
        hid_t type;
        int64_t value;
        const char *text;
    } cases[] = {{H5T_STD_U32LE, 4000000000, "4000000000"},   {H5T_STD_U32BE, 4000000000, "4000000000"},
                 {H5T_STD_I64LE, -2147483649, "-2147483649"}, {H5T_STD_I64BE, 1ll << 40, "1099511627776"},
                 {H5T_STD_U64LE, -1, "18446744073709551615"}, {H5T_STD_U64BE, -1, "18446744073709551615"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t read[N];
        struct tokens *tokens;
        fill(0, 100);
        values[N - 2] = cases[i].value;
        put_dataset("wide.h5", (struct storage){.type = cases[i].type});
        assert_int_equal(tokens_open("wide.h5", &hdf5_format, &tokens), GDN_OK);
        assert_int_equal(tokens_read(tokens, 0, N - 2, read), GDN_OK);
        expect_failure(tokens_read(tokens, 1, N - 1, read), GDN_INPUT, "wide.h5|token 19998 ");
        tokens_read(tokens, 1, N - 1, read);
        expect_failure(GDN_INPUT, GDN_INPUT, cases[i].text);
        tokens_close(tokens);
    }
}

static void wrong_datasets(void **state) {
    (void)state;
    fill(0, 100);
    put_dataset("wrong.h5", (struct storage){.type = H5T_STD_I32LE, .dataset = "token"});
    expect_open_fails("wrong.h5", &hdf5_format, "wrong.h5|no dataset `tokens`");
    put_dataset("wrong.h5", (struct storage){.type = H5T_IEEE_F32LE});
    expect_open_fails("wrong.h5", &hdf5_format, "wrong.h5|floating-point|integers");
    put_dataset("wrong.h5", (struct storage){.type = H5T_STD_I32LE, .dimensions = 2});
    expect_open_fails("wrong.h5", &hdf5_format, "wrong.h5|2 dimensions");
    hid_t file = H5Fcreate("wrong.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(H5Gcreate(file, "tokens", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    expect_open_fails("wrong.h5", &hdf5_format, "wrong.h5|not a dataset");
    file = H5Fcreate("wrong.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hsize_t none = 0;
    hid_t space = H5Screate_simple(1, &none, NULL);
    H5Dclose(H5Dcreate(file, "tokens", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Fclose(file);
    expect_open_fails("wrong.h5", &hdf5_format, "wrong.h5|is empty");
}

static void damaged_files(void **state) {
    (void)state;
    fill(0, 100);
    put_dataset("cut.h5", (struct storage){.type = H5T_STD_I32LE});
    set_size("cut.h5", 20000);
    expect_open_fails("cut.h5", &hdf5_format, "cut.h5|truncated");
    put_text("foreign.h5", "a text file that is long enough to look like something else");
    expect_open_fails("foreign.h5", &hdf5_format, "foreign.h5|not an HDF5 file");
    put_text("empty.h5", "");
    expect_open_fails("empty.h5", &hdf5_format, "empty.h5|is empty");
    expect_open_fails("missing.h5", &hdf5_format, "missing.h5|No such file");
}

/* Damage inside a compressed chunk shows only when it is read. */
static void damaged_chunk(void **state) {
    (void)state;
    fill(0, 50000);
    put_dataset("chunk.h5", (struct storage){.type = H5T_STD_I32LE, .chunk = N, .compressed = true});
    hid_t file = H5Fopen("chunk.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t dataset = H5Dopen(file, "tokens", H5P_DEFAULT);
    hsize_t start = 0;
    char rubbish[100] = "rubbish";
    assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &start, sizeof rubbish, rubbish) >= 0);
    H5Dclose(dataset);
    H5Fclose(file);
    struct tokens *tokens;
    int32_t read[3];
    assert_int_equal(tokens_open("chunk.h5", &hdf5_format, &tokens), GDN_OK);
    expect_failure(tokens_read(tokens, 5, 3, read), GDN_INPUT, "chunk.h5|tokens 5 to 7");
    tokens_close(tokens);
}

/* Every handle is closed, also after failures. Runs last. */
static void nothing_left_open(void **state) {
    (void)state;
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

/* A dataset beside `tokens`. */
static void add_line(const char *path, const char *name, hid_t type, int dimensions, long count,
                     const int64_t *numbers) {
    hsize_t shape[2] = {(hsize_t)count, 1};
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate_simple(dimensions, shape, NULL);
    hid_t dataset = H5Dcreate(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    assert_true(H5Fclose(file) >= 0);
}

static void documents(void **state) {
    static const struct {
        int64_t at[4];
        long count;
        hid_t *type; /* int64 where NULL */
        int dimensions;
        const char *text;
    } cases[] = {
        {{0, 4, 7, 10}, 4, NULL, 1, NULL},
        {{0, 10}, 2, NULL, 1, NULL},
        {{0, 10}, 2, &H5T_STD_U16BE_g, 1, NULL},
        {{1, 4, 10}, 3, NULL, 1, "documents.h5|first of its `documents` is 1|must be 0"},
        {{0, 4, 4, 10}, 4, NULL, 1, "documents.h5|number 2|is 4|more than the one before it, 4"},
        {{0, 4, -3, 10}, 4, NULL, 1, "documents.h5|number 2|is -3|more than the one before it, 4"},
        {{0, 4, 11}, 3, NULL, 1, "documents.h5|number 2|is 11|only 10 tokens"},
        {{0, 4, 9}, 3, NULL, 1, "documents.h5|last of its `documents` is 9|must be 10"},
        {{0}, 1, NULL, 1, "documents.h5|last of its `documents` is 0|must be 10"},
        {{0, 10}, 2, NULL, 2, "documents.h5|`documents` is not a line of integers"},
        {{0, 10}, 2, &H5T_IEEE_F64LE_g, 1, "documents.h5|`documents` is not a line of integers"},
    };
    (void)state;
    fill(0, 50000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_dataset("documents.h5", (struct storage){.type = H5T_STD_I32LE, .count = 10});
        add_line("documents.h5", "documents", cases[i].type ? *cases[i].type : H5T_STD_I64LE,
                 cases[i].dimensions, cases[i].count, cases[i].at);
        if (cases[i].text) {
            expect_open_fails("documents.h5", &hdf5_format, cases[i].text);
            continue;
        }
        expect_stream("documents.h5", &hdf5_format, expected, 10);
        char *text = describe("documents.h5", &hdf5_format), told[48];
        snprintf(told, sizeof told, "documents  %ld\n", cases[i].count - 1);
        if (!strstr(text, told)) fail_msg("%s, where %s is expected", text, told);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_type, clear_failure),
        cmocka_unit_test_setup(odd_type, clear_failure),
        cmocka_unit_test_setup(every_storage, clear_failure),
        cmocka_unit_test_setup(several_files, clear_failure),
        cmocka_unit_test_setup(values_beyond_int32, clear_failure),
        cmocka_unit_test_setup(wrong_datasets, clear_failure),
        cmocka_unit_test_setup(damaged_files, clear_failure),
        cmocka_unit_test_setup(damaged_chunk, clear_failure),
        cmocka_unit_test_setup(documents, clear_failure),
        cmocka_unit_test_setup(nothing_left_open, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
