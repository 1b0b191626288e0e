/* Files of stored differences: what is in an image, and that a file is complete or not there, whatever the
 * disk does. */
#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "tests/train/deltas/disk.h"
#include "kernels/base/status.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/deltas/file.h"

static const char *deltas; /* the folder */

enum { B = 2, S = 5, D = 7, RANK = 3, COUNT = 2, STEP = 1234567, LAYER = 9 };

static real u[COUNT][B * S * RANK], sigma[COUNT][RANK], vt[COUNT][RANK * D];

static void fill(real *x, int count, double from) {
    for (int i = 0; i < count; i++) x[i] = (real)(from + i / 3.0);
}

static void make_records(struct delta_record record[COUNT]) {
    for (int i = 0; i < COUNT; i++) {
        fill(u[i], B * S * RANK, i), fill(sigma[i], RANK, 10 + i), fill(vt[i], RANK * D, -20 - i);
        record[i] = (struct delta_record){
            .step = STEP,
            .layer = LAYER,
            .distance = 2 + 3 * i,
            .source = LAYER - 2 - 3 * i,
            .batch = B,
            .length = S,
            .factors = {.T = B * S, .D = D, .rank = RANK, .u = u[i], .sigma = sigma[i], .vt = vt[i]},
            .gate_mean = 0.1 + i,
            .gate_deviation = 0.2 + i,
            .gate_least = 0.3 + i,
            .gate_most = 0.4 + i,
        };
        record[i].factors.norm = 0.5 + i, record[i].factors.error = 0.6 + i;
        for (int b = 0; b < DELTA_BINS; b++) record[i].gate_histogram[b] = (int64_t)b << (30 + i);
    }
}

/* The image as HDF5 itself reads it. */
static hid_t open_image(void *image, size_t bytes) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 16, false);
    H5Pset_file_image(access, image, bytes);
    hid_t file = H5Fopen("image", H5F_ACC_RDONLY, access);
    H5Pclose(access);
    assert_true(file >= 0);
    return file;
}

static void check_int(hid_t object, const char *name, int64_t expected) {
    int64_t value = -1;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    assert_true(attribute >= 0);
    assert_true(H5Aread(attribute, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(attribute);
    assert_int_equal(value, expected);
}

static void check_double(hid_t object, const char *name, double expected) {
    double value = -1;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    assert_true(attribute >= 0);
    assert_true(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) >= 0);
    H5Aclose(attribute);
    assert_memory_equal(&value, &expected, sizeof value);
}

static void check_dataset(hid_t group, const char *name, int ndim, hsize_t rows, hsize_t columns, hid_t type,
                          const void *expected) {
    char elements[4096];
    hsize_t shape[2] = {0, 1};
    uint64_t sum = 0;
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT), space = H5Dget_space(dataset),
          stored = H5Dget_type(dataset), attribute = H5Aopen(dataset, "xxh3", H5P_DEFAULT);
    assert_true(dataset >= 0 && space >= 0 && stored >= 0 && attribute >= 0);
    assert_int_equal(H5Sget_simple_extent_ndims(space), ndim);
    H5Sget_simple_extent_dims(space, shape, NULL);
    assert_int_equal(shape[0], rows);
    assert_int_equal(shape[1], columns);
    assert_true(H5Tequal(stored, type) > 0);
    size_t bytes = rows * columns * H5Tget_size(type);
    assert_true(bytes <= sizeof elements);
    assert_true(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements) >= 0);
    assert_memory_equal(elements, expected, bytes);
    assert_true(H5Aread(attribute, H5T_NATIVE_UINT64, &sum) >= 0);
    assert_true(sum == XXH3_64bits(expected, bytes));
    H5Aclose(attribute);
    H5Tclose(stored);
    H5Sclose(space);
    H5Dclose(dataset);
}

static void check_group(hid_t file, const struct delta_record *r) {
    hid_t numbers = sizeof(real) == sizeof(float) ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    char name[32];
    snprintf(name, sizeof name, "distance_%d", r->distance);
    hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
    assert_true(group >= 0);
    check_dataset(group, "U", 2, B * S, RANK, numbers, r->factors.u);
    check_dataset(group, "sigma", 1, RANK, 1, numbers, r->factors.sigma);
    check_dataset(group, "Vt", 2, RANK, D, numbers, r->factors.vt);
    check_dataset(group, "gate_histogram", 1, DELTA_BINS, 1, H5T_NATIVE_INT64, r->gate_histogram);
    check_int(group, "rank", RANK);
    check_int(group, "distance", r->distance);
    check_int(group, "source", r->source);
    check_double(group, "relative_error", r->factors.error);
    check_double(group, "norm", r->factors.norm);
    check_double(group, "gate_mean", r->gate_mean);
    check_double(group, "gate_deviation", r->gate_deviation);
    check_double(group, "gate_least", r->gate_least);
    check_double(group, "gate_most", r->gate_most);
    int64_t shape[3] = {0}, expected[3] = {B, S, D};
    hid_t attribute = H5Aopen(group, "original_shape", H5P_DEFAULT);
    assert_true(attribute >= 0 && H5Aget_storage_size(attribute) == sizeof shape);
    assert_true(H5Aread(attribute, H5T_NATIVE_INT64, shape) >= 0);
    assert_memory_equal(shape, expected, sizeof shape);
    H5Aclose(attribute);
    H5Gclose(group);
}

static void holds_its_records(void **state) {
    (void)state;
    struct delta_record record[COUNT];
    void *image, *again;
    size_t bytes, more;
    make_records(record);
    assert_int_equal(delta_file_image(record, COUNT, &image, &bytes), 0);
    hid_t file = open_image(image, bytes);
    check_int(file, "format_version", 1);
    check_int(file, "step", STEP);
    check_int(file, "layer", LAYER);
    H5G_info_t groups;
    H5Gget_info(file, &groups);
    assert_int_equal(groups.nlinks, COUNT);
    for (int i = 0; i < COUNT; i++) check_group(file, &record[i]);
    H5Fclose(file);

    sleep(1); /* no byte depends on the time */
    assert_int_equal(delta_file_image(record, COUNT, &again, &more), 0);
    assert_int_equal(more, bytes);
    assert_memory_equal(again, image, bytes);
    free(again);
    free(image);
}

static void is_no_longer_than_planned(void **state) {
    (void)state;
    static const int counts[] = {1, 2, 7, 8, 9, 30, 64};
    struct delta_record two[COUNT], record[64];
    make_records(two);
    for (int i = 0; i < 64; i++) record[i] = two[0], record[i].distance = i + 1;
    for (int i = 0; i < 7; i++) {
        void *image;
        size_t bytes;
        assert_int_equal(delta_file_image(record, counts[i], &image, &bytes), 0);
        assert_true((long)bytes <= delta_file_max(counts[i], B * S, D, RANK));
        free(image);
    }
}

static void is_read_back(void **state) {
    (void)state;
    struct delta_record record[COUNT];
    void *image;
    size_t bytes;
    char path[4096];
    make_records(record);
    for (int i = 0; i < COUNT; i++) record[i].factors.error = 0.5;
    assert_int_equal(delta_file_image(record, COUNT, &image, &bytes), 0);
    assert_int_equal(delta_file_write(deltas, STEP, LAYER, image, bytes, path), 0);
    struct delta_list list;
    assert_int_equal(delta_list_open(deltas, &list), 0);
    assert_int_equal(list.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        struct delta_record back;
        assert_int_equal(delta_record_read(&list.entry[i], &back), 0);
        struct factors *f = &back.factors;
        assert_memory_equal(f->u, u[i], sizeof u[i]);
        assert_memory_equal(f->sigma, sigma[i], sizeof sigma[i]);
        assert_memory_equal(f->vt, vt[i], sizeof vt[i]);
        struct delta_record same = back;
        same.factors.u = u[i], same.factors.sigma = sigma[i], same.factors.vt = vt[i];
        assert_memory_equal(&same, &record[i], sizeof same);
        delta_record_free(&back);
    }
    delta_list_free(&list);
    free(image);
    assert_int_equal(unlink(path), 0);
}

static void check_content(const char *path, const char *expected) {
    char text[256];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_string_equal(text, expected);
}

/* That the step's folder has these files, in the order of ls, and nothing else. */
static void check_folder(const char *names) {
    char command[512], text[256] = "";
    snprintf(command, sizeof command, "cd '%s/step_00000007' && ls -A | tr '\\n' ' '", deltas);
    FILE *pipe = popen(command, "r");
    text[fread(text, 1, sizeof text - 1, pipe)] = 0;
    assert_int_equal(pclose(pipe), 0);
    assert_string_equal(text, names);
}

static int put(int layer, const char *text, char path[4096]) {
    return delta_file_write(deltas, 7, layer, text, strlen(text), path);
}

static void is_complete_or_as_before(void **state) {
    (void)state;
    char path[4096], right[4096];
    snprintf(right, sizeof right, "%s/step_00000007/layer_012.h5", deltas);
    assert_int_equal(put(12, "the first one", path), 0);
    assert_string_equal(path, right);
    check_content(path, "the first one");
    assert_int_equal(put(12, "another", path), 0); /* of a step that is repeated */
    check_content(path, "another");

    disk_full(5, ENOSPC);
    assert_int_equal(put(12, "more than there is room for", path), ENOSPC);
    assert_int_equal(put(13, "nor here", path), ENOSPC);
    disk_full(0, 0);
    disk_sync_fails(EIO);
    assert_int_equal(put(12, "never on the disk", path), EIO);
    disk_sync_fails(0);
    check_content(right, "another");
    check_folder("layer_012.h5 ");
    assert_int_equal(put(13, "now", path), 0);
    check_folder("layer_012.h5 layer_013.h5 ");
}

static void needs_a_directory(void **state) {
    (void)state;
    char path[4096], file[512], below[4096];
    snprintf(file, sizeof file, "%s/file", scratch());
    fclose(fopen(file, "w"));
    assert_int_equal(delta_file_write(file, 7, 1, "x", 1, path), ENOTDIR);
    snprintf(below, sizeof below, "%s/below", file);
    assert_int_equal(delta_file_write(below, 7, 1, "x", 1, path), ENOTDIR);
    snprintf(below, sizeof below, "%s/not/there", scratch());
    assert_int_equal(delta_file_write(below, 7, 1, "x", 1, path), ENOENT);
    memset(below, 'x', sizeof below - 1);
    below[sizeof below - 1] = 0;
    assert_int_equal(delta_file_write(below, 7, 1, "x", 1, path), ENAMETOOLONG);
}

int main(void) {
    deltas = strdup(scratch_path("deltas"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_its_records), cmocka_unit_test(is_no_longer_than_planned),
        cmocka_unit_test(is_read_back),      cmocka_unit_test(is_complete_or_as_before),
        cmocka_unit_test(needs_a_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
