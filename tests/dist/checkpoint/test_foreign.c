/* Files that this model and program have not written: of another model, of other programs, of format version
 * 1 (the first argument). Runs on any number of ranks. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/dist/checkpoint/saved.h"

static const char *old_file = "version_1.h5"; /* a checkpoint of version 1 */

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

/* Writes the sample's weights, but for delta connections', as float64 under /initial, as other programs
 * do. */
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

/* Files of format version 1 still load: version_1.h5 was written by the program of that time, in float32,
 * with the values below. */
static void version_1(void **unused) {
    (void)unused;
    struct sample *right = sample_new(1, 1), *loaded = sample_new(1, 2);
    real *const buffers[] = {right->state.weight, right->state.moment[0], right->state.moment[1]};
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
    const char *damaged = format("%s/damaged.h5", directory),
               *without_digest = format("%s/unsealed.h5", directory);
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
        write_bytes(without_digest, bytes + 512, length - 512);
        free(bytes);
    }
    barrier();
    assert_refused(sample_load(&mesh, damaged, loaded, NULL), "do not match the checksum in its first");
    assert_refused(load_initial(without_digest, loaded, &missing),
                   "dataset model/layers/0/mlp/up/weight does not match its checksum");
    sample_free(right);
    sample_free(loaded);
    free(directory);
}

int rank_main(void) {
    if (test_argument(1)) old_file = test_argument(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_model),
        cmocka_unit_test(initial_weights),
        cmocka_unit_test(version_1),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
