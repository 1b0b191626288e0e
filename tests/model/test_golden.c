/* The first step's losses and every parameter's gradient against the golden files of tests/golden, on every
 * backend: test_golden DIRECTORY. (Whole trajectories run through the program: tests/program/golden.sh.)
 *
 * Tolerances (model.md, 10): float32 PyTorch itself is within 1e-6 and 5e-5 of these float64 values; a
 * float32 run here must stay within 1e-5 of a loss and 2e-4 of a gradient's norm, a double build within 1e-9.
 * A gradient that is exactly zero in the file must be exactly zero. In floats a stream that is stored in bf16
 * may have an element rounded to its other neighbour, 2⁻⁸ away, which is up to 2⁻⁸/√(its 500 elements) = 2e-4
 * of all: ten times as much is allowed of these files, of the gradients together, since sums of few numbers
 * may cancel to less. */
#include <glob.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/format.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"
#include "model/params/exits.h"
#include "tests/model/fixture.h"
#include "tests/support/absolute.h"
#include "train/config/config.h"
#include "train/evaluation/data_part.h"

static const char *directory;

static double loss_tolerance(const struct model_config *c) {
    return sizeof(real) == 8 ? 1e-9 : c->residual == RESIDUAL_BF16 ? 1e-4 : 1e-5;
}
static double gradient_tolerance(const struct model_config *c) {
    return sizeof(real) == 8 ? 1e-9 : c->residual == RESIDUAL_BF16 ? 2e-3 : 2e-4;
}

/* The whole dataset as doubles; the caller frees it. NULL where it does not exist. */
static double *read_doubles(hid_t file, const char *name, long *count) {
    if (H5Lexists(file, name, H5P_DEFAULT) <= 0) return NULL;
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    *count = (long)H5Sget_simple_extent_npoints(space);
    double *values = malloc((size_t)(*count + 1) * sizeof *values);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Sclose(space);
    H5Dclose(set);
    return values;
}

static char *read_config(hid_t file) {
    hid_t attribute = H5Aopen(file, "config", H5P_DEFAULT), type = H5Aget_type(attribute);
    char *text = NULL;
    assert_true(H5Tis_variable_str(type) > 0); /* as h5py writes them */
    assert_true(H5Aread(attribute, type, &text) >= 0);
    H5Tclose(type);
    H5Aclose(attribute);
    return text;
}

static void dataset_name(char *name, size_t size, const char *group, const struct row *row) {
    snprintf(name, size, "%s/%s", group, row->name);
    for (char *c = name; *c; c++)
        if (*c == '.') *c = '/';
}

/* Where element i of the file lies in memory. */
static long place(const struct row *row, long i) {
    return row->transposed ? i % row->shape[1] * row->shape[0] + i / row->shape[1] : i;
}

static void load_weights(hid_t file, const char *path, struct fixture *f) {
    char name[160];
    long count;
    for (int i = 0; i < f->table.rows; i++) {
        const struct row *row = &f->table.row[i];
        dataset_name(name, sizeof name, "/initial", row);
        double *values = read_doubles(file, name, &count);
        if (!values || count != row->count) fail_msg("%s: %s is missing or of another size", path, name);
        for (long j = 0; j < count; j++) f->state.weight[row->offset + place(row, j)] = (real)values[j];
        free(values);
    }
}

/* Every tensor's gradient, with these edges active. */
static void check_gradients(hid_t file, const char *path, const struct fixture *f,
                            const struct edge_set *active, const struct ops *ops) {
    const bool together = sizeof(real) != 8 && f->config.residual == RESIDUAL_BF16;
    char name[160];
    long count;
    double all_norm = 0, all_error = 0;
    for (int i = 0; i < f->table.rows; i++) {
        const struct row *row = &f->table.row[i];
        dataset_name(name, sizeof name, "/gradient", row);
        double *theirs = read_doubles(file, name, &count), norm = 0, error = 0;
        assert_true(!theirs == !params_active(row, active));
        for (long j = 0; j < row->count; j++) {
            double ours = f->state.gradient[row->offset + place(row, j)], expected = theirs ? theirs[j] : 0;
            if (expected == 0 && ours != 0)
                fail_msg("%s, %s: %s[%ld] is %g, expected 0", path, ops->name, name, j, ours);
            norm += expected * expected, error += (ours - expected) * (ours - expected);
        }
        all_norm += norm, all_error += error;
        if (!together && !(sqrt(error) <= gradient_tolerance(&f->config) * sqrt(norm)))
            fail_msg("%s, %s: %s differs by %g of its norm %g", path, ops->name, name, sqrt(error / norm),
                     sqrt(norm));
        free(theirs);
    }
    if (!(sqrt(all_error) <= gradient_tolerance(&f->config) * sqrt(all_norm)))
        fail_msg("%s, %s: gradients differ by %g of their norm", path, ops->name, sqrt(all_error / all_norm));
}

/* The first batch: what the means of its loss are over. */
struct batch {
    int32_t *rows; /* [B, S + 1] */
    double targets, tokens;
};

/* Reads it as training does. The file has tokens, loss mask and documents as a token file does. */
static struct batch read_batch(const char *path, const struct config *config) {
    const long B = config->train.batch_size, S = config->train.sequence_length;
    struct batch batch = {.rows = malloc((size_t)(B * (S + 1)) * sizeof *batch.rows)};
    struct config of_file = *config;
    char *name = strdup(path);
    const struct path_list files = {.paths = &name, .count = 1};
    struct sampler *sampler;
    of_file.data.format = token_format_number(&hdf5_format);
    if (data_part_open(&of_file, &files, false, 0, 1, &sampler) ||
        sampler_read(sampler, 0, B, config->model.vocab_size, batch.rows))
        fail_msg("%s", gdn_failure());
    for (long b = 0; b < B; b++)
        for (long s = 0; s < S; s++) {
            const int32_t *row = batch.rows + b * (S + 1) + s;
            batch.tokens += !(row[0] & MARK_PADDING);
            batch.targets += !(row[1] & MARK_UNCOUNTED);
        }
    sampler_close(sampler);
    free(name);
    return batch;
}

static void check_file(const char *path, const struct ops *ops) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    char *text = read_config(file), name[160];
    struct config c;
    if (config_parse(text, path, NULL, 0, &c)) fail_msg("%s", gdn_failure());
    H5free_memory(text);
    struct fixture f;
    const struct model_part part = {.documents = c.data.documents == DOCUMENTS_MASK,
                                    .padding = c.data.packing == PACKING_BEST_FIT};
    fixture_create_part(&f, &c.model, ops, c.train.batch_size, c.train.sequence_length, 1, 0, &part);
    long count, B = c.train.batch_size, S = c.train.sequence_length;
    load_weights(file, path, &f);
    const struct batch batch = read_batch(path, &c);
    struct loss_options o = {.active = fixture_active(&c.model, active_distances(&c.model.delta, 0)),
                             .target_weight = 1.0 / batch.targets,
                             .token_weight = 1.0 / batch.tokens,
                             .masks = dropout_key(c.train.seed, 0),
                             .measure = true};
    o.z_weight = c.train.z_loss, o.l1_weight = c.model.delta.l1_weight;
    exit_weights(&c.model.exit, 0, c.train.steps, o.exit_weight);
    if (c.model.delta.regularizer == REGULARIZER_FIXED)
        o.sparsity_weight = c.model.delta.sparsity_weight, o.entropy_weight = c.model.delta.entropy_weight;
    if (c.model.delta.regularizer == REGULARIZER_ADAPTIVE) o.entropy_weight = 0.01; /* p = 0 at step 0 */
    struct loss_sums sums;
    double loss = fixture_loss(&f, batch.rows, B, S, &o, true, &sums),
           l1 = add_absolute(&f.table, &f.state, &o), connections = (double)model_measured(f.model, o.active),
           each = batch.tokens * (connections > 0 ? connections : 1);
    const struct {
        const char *name;
        double ours;
    } terms[] = {{"loss", loss + o.l1_weight * l1},  {"ce", sums.ce / batch.targets},
                 {"sparsity", sums.sparsity / each}, {"entropy", sums.entropy / each},
                 {"z_loss", sums.z / batch.targets}, {"l1", l1}};
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "/trajectory/%s", terms[i].name);
        double *theirs = read_doubles(file, name, &count);
        if (!theirs && i >= 4 && terms[i].ours == 0) continue;
        assert_non_null(theirs);
        if (!(fabs(terms[i].ours - theirs[0]) <= loss_tolerance(&c.model) * fabs(theirs[0])))
            fail_msg("%s, %s: %s is %.12g, expected %.12g", path, ops->name, terms[i].name, terms[i].ours,
                     theirs[0]);
        free(theirs);
    }
    double *exits = read_doubles(file, "/trajectory/exits", &count);
    assert_true(!exits == !c.model.exit.num_layers);
    for (int e = 0; e < c.model.exit.num_layers; e++)
        if (isnan(exits[e]) ? sums.exits[e] != 0
                            : !(fabs(sums.exits[e] / batch.targets - exits[e]) <= loss_tolerance(&c.model) * exits[e]))
            fail_msg("%s, %s: exit %d has %.12g, expected %.12g", path, ops->name, e,
                     sums.exits[e] / batch.targets, exits[e]);
    free(exits);
    check_gradients(file, path, &f, o.active, ops);
    free(batch.rows);
    fixture_free(&f);
    config_free(&c);
    H5Fclose(file);
}

static void test_all(void **state) {
    (void)state;
    char pattern[1024];
    glob_t files;
    snprintf(pattern, sizeof pattern, "%s/*.h5", directory);
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    assert_true(files.gl_pathc >= 24); /* every kind × aggregate × normalize */
    for (size_t i = 0; i < files.gl_pathc; i++)
        for (int b = 0; test_backends()[b]; b++) check_file(files.gl_pathv[i], test_backends()[b]);
    print_message("%zu golden files\n", files.gl_pathc);
    globfree(&files);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    directory = argv[1];
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* a dataset that is not there is no failure */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
