/* What a checkpoint.h5 says about itself, and whether it is whole. */
#include "dist/checkpoint/node.h"
#include "data/hdf5/h5.h"
#include "data/hdf5/lock.h"
#include "dist/checkpoint/digest.h"

#include <stdlib.h>
#include <string.h>

/* A dataset of bytes as a text; *out stays NULL where there is none. */
static int read_bytes(hid_t file, const char *path, const char *name, char **out) {
    HDF5_HOLD();
    if (H5Lexists(file, name, H5P_DEFAULT) <= 0) return 0;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t space = dataset < 0 ? -1 : H5Dget_space(dataset);
    const hssize_t length = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    if (length >= 0 && length < INT32_MAX) *out = calloc((size_t)length + 1, 1);
    const bool read = *out && H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, *out) >= 0;
    if (space >= 0) H5Sclose(space);
    if (dataset >= 0) H5Dclose(dataset);
    return read ? 0 : gdn_fail(GDN_INPUT, "%s: dataset %s cannot be read", path, name);
}

/* The root attributes, and what goes with them. */
static int file_info(hid_t file, const char *path, struct checkpoint_info *out) {
    int64_t version;
    bool there;
    TRY(h5_has_attribute(file, path, "format_version", &there));
    if (!there)
        return gdn_fail(GDN_INPUT, "%s is not a gdn checkpoint: it has no attribute format_version", path);
    TRY(h5_read_int(file, path, "format_version", &version));
    if (version < 1 || version > FORMAT_VERSION)
        return gdn_fail(
            GDN_INPUT,
            "%s has the format version %lld, which this program does not know; it reads versions 1 to %d",
            path, (long long)version, FORMAT_VERSION);
    TRY(h5_read_int(file, path, "step", &out->step));
    TRY(h5_read_int(file, path, "samples", &out->samples));
    TRY(h5_read_double(file, path, "best_loss", &out->best_loss));
    TRY(h5_read_double(file, path, "loss", &out->loss));
    TRY(h5_has_attribute(file, path, "evaluation_due", &out->evaluation_due));
    TRY(h5_has_attribute(file, path, "loss_scale", &there));
    if (there) {
        TRY(h5_read_double(file, path, "loss_scale", &out->loss_scale));
        TRY(h5_read_int(file, path, "loss_scale_good", &out->loss_scale_good));
    }
    out->tokens = -1;
    TRY(h5_has_attribute(file, path, "tokens", &there));
    if (there) TRY(h5_read_int(file, path, "tokens", &out->tokens));
    TRY(h5_read_text(file, path, "config", &out->config));
    TRY(h5_has_attribute(file, path, "data", &there));
    if (there) TRY(h5_read_text(file, path, "data", &out->data));
    TRY(read_bytes(file, path, FILE_TOKENIZER, &out->tokenizer));
    TRY(read_bytes(file, path, FILE_TOKENIZER_CONFIG, &out->tokenizer_config));
    TRY(read_bytes(file, path, FILE_PRUNING, &out->pruning));
    TRY(h5_has_attribute(file, path, "configured", &there));
    return there ? h5_read_text(file, path, "configured", &out->configured) : 0;
}

int checkpoint_initial_tokenizer(const char *path, char **tokenizer, char **tokenizer_config) {
    hid_t file;
    *tokenizer = *tokenizer_config = NULL;
    TRY(h5_open(path, &file));
    int status = read_bytes(file, path, FILE_TOKENIZER, tokenizer);
    if (!status) status = read_bytes(file, path, FILE_TOKENIZER_CONFIG, tokenizer_config);
    h5_close(file);
    return status;
}

void file_info_free(struct checkpoint_info *info) {
    free(info->config);
    free(info->configured);
    free(info->data);
    free(info->tokenizer);
    free(info->tokenizer_config);
    free(info->pruning);
    info->config = info->configured = info->data = info->tokenizer = info->tokenizer_config = info->pruning = NULL;
}

int file_verify(const struct file_group *group, const char *path) {
    bool has_digest;
    TRY(digest_verify(group, path, &has_digest, NULL));
    if (has_digest) return node_verify(group, path);
    return gdn_fail(
        GDN_INPUT,
        "%s is an HDF5 file, but no checkpoint as gdn writes it: the checksum of the whole file is "
        "missing; its weights can serve as checkpoint.init_from",
        path);
}

int file_open(const char *path, hid_t *file, struct checkpoint_info *info) {
    *info = (struct checkpoint_info){0};
    TRY(h5_open(path, file));
    int status = file_info(*file, path, info);
    if (status) {
        file_info_free(info);
        h5_close(*file);
    }
    return status;
}

/* ------------------------------------------------------------------------------- checksums of datasets */

struct item {
    char *name;
    enum h5_sum kind;
    uint64_t right;
};

struct verification {
    const struct file_group *group;
    int count, room;
    struct item *item; /* [count] */
    uint64_t *sum;     /* [count] this rank's parts */
    int64_t bytes;
};

static int add_item(struct verification *c, const struct h5_dataset *d) {
    if (c->count == c->room) {
        int room = 2 * c->room + 64;
        struct item *item = realloc(c->item, (size_t)room * sizeof *item);
        if (item) c->item = item;
        uint64_t *sum = realloc(c->sum, (size_t)room * sizeof *sum);
        if (sum) c->sum = sum;
        if (!item || !sum) return gdn_fail(GDN_INTERNAL, "out of memory for checking %s", d->path);
        c->room = room;
    }
    char *name = strdup(d->name);
    if (!name) return gdn_fail(GDN_INTERNAL, "out of memory for checking %s", d->path);
    c->item[c->count] = (struct item){name, d->kind, d->sum};
    c->sum[c->count++] = 0;
    return 0;
}

static int take_sum(void *sum, const struct h5_dataset *d, const long at[2], const long size[2],
                    void *buffer) {
    *(uint64_t *)sum += h5_dataset_sum(d, at, size, buffer);
    return 0;
}

/* This rank's part of the work: some lines of each dataset; of a version 1 file some datasets whole. */
static int verify_open_dataset(struct verification *c, const struct h5_dataset *d) {
    if (d->kind == SUM_NONE) return gdn_fail(GDN_INPUT, "%s: dataset %s has no checksum", d->path, d->name);
    TRY(add_item(c, d));
    int i = c->count - 1, rank = c->group->rank, size = c->group->size;
    c->bytes += (int64_t)(d->shape[0] * d->shape[1] * d->element);
    if (d->kind == SUM_XXH3) return i % size == rank ? h5_dataset_verify_xxh3(d) : 0;
    long lines = (long)d->shape[0], first = lines * rank / size, end = lines * (rank + 1) / size;
    const long at[2] = {first, 0}, part[2] = {end - first, (long)d->shape[1]};
    return h5_dataset_each(d, at, part, take_sum, &c->sum[i]);
}

static int verify_dataset(void *check, hid_t file, const char *path, const char *name) {
    struct h5_dataset dataset;
    TRY(h5_dataset_open(file, path, name, &dataset));
    int status = verify_open_dataset(check, &dataset);
    h5_dataset_close(&dataset);
    return status;
}

static int verify_parts(struct verification *c, const char *path) {
    hid_t file;
    struct checkpoint_info info;
    TRY(file_open(path, &file, &info));
    file_info_free(&info);
    int status = h5_each_name(file, path, verify_dataset, c);
    h5_close(file);
    return status;
}

static int compare_sums(const struct verification *c, const char *path) {
    for (int i = 0; i < c->count; i++)
        if (c->item[i].kind == SUM_PLACED && c->sum[i] != c->item[i].right)
            return h5_dataset_damaged(path, c->item[i].name);
    return 0;
}

int file_verify_datasets(const struct file_group *group, const char *path, struct file_size *out) {
    struct verification c = {.group = group};
    int status = file_group_agree(group, verify_parts(&c, path));
    if (!status) status = file_group_sum(group, c.sum, c.count);
    if (!status) status = file_group_agree(group, compare_sums(&c, path));
    *out = (struct file_size){.datasets = c.count, .bytes = c.bytes};
    for (int i = 0; i < c.count; i++) free(c.item[i].name);
    free(c.item);
    free(c.sum);
    return status;
}
