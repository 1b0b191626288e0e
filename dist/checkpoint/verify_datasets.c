/* The checksums of a file's datasets, by the ranks of a file group together: the first lists the datasets,
 * and each is opened and read by one rank, but the long ones, of which all read some lines. (Opening takes
 * longer than reading where models are small, and asks the file system where they are not.) */
#include "data/hdf5/h5.h"
#include "dist/checkpoint/file.h"

#include <stdlib.h>
#include <string.h>

enum { LONG = H5_BLOCK_BYTES };

/* Of a dataset, what its rank tells the others. 8 bytes each, to be added up. */
struct size {
    uint64_t bytes, divided; /* divided: 1 where all ranks read some lines of it */
};

struct verification {
    const struct file_group *group;
    const char *path;
    hid_t file;
    char *names; /* one after the other, each with its final zero */
    size_t length;
    int count;
    struct size *size; /* [count] */
    uint64_t *right;   /* [count] of this rank's datasets, which are every group->size-th */
    uint64_t *sum;     /* [count] this rank's parts of those that are divided */
};

static bool is_mine(const struct verification *v, int i) {
    return i % v->group->size == v->group->rank;
}

/* The first rank sees for all whether the attributes can be read, and lists the datasets. */
static int open_file(struct verification *v) {
    struct checkpoint_info info;
    if (v->group->rank > 0) return h5_open(v->path, &v->file);
    TRY(file_open(v->path, &v->file, &info));
    file_info_free(&info);
    return h5_names(v->file, v->path, &v->names, &v->length);
}

/* The first rank's list to all. */
static int share_names(struct verification *v) {
    static const char what[] = "the names of a checkpoint's datasets";
    TRY(file_group_broadcast(v->group, &v->length, sizeof v->length));
    if (v->group->rank > 0) v->names = malloc(v->length + 1);
    TRY(file_group_agree(v->group, v->names ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for %s", what)));
    TRY(file_group_broadcast(v->group, v->names, (long)v->length));
    for (size_t at = 0; at < v->length; at++) v->count += !v->names[at];
    if (!(v->size = file_group_allocate(v->group, (size_t)v->count * sizeof *v->size, what)) ||
        !(v->right = file_group_allocate(v->group, (size_t)v->count * sizeof *v->right, what)) ||
        !(v->sum = file_group_allocate(v->group, (size_t)v->count * sizeof *v->sum, what)))
        return GDN_INTERNAL;
    return 0;
}

static int take_sum(void *sum, const struct h5_dataset *d, const long at[2], const long size[2],
                    void *buffer) {
    *(uint64_t *)sum += h5_dataset_sum(d, at, size, buffer);
    return 0;
}

/* Part `part` of `parts` of the dataset's lines. */
static int add_lines(const struct h5_dataset *d, int part, int parts, uint64_t *sum) {
    const long lines = (long)d->shape[0], first = lines * part / parts, end = lines * (part + 1) / parts;
    const long at[2] = {first, 0}, size[2] = {end - first, (long)d->shape[1]};
    return h5_dataset_each(d, at, size, take_sum, sum);
}

/* This rank's dataset: whole, or what the others need to know to divide it. Files of version 1 have sums that
 * no two ranks can make together. */
static int verify_own(struct verification *v, int i, const struct h5_dataset *d) {
    uint64_t sum = 0;
    if (d->kind == SUM_NONE) return gdn_fail(GDN_INPUT, "%s: dataset %s has no checksum", d->path, d->name);
    v->size[i].bytes = d->shape[0] * d->shape[1] * d->element;
    v->right[i] = d->sum;
    if (d->kind == SUM_XXH3) return h5_dataset_verify_xxh3(d);
    v->size[i].divided = v->group->size > 1 && v->size[i].bytes > LONG;
    if (v->size[i].divided) return 0;
    TRY(add_lines(d, 0, 1, &sum));
    return sum == d->sum ? 0 : h5_dataset_damaged(d->path, d->name);
}

static int verify_lines(struct verification *v, int i, const struct h5_dataset *d) {
    return add_lines(d, v->group->rank, v->group->size, &v->sum[i]);
}

static bool is_divided(const struct verification *v, int i) {
    return v->size[i].divided;
}

/* Opens those of the datasets that `chosen` takes. */
static int each(struct verification *v, bool (*chosen)(const struct verification *, int i),
                int (*verify)(struct verification *, int i, const struct h5_dataset *)) {
    const char *name = v->names;
    for (int i = 0; i < v->count; i++, name += strlen(name) + 1) {
        struct h5_dataset dataset;
        if (!chosen(v, i)) continue;
        TRY(h5_dataset_open(v->file, v->path, name, &dataset));
        int status = verify(v, i, &dataset);
        h5_dataset_close(&dataset);
        if (status) return status;
    }
    return 0;
}

static int compare_divided(const struct verification *v) {
    const char *name = v->names;
    for (int i = 0; i < v->count; i++, name += strlen(name) + 1)
        if (is_divided(v, i) && is_mine(v, i) && v->sum[i] != v->right[i])
            return h5_dataset_damaged(v->path, name);
    return 0;
}

static int verify_all(struct verification *v) {
    const struct file_group *group = v->group;
    TRY(file_group_agree(group, open_file(v)));
    TRY(share_names(v));
    TRY(file_group_agree(group, each(v, is_mine, verify_own)));
    TRY(file_group_sum(group, (uint64_t *)v->size, 2L * v->count));
    TRY(file_group_agree(group, each(v, is_divided, verify_lines)));
    TRY(file_group_sum(group, v->sum, v->count));
    return file_group_agree(group, compare_divided(v));
}

int file_verify_datasets(const struct file_group *group, const char *path, struct file_size *out) {
    struct verification v = {.group = group, .path = path, .file = -1};
    int status = verify_all(&v);
    *out = (struct file_size){.datasets = v.count};
    if (v.size)
        for (int i = 0; i < v.count; i++) out->bytes += (int64_t)v.size[i].bytes;
    if (v.file >= 0) h5_close(v.file);
    free(v.names);
    free(v.size);
    free(v.right);
    free(v.sum);
    return status;
}
