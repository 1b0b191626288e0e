/* Reading weights and optimiser state: each rank what it holds. All ranks look at all datasets, so that what
 * does not fit is found by all alike. */
#include "dist/checkpoint/node.h"
#include "data/hdf5/h5.h"
#include "dist/checkpoint/digest.h"
#include "data/hdf5/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file that is being read into a rank's parts. */
struct reader {
    const struct file_group *file_group;
    const char *path;
    hid_t file;
    const struct parts *parts;
    const char *group; /* for weights: "model" or "initial" */
    int *missing;      /* tensors of delta connections may be missing and are counted; NULL: none may */
    bool fresh;        /* content.fresh */
    int next;          /* the first part of the datasets that are still to be read */

    /* [datasets] */
    uint64_t *sum;   /* checksum of what this rank's parts count, then of all */
    uint64_t *right; /* what it should be */
    bool *placed;    /* it is known */
};

static void name_of(const struct reader *r, int dataset, char name[ROWS_NAME]) {
    if (dataset < r->parts->rows)
        rows_dataset_name(parts_row(r->parts, dataset), r->group, name);
    else
        parts_name(r->parts, dataset, name);
}

/* ------------------------------------------------------------------------------------------- a tensor */

static void shape_text(int ndim, long a, long b, char text[64]) {
    if (ndim == 0)
        strcpy(text, "[]");
    else if (ndim == 1)
        snprintf(text, 64, "[%ld]", a);
    else
        snprintf(text, 64, "[%ld, %ld]", a, b);
}

static int verify_tensor(const struct h5_dataset *d, const struct row *row) {
    if (d->integer)
        return gdn_fail(GDN_INPUT, "%s: dataset %s holds integers, not weights", d->path, d->name);
    if (d->ndim == row->ndim && (long)d->shape[0] == row->shape[0] && (long)d->shape[1] == row->shape[1])
        return 0;
    char stored[64], wanted[64];
    shape_text(d->ndim, (long)d->shape[0], (long)d->shape[1], stored);
    shape_text(row->ndim, row->shape[0], row->shape[1], wanted);
    return gdn_fail(GDN_INPUT, "%s: dataset %s has the shape %s, but the model's tensor %s has %s", d->path,
                    d->name, stored, row->name, wanted);
}

struct target {
    struct reader *reader;
    const struct part *part;
};

static int take_block(void *context, const struct h5_dataset *d, const long at[2], const long size[2],
                      void *buffer) {
    const struct target *t = context;
    const struct part *part = t->part;
    if (part->counts && d->kind == SUM_PLACED)
        t->reader->sum[part->dataset] += h5_dataset_sum(d, at, size, buffer);
    TRY(h5_dataset_to_real(d, size[0] * size[1], buffer));
    rows_unpack(&part->where, buffer, at[0] - part->where.at[0], size[0], part->memory);
    return 0;
}

/* Reads this rank's parts of an open dataset. */
static int read_parts(struct reader *r, int dataset, const struct h5_dataset *d) {
    TRY(verify_tensor(d, parts_row(r->parts, dataset)));
    r->right[dataset] = d->sum, r->placed[dataset] = d->kind == SUM_PLACED;
    if (d->kind == SUM_XXH3 && dataset % r->file_group->size == r->file_group->rank)
        TRY(h5_dataset_verify_xxh3(d));
    for (; r->next < r->parts->count && r->parts->part[r->next].dataset == dataset; r->next++) {
        const struct part *part = &r->parts->part[r->next];
        TRY(h5_dataset_each(d, part->where.at, part->where.size, take_block, &(struct target){r, part}));
    }
    return 0;
}

static void skip(struct reader *r, int dataset) {
    while (r->next < r->parts->count && r->parts->part[r->next].dataset == dataset) r->next++;
}

/* Whether the file has all moments of a tensor: another optimiser's may be there. */
static int find_moments(const struct reader *r, const struct row *row, bool *there) {
    *there = true;
    for (int m = 0; m < row->treatment.moments->count && *there; m++) {
        char group[ROWS_NAME], name[ROWS_NAME];
        snprintf(group, sizeof group, "optimizer/%s", row->treatment.moments->name[m]);
        rows_dataset_name(row, group, name);
        TRY(h5_exists(r->file, r->path, name, there));
    }
    return 0;
}

static int read_dataset(struct reader *r, int dataset) {
    const struct row *row = parts_row(r->parts, dataset);
    struct h5_dataset d;
    char name[ROWS_NAME];
    bool there;
    if (r->fresh && r->parts->dataset[dataset].moment >= 0) {
        TRY(find_moments(r, row, &there));
        if (!there) {
            skip(r, dataset);
            return 0;
        }
    }
    name_of(r, dataset, name);
    TRY(h5_exists(r->file, r->path, name, &there));
    if (there) {
        TRY(h5_dataset_open(r->file, r->path, name, &d));
        int status = read_parts(r, dataset, &d);
        h5_dataset_close(&d);
        return status;
    }
    if (!r->missing || (!row->distance && !row->select))
        return gdn_fail(GDN_INPUT, "%s has no dataset /%s, which the model's tensor %s needs", r->path, name,
                        row->name);
    ++*r->missing;
    skip(r, dataset);
    return 0;
}

static int read_datasets(struct reader *r) {
    for (int i = 0; i < r->parts->datasets; i++) TRY(read_dataset(r, i));
    return 0;
}

/* --------------------------------------------------------------------------------------------- steps */

static int take_steps(void *context, const struct h5_dataset *d, const long at[2], const long size[2],
                      void *buffer) {
    if (d->kind == SUM_PLACED && h5_dataset_sum(d, at, size, buffer) != d->sum)
        return h5_dataset_damaged(d->path, d->name);
    HDF5_HOLD();
    if (H5Tconvert(d->type, H5T_NATIVE_INT64, 1, buffer, NULL, H5P_DEFAULT) < 0)
        return h5_fail(GDN_INPUT, d->path, "dataset %s cannot be read", d->name);
    memcpy(context, buffer, sizeof(int64_t));
    return 0;
}

static int read_open_steps(const struct h5_dataset *d, int64_t *steps) {
    const long at[2] = {0, 0}, size[2] = {1, 1};
    if (!d->integer || d->shape[0] != 1 || d->shape[1] != 1)
        return gdn_fail(GDN_INPUT, "%s: dataset %s is not one integer", d->path, d->name);
    if (d->kind == SUM_XXH3) TRY(h5_dataset_verify_xxh3(d));
    return h5_dataset_each(d, at, size, take_steps, steps);
}

/* Of this rank's tensors. */
static int read_steps(const struct reader *r, const struct checkpoint_content *content) {
    for (int i = 0; i < content->table->rows; i++) {
        char name[ROWS_NAME];
        struct h5_dataset d;
        bool there = true;
        if (r->fresh) TRY(find_moments(r, &content->table->row[i], &there));
        content->state->steps[i] = 0;
        if (!there) continue;
        rows_dataset_name(&content->table->row[i], "optimizer/step", name);
        TRY(h5_dataset_open(r->file, r->path, name, &d));
        int status = read_open_steps(&d, &content->state->steps[i]);
        h5_dataset_close(&d);
        TRY(status);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------- small datasets */

/* A dataset of `count` elements of `size` bytes, which may be absent; one of another kind or length is of no
 * use. Every rank reads all of it. */
struct small {
    const char *name;
    void *elements;
    long count;
    size_t size;
    bool integer;
};

static int take_small(void *context, const struct h5_dataset *d, const long at[2], const long size[2],
                      void *buffer) {
    memcpy((char *)context + (size_t)at[0] * d->element, buffer, (size_t)size[0] * d->element);
    return 0;
}

static int read_open_small(const struct h5_dataset *d, const struct small *small) {
    const long at[2] = {0, 0}, size[2] = {small->count, 1};
    if (d->integer != small->integer || d->element != small->size ||
        (long)(d->shape[0] * d->shape[1]) != small->count)
        return 0;
    TRY(h5_dataset_each(d, at, size, take_small, small->elements));
    return h5_dataset_sum(d, at, size, small->elements) == d->sum ? 0 : h5_dataset_damaged(d->path, d->name);
}

static int read_small(const struct reader *r, const struct small *small) {
    struct h5_dataset d;
    bool there = false;
    if (small->count) TRY(h5_exists(r->file, r->path, small->name, &there));
    if (!there) return 0;
    TRY(h5_dataset_open(r->file, r->path, small->name, &d));
    int status = read_open_small(&d, small);
    h5_dataset_close(&d);
    return status;
}

/* Scales of products in 8 bits; the window in which spikes are looked for. */
static int read_smalls(const struct reader *r, const struct checkpoint_content *c) {
    TRY(read_small(r, &(struct small){FILE_SCALES, c->scales, c->num_scales, sizeof *c->scales, true}));
    return read_small(r, &(struct small){FILE_SPIKES, c->spikes, c->spike_values, sizeof *c->spikes, false});
}

/* -------------------------------------------------------------------------------------- what to read */

static bool in_group(const struct reader *r, const char *name) {
    size_t length = strlen(r->group);
    return !strncmp(name, r->group, length) && name[length] == '/';
}

struct count {
    const struct reader *reader;
    int datasets;
};

static int count_dataset(void *context, hid_t file, const char *path, const char *name) {
    struct count *count = context;
    (void)file, (void)path;
    count->datasets += in_group(count->reader, name);
    return 0;
}

/* How many tensors the group has in the file, to find those that the model does not have. */
static int count_tensors(const struct reader *r, int *out) {
    struct count count = {.reader = r};
    TRY(h5_each_name(r->file, r->path, count_dataset, &count));
    *out = count.datasets;
    return 0;
}

static void clear_moments(const struct checkpoint_content *content) {
    for (int m = 0; m < MOMENTS && content->state->moment[m]; m++) {
        long count = content->shards ? content->shards->kept[m] : content->table->total;
        memset(content->state->moment[m], 0, (size_t)count * sizeof(real));
    }
}

static int read_checkpoint(struct reader *r, const struct checkpoint_content *content) {
    int stored, rows = r->parts->rows;
    r->group = "model";
    r->fresh = content->fresh && r->parts->moments;
    if (r->fresh) clear_moments(content);
    TRY(read_datasets(r));
    TRY(count_tensors(r, &stored));
    if (content->part ? stored < rows : stored != rows)
        return gdn_fail(GDN_INPUT, "%s is of another model: it has %d tensors where this one has %d", r->path,
                        stored, rows);
    TRY(read_smalls(r, content));
    return r->parts->moments ? read_steps(r, content) : 0;
}

/* Refuses a tensor of the group that the model does not have. */
static int refuse_stranger(void *context, hid_t file, const char *path, const char *name) {
    const struct reader *r = context;
    (void)file;
    if (!in_group(r, name)) return 0;
    for (int i = 0; i < r->parts->rows; i++) {
        char row[ROWS_NAME];
        name_of(r, i, row);
        if (!strcmp(name, row)) return 0;
    }
    return gdn_fail(GDN_INPUT, "%s has the tensor /%s, which this model does not have", path, name);
}

/* Reads from the first of the groups that is there. */
static int read_initial(struct reader *r, const struct checkpoint_content *content) {
    static const char *const groups[] = {"initial", "model"};
    (void)content;
    for (int i = 0; i < 2; i++) {
        bool there;
        int stored;
        TRY(h5_exists(r->file, r->path, groups[i], &there));
        if (!there) continue;
        r->group = groups[i];
        TRY(read_datasets(r));
        TRY(count_tensors(r, &stored));
        if (stored == r->parts->rows - *r->missing) return 0;
        return h5_each_name(r->file, r->path, refuse_stranger, r);
    }
    return gdn_fail(GDN_INPUT, "%s has neither a group /initial nor a group /model with weights", r->path);
}

/* ------------------------------------------------------------------------------------------ together */

typedef int read_file(struct reader *r, const struct checkpoint_content *content);

static int open_and_read(struct reader *r, read_file *read, const struct checkpoint_content *content) {
    TRY(h5_open(r->path, &r->file));
    int status = read(r, content);
    h5_close(r->file);
    return status;
}

static int compare_sums(const struct reader *r) {
    for (int i = 0; i < r->parts->datasets; i++) {
        if (!r->placed[i] || r->sum[i] == r->right[i]) continue;
        char name[ROWS_NAME];
        name_of(r, i, name);
        return h5_dataset_damaged(r->path, name);
    }
    return 0;
}

/* Reads the parts that parts_create has listed with this status. */
static int load_parts(const struct file_group *file_group, struct reader *r, read_file *read,
                      const struct checkpoint_content *content) {
    static const char what[] = "reading a checkpoint";
    size_t datasets = (size_t)r->parts->datasets;
    int status = GDN_INTERNAL;
    r->sum = file_group_allocate(file_group, datasets * sizeof *r->sum, what);
    if (r->sum) r->right = file_group_allocate(file_group, datasets * sizeof *r->right, what);
    if (r->right) r->placed = file_group_allocate(file_group, datasets * sizeof *r->placed, what);
    if (r->placed) status = file_group_agree(file_group, open_and_read(r, read, content));
    if (!status) status = file_group_sum(file_group, r->sum, (long)datasets);
    if (!status) status = file_group_agree(file_group, compare_sums(r));
    free(r->sum);
    free(r->right);
    free(r->placed);
    return status;
}

static int load(const struct mesh *mesh, const char *path, read_file *read,
                const struct checkpoint_content *content, int *missing) {
    struct file_group file_group = file_group_all(mesh);
    struct parts parts;
    struct reader r = {.file_group = &file_group, .path = path, .parts = &parts, .missing = missing};
    int status = file_group_agree(&file_group, parts_create(mesh, content, PARTS_READ, &parts));
    if (!status) status = load_parts(&file_group, &r, read, content);
    parts_free(&parts);
    return status;
}

int checkpoint_load(const struct mesh *mesh, const struct checkpoint *checkpoint,
                    const struct checkpoint_content *content) {
    return load(mesh, checkpoint->path, read_checkpoint, content, NULL);
}

int checkpoint_load_initial(const struct mesh *mesh, const char *path,
                            const struct checkpoint_content *content, int *missing) {
    struct file_group file_group = file_group_all(mesh);
    struct state weights = {.weight = content->state->weight};
    struct checkpoint_content alone = {.global = content->global, .table = content->table, .state = &weights};
    bool has_digest; /* or not: weights of other programs are welcome */
    *missing = 0;
    TRY(digest_verify(&file_group, path, &has_digest, NULL));
    if (has_digest) TRY(node_verify(&file_group, path));
    return load(mesh, path, read_initial, &alone, missing);
}
