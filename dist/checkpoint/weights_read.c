/* Weights of a checkpoint, tensor by tensor. */
#include "dist/checkpoint/file.h"
#include "dist/checkpoint/weights.h"

#include <string.h>

int weights_open(const char *path, struct weights *out) {
    struct mesh alone = mesh_alone();
    hid_t file;
    TRY(checkpoint_open(&alone, path, &out->checkpoint));
    int status = h5_open(path, &file);
    if (status)
        checkpoint_close(&out->checkpoint);
    else
        out->file = file;
    return status;
}

void weights_close(struct weights *weights) {
    h5_close((hid_t)weights->file);
    checkpoint_close(&weights->checkpoint);
}

/* A tensor on its way. */
struct reading {
    weights_take *take;
    void *context;
    uint64_t sum;
};

static int take_block(void *context, const struct h5_dataset *d, const long at[2], const long size[2],
                      void *buffer) {
    struct reading *r = context;
    if (d->kind == SUM_PLACED) r->sum += h5_dataset_sum(d, at, size, buffer);
    TRY(h5_dataset_to_real(d, size[0] * size[1], buffer));
    return r->take(r->context, buffer, (size_t)(size[0] * size[1]));
}

static int read_open(const struct h5_dataset *d, const struct row *row, struct reading *r) {
    const long at[2] = {0, 0}, size[2] = {row->shape[0], row->shape[1]};
    if (d->integer || d->ndim != row->ndim || (long)d->shape[0] != size[0] || (long)d->shape[1] != size[1])
        return gdn_fail(GDN_INPUT, "%s: dataset %s is not of the shape that its configuration says", d->path,
                        d->name);
    if (d->kind == SUM_XXH3) TRY(h5_dataset_verify_xxh3(d));
    TRY(h5_dataset_each(d, at, size, take_block, r));
    return d->kind == SUM_PLACED && r->sum != d->sum ? h5_dataset_damaged(d->path, d->name) : 0;
}

int weights_read(const struct weights *weights, const struct row *row, weights_take *take, void *context) {
    struct reading reading = {.take = take, .context = context};
    struct h5_dataset d;
    char name[ROWS_NAME];
    rows_dataset_name(row, "model", name);
    TRY(h5_dataset_open((hid_t)weights->file, weights->checkpoint.path, name, &d));
    int status = read_open(&d, row, &reading);
    h5_dataset_close(&d);
    return status;
}

static int count_weights(void *context, hid_t file, const char *path, const char *name) {
    (void)file, (void)path;
    *(int *)context += !strncmp(name, "model/", 6);
    return 0;
}

int weights_count(const struct weights *weights, int *count) {
    *count = 0;
    return h5_each_name((hid_t)weights->file, weights->checkpoint.path, count_weights, count);
}
