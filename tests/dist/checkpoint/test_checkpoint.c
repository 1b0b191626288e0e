/* Checkpoints: what is saved is loaded to the bit, and lies on disk as the model has it. Runs on any number
 * of ranks; rank 0 plays with the files between the collective calls. */
#include <dlfcn.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/dist/checkpoint/saved.h"

/* Of the next write of at least so many bytes the last bit is stored wrongly. 0: of none. */
static size_t faulty_from;

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    __typeof__(&pwrite) system_pwrite = (__typeof__(&pwrite))dlsym(RTLD_NEXT, "pwrite");
    if (!faulty_from || n < faulty_from) return system_pwrite(fd, bytes, n, at);
    faulty_from = 0;
    char *wrong = malloc(n);
    memcpy(wrong, bytes, n);
    wrong[n - 1] ^= 1;
    ssize_t written = system_pwrite(fd, wrong, n, at);
    free(wrong);
    return written;
}

static void round_trip(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    static const int scales[] = {1, 3, 200}; /* 200: more than a block, and more than the transpose's tiles */
    for (int i = 0; i < 3; i++) {
        struct sample *saved = sample_new(scales[i], 1), *loaded = sample_new(scales[i], 2);
        save(directory, saved, 100, 2.5, 2.25, 0);
        struct checkpoint_info info;
        assert_int_equal(sample_load(&mesh, file_of(directory, 100), loaded, &info), 0);
        assert_true(sample_same(saved, loaded));
        assert_int_equal(info.step, 100);
        assert_int_equal(info.samples, 3200);
        assert_true(info.loss == 2.5 && info.best_loss == 2.25);
        assert_string_equal(info.config, sample_info(0, 0, 0).config);
        assert_string_equal(info.data, sample_info(0, 0, 0).data);
        barrier();
        sample_free(saved);
        sample_free(loaded);
    }
    free(directory);
}

static void weights_alone(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *saved = sample_new(2, 1), *loaded = sample_new(2, 2);
    save(directory, saved, 7, NAN, NAN, 0);
    struct state weights = {.weight = loaded->state.weight};
    struct checkpoint_content content = {
        .global = &loaded->table, .table = &loaded->table, .state = &weights};
    struct checkpoint checkpoint;
    assert_int_equal(checkpoint_open(&mesh, file_of(directory, 7), &checkpoint), 0);
    assert_int_equal(checkpoint_load(&mesh, &checkpoint, &content), 0);
    assert_true(isnan(checkpoint.info.loss) && isnan(checkpoint.info.best_loss));
    assert_int_equal(checkpoint.info.step, 7);
    checkpoint_close(&checkpoint);
    for (int i = 0; i < saved->table.rows; i++) {
        const struct row *row = &saved->table.row[i];
        assert_memory_equal(saved->state.weight + row->offset, loaded->state.weight + row->offset,
                            (size_t)row->count * sizeof(real));
    }
    sample_free(saved);
    sample_free(loaded);
    free(directory);
}

/* The state of low precisions: there where a run has it, and only there. */
static void of_low_precisions(void **unused) {
    (void)unused;
    enum { SCALES = 300000 }; /* more than is read at a time */
    char *directory = scratch_folder();
    struct sample *saved = sample_new(1, 1);
    struct sample *part = sample_part(saved, &mesh);
    uint32_t *scales = calloc(SCALES, sizeof *scales), *loaded = calloc(SCALES, sizeof *loaded);
    for (uint32_t i = 0; i < SCALES; i++) scales[i] = i * 2654435761u;
    struct checkpoint_content content = {.global = &saved->table,
                                         .table = &part->table,
                                         .state = &part->state,
                                         .scales = scales,
                                         .num_scales = SCALES};
    struct checkpoint_info info = sample_info(1, NAN, NAN);
    save(directory, saved, 3, NAN, NAN, 0); /* without */
    for (int files = FILES_ONE; files <= FILES_NODE; files++) {
        info.step = 1 + files, info.loss_scale = 4096, info.loss_scale_good = 1999;
        assert_int_equal(checkpoint_save(&mesh, directory, &content, &info, &(struct checkpoint_keep){0},
                                         (enum checkpoint_files)files),
                         0);
    }
    struct sample *full = sample_new(1, 2);
    for (int step = 1; step <= 3; step++) {
        struct checkpoint checkpoint;
        content = sample_content(full);
        content.scales = memset(loaded, 0, SCALES * sizeof *loaded), content.num_scales = SCALES;
        assert_int_equal(checkpoint_open(&mesh, file_of(directory, step), &checkpoint), 0);
        assert_int_equal(checkpoint_load(&mesh, &checkpoint, &content), 0);
        assert_true(checkpoint.info.loss_scale == (step < 3 ? 4096 : 0));
        assert_int_equal(checkpoint.info.loss_scale_good, step < 3 ? 1999 : 0);
        for (uint32_t i = 0; i < SCALES; i++) assert_int_equal(loaded[i], step < 3 ? scales[i] : 0);
        memset(loaded, 0, SCALES * sizeof *loaded);
        content.num_scales--; /* of another device */
        assert_int_equal(checkpoint_load(&mesh, &checkpoint, &content), 0);
        for (uint32_t i = 0; i < SCALES; i++) assert_int_equal(loaded[i], 0);
        checkpoint_close(&checkpoint);
        assert_true(sample_same(saved, full));
    }
    hid_t file = H5Fopen(file_of(directory, 3), H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_false(H5Aexists(file, "loss_scale"));
    assert_false(H5Lexists(file, "scales", H5P_DEFAULT));
    H5Fclose(file);
    free(scales), free(loaded);
    sample_free(saved), sample_free(part), sample_free(full);
    free(directory);
}

/* What is on disk is the logical shape, whatever memory's order. */
static void shapes_on_disk(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *saved = sample_new(1, 1);
    save(directory, saved, 1, NAN, NAN, 0);
    hid_t file = H5Fopen(file_of(directory, 1), H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    hid_t dataset = H5Dopen2(file, "/model/layers/0/mlp/up/weight", H5P_DEFAULT),
          space = H5Dget_space(dataset);
    hsize_t shape[2];
    double disk[6][5];
    assert_int_equal(H5Sget_simple_extent_dims(space, shape, NULL), 2);
    assert_int_equal(shape[0], 6);
    assert_int_equal(shape[1], 5);
    assert_true(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, disk) >= 0);
    const struct row *row = &saved->table.row[1];
    for (int o = 0; o < 6; o++)
        for (int i = 0; i < 5; i++) assert_true(disk[o][i] == saved->state.weight[row->offset + i * 6 + o]);
    H5Sclose(space);
    H5Dclose(dataset);
    int64_t steps = 0;
    dataset = H5Dopen2(file, "/optimizer/step/layers/1/delta/1/mix", H5P_DEFAULT);
    assert_true(H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &steps) >= 0);
    assert_true(steps == saved->state.steps[4]);
    H5Dclose(dataset);
    H5Fclose(file);
    sample_free(saved);
    free(directory);
}

/* A configuration of 200 kB, more than HDF5 keeps in an object's header. */
static void long_config(void **unused) {
    (void)unused;
    char *directory = scratch_folder(), *config = malloc(200001);
    struct sample *sample = sample_new(1, 1);
    struct checkpoint_info info = sample_info(3, NAN, NAN), loaded;
    for (int i = 0; i < 200000; i++) config[i] = (char)('a' + i % 26);
    config[200000] = 0;
    info.config = config;
    assert_int_equal(sample_save(&mesh, directory, sample, &info, 0), 0);
    assert_int_equal(sample_load(&mesh, file_of(directory, 3), sample, &loaded), 0);
    assert_string_equal(loaded.config, config);
    free(config);
    sample_free(sample);
    free(directory);
}

/* One file a node, each rank being taken for one: the files belong together. */
static void files_of_nodes(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *saved = sample_new(3, 1), *other = sample_new(3, 2), *loaded = sample_new(3, 3);
    struct mesh before = mesh;
    snprintf(mesh.host, sizeof mesh.host, "node%d", mesh.rank);
    sample_files = FILES_NODE;
    save(directory, saved, 10, 1, 1, 0);
    save(directory, other, 20, 1, 1, 0);
    sample_files = FILES_ONE;
    mesh = before;
    assert_int_equal(sample_load(&mesh, file_of(directory, 10), loaded, NULL), 0);
    assert_true(sample_same(saved, loaded));
    if (mesh.rank == 0) assert_int_equal(checkpoint_verify(file_of(directory, 20), stdout), 0);

    const char *part = format("%s/checkpoints/step_00000010/part_%05d.h5", directory, mesh.size - 1);
    const char *strange = format("%s/checkpoints/step_00000020/part_%05d.h5", directory, mesh.size - 1);
    const char *aside = format("%s/aside", directory);
    barrier();
    if (mesh.rank == 0) flip_bit(part, file_length(part) / 2, 3);
    barrier();
    assert_refused(sample_load(&mesh, file_of(directory, 10), loaded, NULL), "do not match the checksum");
    barrier();
    if (mesh.rank == 0) flip_bit(part, file_length(part) / 2, 3), rename(part, aside);
    barrier();
    assert_refused(sample_load(&mesh, file_of(directory, 10), loaded, NULL), "No such file");
    barrier();
    if (mesh.rank == 0) assert_int_equal(link(strange, part), 0);
    barrier();
    assert_refused(sample_load(&mesh, file_of(directory, 10), loaded, NULL),
                   "is not the file that it was written with");
    sample_free(saved);
    sample_free(other);
    sample_free(loaded);
    free(directory);
}

/* A bit that a disk stores wrongly, on each rank in turn, in a dataset that the ranks verify together (rows
 * of 5.6 MB) or one of them alone: the save fails, and says where. Short writes of rank 0 are also of HDF5's
 * own. */
static void faulty_writes(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *large = sample_new(200, 1), *small = sample_new(3, 1);
    struct checkpoint_info info = sample_info(5, NAN, NAN);
    for (int guilty = 0; guilty < mesh.size; guilty++)
        for (int i = guilty == 0; i < 2; i++) {
            faulty_from = mesh.rank != guilty ? 0 : i ? 1 << 17 : 16;
            int status = sample_save(&mesh, directory, i ? large : small, &info, 0);
            assert_int_equal(faulty_from, 0);
            assert_int_equal(status, GDN_INTERNAL);
            if (!strstr(gdn_failure(), " is damaged: dataset "))
                fail_msg("rank %d, %s: %s", guilty, i ? "large" : "small", gdn_failure());
            gdn_failure_clear();
            assert_false(there(file_of(directory, 5)));
        }
    sample_free(large);
    sample_free(small);
    free(directory);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),        cmocka_unit_test(weights_alone),
        cmocka_unit_test(of_low_precisions), cmocka_unit_test(shapes_on_disk),
        cmocka_unit_test(long_config),       cmocka_unit_test(files_of_nodes),
        cmocka_unit_test(faulty_writes),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
