/* Reading stored differences: that they come back to the bit, and that every damage is found or does no
 * harm. One bit of each byte of a file is flipped; with an argument `all` every bit, with `few` one of each
 * 17 bytes. */
#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "tests/support/unit.h"
#include "tests/train/deltas/runs.h"
#include "train/deltas/list.h"

static bool all, few;

static bool same_record(const struct delta_record *a, const struct delta_record *b) {
    const struct factors *f = &a->factors, *g = &b->factors;
    return a->step == b->step && a->layer == b->layer && a->distance == b->distance &&
           a->source == b->source && a->batch == b->batch && a->length == b->length && f->T == g->T &&
           f->D == g->D && f->rank == g->rank && f->norm == g->norm && f->error == g->error &&
           a->gate_mean == b->gate_mean && a->gate_deviation == b->gate_deviation &&
           a->gate_least == b->gate_least && a->gate_most == b->gate_most &&
           !memcmp(a->gate_histogram, b->gate_histogram, sizeof a->gate_histogram) &&
           !memcmp(f->u, g->u, (size_t)(f->T * f->rank) * sizeof *f->u) &&
           !memcmp(f->sigma, g->sigma, (size_t)f->rank * sizeof *f->sigma) &&
           !memcmp(f->vt, g->vt, (size_t)(f->rank * f->D) * sizeof *f->vt);
}

static void comes_back(void **state) {
    (void)state;
    char run[256], deltas[300], path[4096];
    make_run("back", run, deltas);
    write_file(deltas, 7, 3, 3, path);
    struct delta_list list;
    assert_int_equal(delta_list_open(run, &list), GDN_OK);
    assert_int_equal(list.count, 3);
    for (int i = 0; i < 3; i++) {
        struct delta_record right = made_up_record(7, 3, i + 1, &shape), read;
        int element = 0;
        assert_int_equal(delta_record_read_sized(&list.entry[i], &read, &element), GDN_OK);
        assert_true(same_record(&right, &read));
        assert_int_equal(element, sizeof(real));
        delta_record_free(&read);
        delta_record_free(&right);
    }
    struct delta_entry missing = {path, 7, 3, 4};
    struct delta_record record;
    fails_with(delta_record_read(&missing, &record), "distance_4");
    delta_list_free(&list);
}

static char *read_bytes(const char *path, long *length) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *length = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)*length);
    assert_int_equal(fread(bytes, 1, (size_t)*length, file), (size_t)*length);
    fclose(file);
    return bytes;
}

static void write_bytes(const char *path, const char *bytes, long length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)length, file), (size_t)length);
    fclose(file);
}

static void change_byte(const char *path, long at, char byte) {
    int file = open(path, O_WRONLY);
    assert_true(file >= 0 && pwrite(file, &byte, 1, at) == 1);
    close(file);
}

/* Reads all that a damaged file still lists: false where something is refused, in words that name the file.
 * What is not refused must be right. */
static bool reads_right(const char *run, const char *path, const struct delta_record *right, int count) {
    struct delta_list list;
    int status = delta_list_open(run, &list);
    for (int i = 0; i < list.count && !status; i++) {
        struct delta_record read;
        status = delta_record_read(&list.entry[i], &read);
        if (status) break;
        assert_int_equal(list.count, count);
        assert_true(same_record(&right[i], &read));
        delta_record_free(&read);
    }
    delta_list_free(&list);
    if (!status) return true;
    assert_int_equal(status, GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), path));
    gdn_failure_clear();
    return false;
}

enum { DISTANCES = 2 };

static void damage(void **state) {
    (void)state;
    char run[256], deltas[300], path[4096];
    make_run("damage", run, deltas);
    write_file(deltas, 7, 3, DISTANCES, path);
    struct delta_record right[DISTANCES];
    for (int i = 0; i < DISTANCES; i++) right[i] = made_up_record(7, 3, i + 1, &shape);
    long length, found = 0;
    char *bytes = read_bytes(path, &length);
    assert_true(reads_right(run, path, right, DISTANCES));
    long tried = 0;
    for (long i = 0; i < length; i += few ? 17 : 1)
        for (int bit = all ? 0 : (int)(i % 8); bit < 8; bit += all ? 1 : 8, tried++) {
            change_byte(path, i, (char)(bytes[i] ^ (1 << bit)));
            found += !reads_right(run, path, right, DISTANCES);
            change_byte(path, i, bytes[i]);
        }
    print_message("%ld of %ld flipped bits were found, the others changed nothing\n", found, tried);
    assert_true(found > tried / 3); /* the rest are gaps between HDF5's blocks */
    uint64_t end;                   /* of what HDF5 counts to the file, as its first block has it */
    memcpy(&end, bytes + 28, sizeof end);
    assert_true(end <= (uint64_t)length && end > (uint64_t)length / 2);
    for (long cut = 0; cut < (long)end; cut += few ? 610 : 61) {
        write_bytes(path, bytes, cut);
        assert_false(reads_right(run, path, right, DISTANCES));
    }
    free(bytes);
    for (int i = 0; i < DISTANCES; i++) delta_record_free(&right[i]);
}

/* A damaged file is named, and the others are still listed. */
static void damage_beside_others(void **state) {
    (void)state;
    char run[256], deltas[300], path[4096];
    make_run("beside", run, deltas);
    for (int layer = 0; layer < 3; layer++) write_file(deltas, 5, layer, 2, path);
    touch(deltas, "../notes");
    snprintf(path, sizeof path, "%s/step_00000005/layer_001.h5", deltas);
    write_bytes(path, "no HDF5", 7);
    struct delta_survey survey;
    struct delta_list list;
    assert_int_equal(delta_survey(run, NULL, &survey), GDN_OK);
    assert_int_equal(survey.list.count, 4);
    assert_int_equal(survey.files, 3);
    assert_int_equal(survey.damaged, 1);
    assert_string_equal(survey.damage[0].path, path);
    assert_non_null(strstr(survey.damage[0].text, path));
    assert_string_equal(gdn_failure(), "");
    delta_survey_free(&survey);
    fails_with(delta_list_open(run, &list), path);
}

/* Opens layer 3 of a fresh run for changes; `path` is its file. */
static hid_t open_for_change(const char *name, char run[256], char path[4096]) {
    char deltas[300];
    make_run(name, run, deltas);
    write_file(deltas, 7, 3, 1, path);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static void refused_in(const char *run, const char *text) {
    struct delta_list list;
    struct delta_record record;
    int status = delta_list_open(run, &list);
    if (!status) status = delta_record_read(&list.entry[0], &record);
    delta_list_free(&list);
    fails_with(status, text);
}

static void set(hid_t object, const char *name, hid_t type, const void *value) {
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    assert_true(attribute >= 0 && H5Awrite(attribute, type, value) >= 0);
    H5Aclose(attribute);
}

/* Changes an attribute of distance_1. */
static void set_in_group(hid_t file, const char *name, hid_t type, const void *value) {
    hid_t group = H5Gopen2(file, "distance_1", H5P_DEFAULT);
    assert_true(group >= 0);
    set(group, name, type, value);
    H5Gclose(group);
}

static void foreign_root(void **state) {
    (void)state;
    static const struct {
        const char *attribute;
        int64_t value;
        const char *text;
    } change[] = {{"format_version", 2, "has format version 2"},
                  {"step", 8, "is of step 8 and layer 3, not what its name says"},
                  {"layer", 4, "is of step 7 and layer 4"}};
    for (int i = 0; i < 3; i++) {
        char run[256], path[4096], name[32];
        snprintf(name, sizeof name, "root%d", i);
        hid_t file = open_for_change(name, run, path);
        set(file, change[i].attribute, H5T_NATIVE_INT64, &change[i].value);
        H5Fclose(file);
        refused_in(run, change[i].text);
    }
}

static void foreign_group(void **state) {
    (void)state;
    static const struct {
        const char *attribute;
        int64_t value;
        const char *text;
    } change[] = {{"rank", 3, "dataset U is [6, 2], and [6, 3] is expected"},
                  {"rank", 0, "a rank of 0"},
                  {"rank", 6, "a rank of 6 and the shape [2, 3, 5]"},
                  {"rank", -1, "a rank of -1"},
                  {"source", 1, "source 1 for layer 3 and distance 1"}};
    for (int i = 0; i < 5; i++) {
        char run[256], path[4096], name[32];
        snprintf(name, sizeof name, "group%d", i);
        hid_t file = open_for_change(name, run, path);
        set_in_group(file, change[i].attribute, H5T_NATIVE_INT64, &change[i].value);
        H5Fclose(file);
        refused_in(run, change[i].text);
    }
}

static void foreign_numbers(void **state) {
    (void)state;
    static const char *const gone[] = {"U", "gate_histogram"};
    for (int i = 0; i < 2; i++) {
        char run[256], path[4096], name[64];
        snprintf(name, sizeof name, "gone%d", i);
        hid_t file = open_for_change(name, run, path);
        snprintf(name, sizeof name, "distance_1/%s", gone[i]);
        assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
        H5Fclose(file);
        refused_in(run, gone[i]);
    }
    char run[256], path[4096];
    hid_t file = open_for_change("sum", run, path), data = H5Dopen2(file, "distance_1/Vt", H5P_DEFAULT);
    assert_true(H5Adelete(data, "xxh3") >= 0);
    H5Dclose(data);
    H5Fclose(file);
    refused_in(run, "dataset Vt has no checksum");
    double infinite = INFINITY;
    file = open_for_change("infinite", run, path);
    set_in_group(file, "norm", H5T_NATIVE_DOUBLE, &infinite);
    H5Fclose(file);
    refused_in(run, "attribute norm is inf");
    file = open_for_change("empty", run, path);
    assert_true(H5Ldelete(file, "distance_1", H5P_DEFAULT) >= 0);
    H5Fclose(file);
    refused_in(run, "it has no group distance_N");
}

int main(int argc, char **argv) {
    all = argc > 1 && !strcmp(argv[1], "all");
    few = argc > 1 && !strcmp(argv[1], "few");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),           cmocka_unit_test(damage),
        cmocka_unit_test(damage_beside_others), cmocka_unit_test(foreign_root),
        cmocka_unit_test(foreign_group),        cmocka_unit_test(foreign_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
