/* Reading weights and optimiser state. Rank 0 reads and all others get its bytes: the file is read once
 * whatever the number of ranks, all ranks have the same bits, and one process finds what is wrong. */
#include "dist/checkpoint_file.h"
#include "dist/h5.h"
#include "dist/rows.h"
#include "dist/seal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef GDN_DOUBLE
#define MEMORY H5T_NATIVE_DOUBLE
#else
#define MEMORY H5T_NATIVE_FLOAT
#endif

struct target {
    const struct row *row;
    real *memory;
};

static int take_block(void *context, const struct h5_dataset *dataset, long first, long n, void *buffer) {
    const struct target *target = context;
    if (H5Tconvert(dataset->type, MEMORY, (size_t)n * dataset->shape[1], buffer, NULL, H5P_DEFAULT) < 0)
        return h5_fail(GDN_INPUT, dataset->path, "dataset %s cannot be converted to " GDN_REAL_NAME,
                       dataset->name);
    rows_unpack(target->row, buffer, first, n, target->memory);
    return 0;
}

static void shape_words(int ndim, long a, long b, char words[64]) {
    if (ndim == 0)
        strcpy(words, "[]");
    else if (ndim == 1)
        snprintf(words, 64, "[%ld]", a);
    else
        snprintf(words, 64, "[%ld, %ld]", a, b);
}

static int check_tensor(const struct h5_dataset *d, const struct row *row) {
    if (d->integer)
        return gdn_fail(GDN_INPUT, "%s: dataset %s holds integers, not weights", d->path, d->name);
    if (d->ndim == row->ndim && (long)d->shape[0] == row->shape[0] && (long)d->shape[1] == row->shape[1])
        return 0;
    char stored[64], wanted[64];
    shape_words(d->ndim, (long)d->shape[0], (long)d->shape[1], stored);
    shape_words(row->ndim, row->shape[0], row->shape[1], wanted);
    return gdn_fail(GDN_INPUT, "%s: dataset %s has the shape %s, but the model's tensor %s has %s", d->path,
                    d->name, stored, row->name, wanted);
}

/* Reads dataset `name` into `memory` [row->count]. */
static int read_tensor(hid_t file, const char *path, const char *name, const struct row *row, real *memory) {
    struct h5_dataset dataset;
    struct target target = {row, memory};
    TRY(h5_dataset_open(file, path, name, &dataset));
    int status = check_tensor(&dataset, row);
    if (!status) status = h5_dataset_each(&dataset, take_block, &target);
    h5_dataset_close(&dataset);
    return status;
}

static int take_steps(void *context, const struct h5_dataset *dataset, long first, long n, void *buffer) {
    (void)first, (void)n;
    if (H5Tconvert(dataset->type, H5T_NATIVE_INT64, 1, buffer, NULL, H5P_DEFAULT) < 0)
        return h5_fail(GDN_INPUT, dataset->path, "dataset %s cannot be read", dataset->name);
    memcpy(context, buffer, sizeof(int64_t));
    return 0;
}

static int read_steps(hid_t file, const char *path, const char *name, int64_t *steps) {
    struct h5_dataset dataset;
    TRY(h5_dataset_open(file, path, name, &dataset));
    int status;
    if (dataset.integer && dataset.shape[0] == 1 && dataset.shape[1] == 1)
        status = h5_dataset_each(&dataset, take_steps, steps);
    else
        status = gdn_fail(GDN_INPUT, "%s: dataset %s is not one integer", path, name);
    h5_dataset_close(&dataset);
    return status;
}

/* Reads every row's tensor below `group` into `memory` [table->total]. Without `missing` all must be there;
 * with it, those of delta connections may be absent and are counted. */
static int read_group(hid_t file, const char *path, const char *group, const struct table *table,
                      real *memory, int *missing) {
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        char name[ROWS_NAME];
        bool there;
        rows_dataset_name(row, group, name);
        TRY(h5_exists(file, path, name, &there));
        if (there)
            TRY(read_tensor(file, path, name, row, memory + row->offset));
        else if (missing && (row->distance || row->select))
            ++*missing;
        else
            return gdn_fail(GDN_INPUT, "%s has no dataset /%s, which the model's tensor %s needs", path, name,
                            row->name);
    }
    return 0;
}

/* Counts the datasets below /model, to find those that the model does not have. */
static int count_model(void *count, hid_t file, const char *path, const char *name) {
    (void)file, (void)path;
    if (!strncmp(name, "model/", strlen("model/"))) ++*(int *)count;
    return 0;
}

static int read_checkpoint(hid_t file, const char *path, const struct table *table, struct state *state) {
    int stored = 0;
    TRY(h5_each_name(file, path, count_model, &stored));
    TRY(read_group(file, path, "model", table, state->weight, NULL));
    if (stored != table->rows)
        return gdn_fail(GDN_INPUT, "%s is of another model: it has %d tensors where this one has %d", path,
                        stored, table->rows);
    if (!state->exp_avg) return 0;
    TRY(read_group(file, path, "optimizer/exp_avg", table, state->exp_avg, NULL));
    TRY(read_group(file, path, "optimizer/exp_avg_sq", table, state->exp_avg_sq, NULL));
    for (int i = 0; i < table->rows; i++) {
        char name[ROWS_NAME];
        rows_dataset_name(&table->row[i], "optimizer/step", name);
        TRY(read_steps(file, path, name, &state->steps[i]));
    }
    return 0;
}

static int load_here(const char *path, const struct table *table, struct state *state,
                     struct checkpoint_info *out) {
    hid_t file;
    TRY(file_open(path, &file, out));
    int status = read_checkpoint(file, path, table, state);
    if (status) free(out->config), out->config = NULL;
    H5Fclose(file);
    return status;
}

/* Gives rank 0's text to all, each its own copy. */
static int broadcast_text(const struct mesh *mesh, char **text) {
    long size = mesh->rank == 0 ? (long)strlen(*text) + 1 : 0;
    TRY(mesh_broadcast(mesh, &size, sizeof size));
    if (mesh->rank != 0) *text = malloc((size_t)size);
    TRY(mesh_agree(mesh,
                   *text ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a checkpoint's configuration")));
    return mesh_broadcast(mesh, *text, size);
}

int checkpoint_load(const struct mesh *mesh, const char *path, const struct table *table, struct state *state,
                    struct checkpoint_info *out) {
    long bytes = table->total * (long)sizeof(real);
    *out = (struct checkpoint_info){0};
    TRY(mesh_agree(mesh, mesh->rank == 0 ? load_here(path, table, state, out) : 0));

    TRY(mesh_broadcast(mesh, state->weight, bytes));
    if (state->exp_avg) {
        TRY(mesh_broadcast(mesh, state->exp_avg, bytes));
        TRY(mesh_broadcast(mesh, state->exp_avg_sq, bytes));
        TRY(mesh_broadcast(mesh, state->steps, table->rows * (long)sizeof *state->steps));
    }
    char *config = out->config;
    TRY(mesh_broadcast(mesh, out, sizeof *out));
    out->config = config; /* a pointer of this rank, not of rank 0 */
    return broadcast_text(mesh, &out->config);
}

/* A table to look names up in, and the group that holds them. */
struct known {
    const struct table *table;
    const char *group;
};

/* Refuses a tensor of the group that the model does not have. */
static int check_known(void *context, hid_t file, const char *path, const char *name) {
    const struct known *known = context;
    size_t length = strlen(known->group);
    (void)file;
    if (strncmp(name, known->group, length) != 0 || name[length] != '/') return 0;
    for (int i = 0; i < known->table->rows; i++) {
        char row[ROWS_NAME];
        rows_dataset_name(&known->table->row[i], known->group, row);
        if (!strcmp(name, row)) return 0;
    }
    return gdn_fail(GDN_INPUT, "%s has the tensor /%s, which this model does not have", path, name);
}

/* Reads from the first of the groups that is there. */
static int read_initial(hid_t file, const char *path, const struct table *table, struct state *state,
                        int *missing) {
    static const char *const groups[] = {"initial", "model"};
    for (int i = 0; i < 2; i++) {
        bool there;
        TRY(h5_exists(file, path, groups[i], &there));
        if (!there) continue;
        TRY(read_group(file, path, groups[i], table, state->weight, missing));
        return h5_each_name(file, path, check_known, &(struct known){table, groups[i]});
    }
    return gdn_fail(GDN_INPUT, "%s has neither a group /initial nor a group /model with weights", path);
}

static int load_initial_here(const char *path, const struct table *table, struct state *state, int *missing) {
    bool sealed; /* or not: weights of other programs are welcome */
    hid_t file;
    TRY(seal_check(path, &sealed));
    TRY(h5_open(path, &file));
    int status = read_initial(file, path, table, state, missing);
    H5Fclose(file);
    return status;
}

int checkpoint_load_initial(const struct mesh *mesh, const char *path, const struct table *table,
                            struct state *state, int *missing) {
    *missing = 0;
    TRY(mesh_agree(mesh, mesh->rank == 0 ? load_initial_here(path, table, state, missing) : 0));
    TRY(mesh_broadcast(mesh, missing, sizeof *missing));
    return mesh_broadcast(mesh, state->weight, table->total * (long)sizeof(real));
}
