/* Checkpoints: what is saved is loaded to the bit, the right one is found, the right ones are kept, and what
 * does not fit is refused in words. Runs on any number of ranks; rank 0 plays with the files between the
 * collective calls. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/dist/checkpoint/sample.h"
#include "tests/support/rank_main.h"
#include "tests/support/scratch.h"

static struct mesh mesh;
static const char *old_file = "version_1.h5"; /* a checkpoint of version 1 */

static void barrier(void) {
    MPI_Barrier(mesh.world);
}

static void save(const char *directory, const struct sample *sample, int64_t step, double loss, double best,
                 int keep) {
    struct checkpoint_info info = sample_info(step, loss, best);
    int status = sample_save(&mesh, directory, sample, &info, keep);
    assert_string_equal(gdn_failure(), "");
    assert_int_equal(status, 0);
}

static bool there(const char *path) {
    return !access(path, F_OK);
}

static const char *file_of(const char *directory, int step) {
    return format("%s/checkpoints/step_%08d/checkpoint.h5", directory, step);
}

static void assert_pointer(const char *directory, const char *pointer, const char *line) {
    barrier();
    long length;
    char *text = read_bytes(format("%s/checkpoints/%s", directory, pointer), &length);
    assert_string_equal(text, line);
    free(text);
    barrier();
}

static int load_initial(const char *path, struct sample *sample, int *missing) {
    struct checkpoint_content content = sample_content(sample);
    return checkpoint_load_initial(&mesh, path, &content, missing);
}

/* Expects a failure with these words, the same on all ranks. */
static void assert_refused(int status, const char *word) {
    assert_int_equal(status, GDN_INPUT);
    if (!strstr(gdn_failure(), word)) fail_msg("'%s' is not in: %s", word, gdn_failure());
    gdn_failure_clear();
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
    struct checkpoint_content content = {.whole = &loaded->table, .table = &loaded->table, .state = &weights};
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
    enum { WORDS = 300000 }; /* more than is read at a time */
    char *directory = scratch_folder();
    struct sample *saved = sample_new(1, 1);
    struct sample *part = sample_part(saved, &mesh);
    uint32_t *scales = calloc(WORDS, sizeof *scales), *loaded = calloc(WORDS, sizeof *loaded);
    for (uint32_t i = 0; i < WORDS; i++) scales[i] = i * 2654435761u;
    struct checkpoint_content content = {.whole = &saved->table,
                                         .table = &part->table,
                                         .state = &part->state,
                                         .scales = scales,
                                         .scale_words = WORDS};
    struct checkpoint_info info = sample_info(1, NAN, NAN);
    save(directory, saved, 3, NAN, NAN, 0); /* without */
    for (int files = FILES_ONE; files <= FILES_NODE; files++) {
        info.step = 1 + files, info.loss_scale = 4096, info.loss_scale_good = 1999;
        assert_int_equal(checkpoint_save(&mesh, directory, &content, &info, &(struct checkpoint_keep){0},
                                         (enum checkpoint_files)files),
                         0);
    }
    struct sample *whole = sample_new(1, 2);
    for (int step = 1; step <= 3; step++) {
        struct checkpoint checkpoint;
        content = sample_content(whole);
        content.scales = memset(loaded, 0, WORDS * sizeof *loaded), content.scale_words = WORDS;
        assert_int_equal(checkpoint_open(&mesh, file_of(directory, step), &checkpoint), 0);
        assert_int_equal(checkpoint_load(&mesh, &checkpoint, &content), 0);
        assert_true(checkpoint.info.loss_scale == (step < 3 ? 4096 : 0));
        assert_int_equal(checkpoint.info.loss_scale_good, step < 3 ? 1999 : 0);
        for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(loaded[i], step < 3 ? scales[i] : 0);
        memset(loaded, 0, WORDS * sizeof *loaded);
        content.scale_words--; /* of another device */
        assert_int_equal(checkpoint_load(&mesh, &checkpoint, &content), 0);
        for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(loaded[i], 0);
        checkpoint_close(&checkpoint);
        assert_true(sample_same(saved, whole));
    }
    hid_t file = H5Fopen(file_of(directory, 3), H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_false(H5Aexists(file, "loss_scale"));
    assert_false(H5Lexists(file, "scales", H5P_DEFAULT));
    H5Fclose(file);
    free(scales), free(loaded);
    sample_free(saved), sample_free(part), sample_free(whole);
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
static void keep_whole(void **unused) {
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
    /* As left by a crash between the two renames of a replacement: the old one comes back. */
    if (mesh.rank == 0)
        rename(format("%s/checkpoints/step_00000010", directory),
               format("%s/checkpoints/.step_00000010.old", directory));
    barrier();
    struct checkpoint found;
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

static void find_newest_whole(void **unused) {
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

/* A model that the checkpoint is not of. */
static void wrong_model(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    struct sample *sample = sample_new(1, 1), *other = sample_new(1, 2);
    struct checkpoint_info info;
    save(directory, sample, 10, NAN, NAN, 0);
    other->table.row[1].shape[0] = 5, other->table.row[1].shape[1] = 6;
    assert_refused(sample_load(&mesh, file_of(directory, 10), other, &info),
                   "/layers/0/mlp/up/weight has the shape [6, 5], but the model's tensor "
                   "layers.0.mlp.up.weight has [5, 6]");
    other->table.row[1] = sample->table.row[1];
    strcpy(other->table.row[6].name, "other.weight");
    assert_refused(sample_load(&mesh, file_of(directory, 10), other, &info),
                   "has no dataset /model/other/weight");
    other->table.row[6] = sample->table.row[6];
    other->table.rows = 6;
    assert_refused(sample_load(&mesh, file_of(directory, 10), other, &info),
                   "7 tensors where this one has 6");
    sample_free(sample);
    sample_free(other);
    free(directory);
}

/* Writes the sample's weights, but for delta connections', as float64 under /initial, as other programs do.
 */
static void write_foreign(const char *path, const struct sample *sample, bool misshapen) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    for (int i = 0; i < sample->table.rows; i++) {
        const struct row *row = &sample->table.row[i];
        if (row->distance || row->select) continue;
        char name[128];
        snprintf(name, sizeof name, "/initial/%s", row->name);
        for (char *c = name; *c; c++)
            if (*c == '.') *c = '/';
        hsize_t shape[2] = {(hsize_t)row->shape[0], (hsize_t)(row->shape[1] + misshapen)};
        double *values = calloc(shape[0] * shape[1], sizeof(double));
        for (hsize_t j = 0; j < shape[0] * shape[1]; j++) values[j] = i + 0.25 * (double)j;
        hid_t space = H5Screate_simple(row->ndim, shape, NULL);
        hid_t dataset = H5Dcreate2(file, name, H5T_IEEE_F64BE, space, links, H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        H5Dclose(dataset);
        H5Sclose(space);
        free(values);
    }
    H5Pclose(links);
    H5Fclose(file);
}

static void initial_weights(void **unused) {
    (void)unused;
    char *directory = scratch_folder();
    const char *path = format("%s/foreign.h5", directory);
    struct sample *sample = sample_new(2, 1), *before = sample_new(2, 1);
    int missing;
    if (mesh.rank == 0) write_foreign(path, sample, false);
    barrier();
    assert_int_equal(load_initial(path, sample, &missing), 0);
    assert_int_equal(missing, 3);
    for (int i = 0; i < sample->table.rows; i++) {
        const struct row *row = &sample->table.row[i];
        const real *weight = sample->state.weight + row->offset, *old = before->state.weight + row->offset;
        for (long r = 0; r < row->shape[0]; r++)
            for (long c = 0; c < row->shape[1]; c++) {
                long at = row->transposed ? c * row->shape[0] + r : r * row->shape[1] + c;
                if (row->distance || row->select)
                    assert_true(weight[at] == old[at]);
                else
                    assert_true(weight[at] == (real)(i + 0.25 * (double)(r * row->shape[1] + c)));
            }
    }
    barrier();
    if (mesh.rank == 0) write_foreign(path, sample, true);
    barrier();
    assert_refused(load_initial(path, sample, &missing), "has the shape [");
    strcpy(sample->table.row[0].name, "tokens.weight");
    assert_refused(load_initial(path, sample, &missing), "has no dataset /initial/tokens/weight");
    sample->table.row[0] = before->table.row[0];
    struct checkpoint_info info;
    assert_refused(sample_load(&mesh, path, sample, &info), "no checkpoint as gdn writes it");
    /* A checkpoint's weights serve as well. */
    barrier();
    save(directory, before, 5, NAN, NAN, 0);
    assert_int_equal(load_initial(file_of(directory, 5), sample, &missing), 0);
    assert_int_equal(missing, 0);
    assert_true(sample_same(sample, before));
    sample->table.rows--; /* the file has a tensor more than the model */
    assert_refused(load_initial(file_of(directory, 5), sample, &missing), "which this model does not have");
    sample->table.rows++;
    sample_free(sample);
    sample_free(before);
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

/* Files of format version 1 still load: version_1.h5 was written by the program of that time, in float32,
 * with the values below. */
static void version_1(void **unused) {
    (void)unused;
    struct sample *right = sample_new(1, 1), *loaded = sample_new(1, 2);
    real *const buffers[] = {right->state.weight, right->state.exp_avg, right->state.exp_avg_sq};
    for (int b = 0; b < 3; b++)
        for (int i = 0; i < right->table.rows; i++) {
            const struct row *row = &right->table.row[i];
            for (long r = 0; r < row->shape[0]; r++)
                for (long c = 0; c < row->shape[1]; c++) {
                    long at = row->transposed ? c * row->shape[0] + r : r * row->shape[1] + c;
                    buffers[b][row->offset + at] = (real)(1000 * b + 100 * i + 10 * r + c) + (real)0.25;
                }
        }
    for (int i = 0; i < right->table.rows; i++) right->state.steps[i] = 40 + i;
    struct checkpoint_info info;
    assert_int_equal(sample_load(&mesh, old_file, loaded, &info), 0);
    assert_true(sample_same(right, loaded));
    assert_int_equal(info.step, 40);
    assert_null(info.data);
    assert_true(info.loss == 1.5 && info.best_loss == 1.25);
    assert_string_equal(info.config, sample_info(0, 0, 0).config);
    if (mesh.rank == 0) assert_int_equal(checkpoint_verify(old_file, stdout), 0);

    /* Its checksums are still looked at: of the whole, and of a dataset where that is missing. */
    char *directory = scratch_folder();
    const char *damaged = format("%s/damaged.h5", directory), *unsealed = format("%s/unsealed.h5", directory);
    int missing;
    if (mesh.rank == 0) {
        long length, at = 0;
        char *bytes = read_bytes(old_file, &length);
        const float seek[] = {102.25f, 112.25f,
                              122.25f}; /* along memory: a column, which is not so on disk */
        const float row[] = {110.25f, 111.25f, 112.25f};
        for (at = 512; at + (long)sizeof row < length && memcmp(bytes + at, row, sizeof row); at++)
            if (!memcmp(bytes + at, seek, sizeof seek)) fail_msg("memory's order is on disk");
        assert_true(at + (long)sizeof row < length);
        bytes[at + 4] ^= 1;
        write_bytes(damaged, bytes, length);
        write_bytes(unsealed, bytes + 512, length - 512);
        free(bytes);
    }
    barrier();
    assert_refused(sample_load(&mesh, damaged, loaded, NULL), "do not match the checksum in its first");
    assert_refused(load_initial(unsealed, loaded, &missing),
                   "dataset model/layers/0/mlp/up/weight does not match its checksum");
    sample_free(right);
    sample_free(loaded);
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

/* The parts are those of the tensor axis. */
static int set_up(void) {
    return mesh_create(1, test_ranks, 1, &mesh);
}

static void tear_down(void) {
    mesh_free(&mesh);
}

int rank_main(void) {
    if (test_argument(1)) old_file = test_argument(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),        cmocka_unit_test(weights_alone),
        cmocka_unit_test(of_low_precisions), cmocka_unit_test(shapes_on_disk),
        cmocka_unit_test(keep_latest_best),  cmocka_unit_test(replaced),
        cmocka_unit_test(find_newest_whole), cmocka_unit_test(resolve),
        cmocka_unit_test(wrong_model),       cmocka_unit_test(initial_weights),
        cmocka_unit_test(long_config),       cmocka_unit_test(version_1),
        cmocka_unit_test(files_of_nodes),    cmocka_unit_test(keep_whole),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
